"""``umix predict`` in a pipe: nothing but CSV on standard output, one sentence for what cannot be read."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars
import pytest

from umix import predict
from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main
from umix.data.rows import table_blocks as blocks

FAST = {"epochs": 1, "label": "y"}


def people(n: int = 300) -> polars.DataFrame:
    x = np.random.default_rng(0).normal(size=n)
    return polars.DataFrame(
        {
            "key": [f"0{i}" for i in range(n)],
            "x": x,
            "job": [["clerk", "smith, or so", None][i % 3] for i in range(n)],
            "y": np.where(x > 0, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    folder = tmp_path_factory.mktemp("run")
    people().write_csv(folder / "people.csv")
    settings = {**FAST, "id": "key", "hidden": [8]}
    return execute(RunSpec(task=str(folder / "people.csv"), method="erm", settings=settings), out=folder)


def piped(content: bytes, *words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    return main(["predict", *words])


def test_a_pipe_gives_the_numbers_of_a_file_in_blocks_and_notes_come_once(
    record: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(blocks, "_BYTES", 2**10)
    new = people(1000).with_columns(job=polars.when(polars.col("x") > 0).then(polars.lit("baker")).otherwise("job"))
    new.write_csv(tmp_path / "new.csv")
    assert main(["predict", str(record.directory), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out.csv")]) == 0
    _, told = capfdbinary.readouterr()
    expected = (tmp_path / "out.csv").read_bytes()
    assert (
        piped((tmp_path / "new.csv").read_bytes(), str(record.directory), "-", "-o", "-", monkeypatch=monkeypatch) == 0
    )
    out, said = capfdbinary.readouterr()
    assert out == expected
    assert out.startswith(b"key,label,p_no,p_yes\n00,")
    assert said == told
    assert said.count(b"note: ") == 2
    assert b"not calibrated" in said
    assert f"{(new['x'] > 0).sum()} values of 'job' did not occur in training".encode() in said
    assert main(["predict", str(record.directory), str(tmp_path / "new.csv"), "--output", "-"]) == 0
    assert capfdbinary.readouterr().out == expected


def test_a_decimal_comma_is_read_the_same_way_in_training_in_a_file_and_in_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    comma = people().with_columns(polars.col("x").cast(polars.String).str.replace(".", ",", literal=True))
    comma.write_csv(tmp_path / "people.csv", separator=";")
    settings = {**FAST, "id": "key", "hidden": [8]}
    made = execute(RunSpec(task=str(tmp_path / "people.csv"), method="erm", settings=settings), out=tmp_path)
    assert made.input_shape == [4]  # the number, and three columns of the job
    expected = predict(made, people())
    comma.write_ndjson(tmp_path / "new.jsonl")
    comma.write_parquet(tmp_path / "new.parquet")
    for name in ("people.csv", "new.jsonl", "new.parquet"):
        assert predict(made, tmp_path / name).equals(expected)
    monkeypatch.setattr(blocks, "_BYTES", 2**10)
    whole = comma.with_columns(x=polars.when(polars.int_range(300) > 150).then(polars.lit("2")).otherwise("x"))
    new = whole.write_csv(separator=";").encode()  # the last blocks have no comma
    assert piped(new, str(made.directory), "-", "-o", "-", monkeypatch=monkeypatch) == 0
    out, said = capfdbinary.readouterr()
    numbers = people().with_columns(x=polars.when(polars.int_range(300) > 150).then(2.0).otherwise("x"))
    assert out == predict(made, numbers).write_csv().encode()
    assert said.count(b"\n") == said.count(b"note: Probabilities are not calibrated") == 1


def test_an_open_file_is_predicted_from_python(record: RunRecord) -> None:
    assert predict(record, io.BytesIO(people().write_csv().encode())).equals(predict(record, people()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Standard input must have a row of column names and rows below it, but it is empty."),
        (b"key,x,job\n", "The table must have rows, but it is empty."),
        (b"1,0.5,clerk\n2,0.7,clerk\n", "the columns the model was trained with, but 'x', 'job' are missing."),
        (b"key,x\n1,0.5\n", "the columns the model was trained with, but 'job' is missing."),
    ],
)
def test_bad_input_is_refused_in_a_sentence_with_code_2(
    record: RunRecord,
    content: bytes,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(content))
    stdin.buffer.name = "<stdin>"  # type: ignore[misc]
    monkeypatch.setattr("sys.stdin", stdin)
    assert main(["predict", str(record.directory), "-", "-o", "-"]) == 2
    out, said = capfd.readouterr()
    assert out == ""
    assert message in said
    assert said.count("\n") == 1


def test_json_has_no_place_beside_csv(record: RunRecord, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(record.directory), "-", "-o", "-", "--json"]) == 2
    assert capfd.readouterr().err.startswith("umix: --json must be given with an output file")


@pytest.mark.system
def test_a_pipe_that_is_closed_ends_quietly(record: RunRecord, tmp_path: Path) -> None:
    polars.concat([people(2000)] * 40).write_csv(tmp_path / "new.csv")
    command = f"{sys.executable} -m umix predict '{record.directory}' - -o - < '{tmp_path / 'new.csv'}' | head -2"
    done = subprocess.run(["/bin/bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "key,label,p_no,p_yes"
    assert len(done.stdout.splitlines()) == 2
    assert done.returncode == 0
    said = (
        done.stderr.splitlines()
    )  # the note of every prediction by this run, where all was written before the pipe closed
    assert not said or (len(said) == 1 and said[0].startswith("note: Probabilities are not calibrated"))


def test_texts_are_read_from_a_pipe_and_arrays_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["good film", "bad film", "fine", "awful"]
    texts = polars.DataFrame({"t": [words[i % 4] + f" {i}" for i in range(80)], "y": [i % 2 for i in range(80)]})
    texts.write_csv(tmp_path / "texts.csv")
    run = execute(RunSpec(task=str(tmp_path / "texts.csv"), method="erm", settings={**FAST, "text": "t"}), out=tmp_path)
    assert piped(b"t\ngood\n12\n\n", str(run.directory), "-", "-o", "-", monkeypatch=monkeypatch) == 0
    assert capfd.readouterr().out.splitlines()[0] == "label,p_0,p_1"
    np.savez(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=(60, 2)), y=np.arange(60) % 2)
    arrays = execute(RunSpec(task=str(tmp_path / "a.npz"), method="erm", settings=FAST), out=tmp_path)
    assert piped(b"x\n1\n", str(arrays.directory), "-", "-o", "-", monkeypatch=monkeypatch) == 2
    out, said = capfd.readouterr()
    assert out == ""
    assert "must hold a table, but this run was not trained on one; name a file or a folder." in said
