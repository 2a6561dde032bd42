"""``umix evaluate``: tables for people, JSON for programs, one sentence where something is wrong."""

import io
import json
from pathlib import Path

import numpy as np
import polars
import pytest

from umix import evaluate
from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main


def people(n: int = 400, seed: int = 0) -> polars.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return polars.DataFrame({"x": x, "sex": rng.choice(["Female", "Male"], n), "y": np.where(x > 0, "yes", "no")})


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    folder = tmp_path_factory.mktemp("run")
    people().write_csv(folder / "people.csv")
    people(300, 1).write_csv(folder / "new.csv")
    settings = {"epochs": 3, "hidden": [8], "label": "y", "groups": "sex", "drop": "sex"}
    return execute(RunSpec(task=str(folder / "people.csv"), method="erm", settings=settings), out=folder)


def test_people_see_tables_within_a_screen(record: RunRecord, capsys: pytest.CaptureFixture[str]) -> None:
    new = record.directory.parent / "new.csv"
    assert main(["evaluate", str(record.directory), str(new), "--importance", "-q"]) == 0
    out = capsys.readouterr().out
    assert "worst group: " in out
    assert "Moved since training" in out
    assert "Which inputs matter on new" in out
    assert len(out.splitlines()) <= 45


def test_json_is_what_python_has(record: RunRecord, capsys: pytest.CaptureFixture[str]) -> None:
    new = record.directory.parent / "new.csv"
    assert main(["evaluate", str(record.directory), str(new), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == evaluate(record, new).model_dump(mode="json")
    assert {"average", "worst", "worst_group", "rates", "test", "drift", "notes"} <= set(found)


def test_without_data_the_test_rows_of_the_run_are_shown(record: RunRecord, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(record.directory), "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["average"] == record.summary().average


def test_standard_input_is_read(
    record: RunRecord, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = record.directory.parent / "new.csv"

    class Stdin(io.BytesIO):
        name = "<stdin>"

        @property
        def buffer(self) -> "Stdin":
            return self

    monkeypatch.setattr("sys.stdin", Stdin(new.read_bytes()))
    assert main(["evaluate", str(record.directory), "-", "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["data"] == "standard input"
    assert found["average"] == evaluate(record, new).average


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda frame: frame.drop("y"), "umix: Unknown label column of bad 'y'."),
        (lambda frame: frame.with_columns(y=polars.lit("odd")), "umix: The label 'y' must be one of the classes"),
        (lambda frame: frame.head(0), "umix: The table must have rows, but it is empty."),
    ],
    ids=["no label", "another class", "no rows"],
)
def test_what_is_wrong_is_one_sentence_and_exit_code_2(
    record: RunRecord, tmp_path: Path, capsys: pytest.CaptureFixture[str], change, sentence: str
) -> None:
    change(people(50)).write_csv(tmp_path / "bad.csv")
    assert main(["evaluate", str(record.directory), str(tmp_path / "bad.csv"), "-q"]) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith(sentence)
    assert "\n" not in said


def test_a_file_that_is_not_there_is_one_sentence(record: RunRecord, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(record.directory), "nowhere.csv"]) == 2
    assert capsys.readouterr().err.strip() == "umix: There is no file nowhere.csv."
