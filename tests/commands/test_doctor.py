"""``umix doctor`` on data: three verdicts with their exit codes, and what ``umix run`` says of them."""

import json
from pathlib import Path

import numpy as np
import polars
import pytest

from umix.cli import main

Capsys = pytest.CaptureFixture[str]
N = 1000


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> polars.DataFrame:
    """A clean table, in the current folder as people.csv."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    frame = polars.DataFrame(
        {"age": (rng.normal(size=N) + y).round(4), "sex": rng.choice(["f", "m"], N), "income": y}
    ).with_columns(polars.col("income").replace_strict([0, 1], ["low", "high"]))
    monkeypatch.chdir(tmp_path)
    frame.write_csv("people.csv")
    return frame


ABOUT = ["people.csv", "--label", "income", "--groups", "sex"]


def test_a_clean_table_is_fine_with_exit_code_0(people: polars.DataFrame, capsys: Capsys) -> None:
    assert main(["doctor", *ABOUT]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "people.csv: fine"
    assert "*" not in out


def test_findings_come_after_the_verdict_and_before_the_counts_with_exit_code_0(
    people: polars.DataFrame, capsys: Capsys
) -> None:
    people.with_columns(told=polars.col("income")).write_csv("people.csv")
    assert main(["doctor", *ABOUT]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "people.csv: look at this, 1 finding"
    assert out.index("look: The column 'told'") < out.index("all rows")
    assert "--drop told" in " ".join(out.split())
    assert main(["doctor", *ABOUT, "--drop", "told"]) == 0
    assert capsys.readouterr().out.startswith("people.csv: fine\n")


def test_data_that_cannot_be_trained_on_are_broken_with_exit_code_2(people: polars.DataFrame, capsys: Capsys) -> None:
    people.with_columns(income=polars.lit("low")).write_csv("people.csv")
    assert main(["doctor", *ABOUT]) == 2
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == "people.csv: broken, 1 finding"
    assert "must have at least two classes" in captured.out
    assert not captured.err
    assert main(["doctor", *ABOUT, "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "broken"
    assert [finding["severity"] for finding in found["findings"]] == ["broken"]
    assert main(["run", ABOUT[0], "erm", *ABOUT[1:]]) == 2
    assert found["findings"][0]["sentence"] in capsys.readouterr().err


def test_settings_are_understood_as_run_understands_them(people: polars.DataFrame, capsys: Capsys) -> None:
    people.rename({"age": "age, in years"}).write_csv("people.csv")
    given = ["--set", 'task.drop=["age, in years"]', "--set", "test_share=0.4", "--json"]
    assert main(["doctor", *ABOUT, *given]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["test"] == pytest.approx(400, abs=4)


def test_groups_that_are_too_small_have_a_star_in_the_counts(people: polars.DataFrame, capsys: Capsys) -> None:
    rare = polars.when(polars.int_range(N) % 20 == 0).then(polars.lit("x")).otherwise(polars.col("sex"))
    people.with_columns(sex=rare).write_csv("people.csv")
    assert main(["doctor", *ABOUT]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if "high, sex=x" in line).count("*") == 2
    assert "*" not in next(line for line in lines if "high, sex=f" in line)
    assert lines[-1] == "* fewer than 30 rows: shown, but decides only if clearly the worst"


def test_a_run_says_the_first_finding_and_how_to_list_all(people: polars.DataFrame, capsys: Capsys) -> None:
    people.with_columns(told=polars.col("income"), id=polars.int_range(N)).write_csv("people.csv")
    fast = ["--set", "epochs=1", "--set", "data_seed=3", "--quiet", "--verbose"]
    assert main(["run", ABOUT[0], "erm", *ABOUT[1:], *fast]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("note: The column 'told' is an input but a copy of the label 'income'")
    command = "umix doctor people.csv --set data_seed=3 --label income --groups sex"
    assert f"leave it out with --drop told. All findings: {command}" in said
    assert said.count("'id' is different in every row") == 1  # a warning of the run, and not a note too
    assert main(command.split()[1:]) == 0


def test_a_run_on_clean_data_has_no_note(people: polars.DataFrame, capsys: Capsys) -> None:
    assert main(["run", ABOUT[0], "erm", *ABOUT[1:], "--set", "epochs=1", "--quiet"]) == 0
    assert "note:" not in capsys.readouterr().err


def test_columns_are_listed_with_their_types_before_the_counts(people: polars.DataFrame, capsys: Capsys) -> None:
    people.with_columns(polars.col("age").cast(polars.String).str.replace(".", ",", literal=True)).write_csv(
        "people.csv", separator=";"
    )
    assert main(["doctor", *ABOUT]) == 0
    out = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    example = people["age"][0]
    assert rows[:3] == [
        ["age", "input", "number", "0.0 %", str(example).replace(".", ",")],
        ["sex", "group", "category", "0.0 %", people["sex"][0]],
        ["income", "label", "–", "0.0 %", people["income"][0]],
    ]
    assert out.index("read as") < out.index("all rows")
    assert main(["doctor", *ABOUT, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["columns"]
    assert found[1] == {"name": "sex", "role": "group", "type": "category", "missing": 0.0, "example": people["sex"][0]}


def test_of_texts_it_is_said_before_training_what_exports_take(tmp_path: Path, capsys: Capsys) -> None:
    table = polars.DataFrame({"note": [f"a text of its own, {row}" for row in range(300)], "y": ["no", "yes"] * 150})
    table.write_csv(tmp_path / "notes.csv")
    assert main(["doctor", str(tmp_path / "notes.csv"), "--label", "y"]) == 0
    said = "Texts (note) become numbers before the model. An export to .onnx or .pt2 takes these numbers"
    assert said in capsys.readouterr().out


def test_of_a_wide_table_forty_columns_are_shown_and_json_has_all(people: polars.DataFrame, capsys: Capsys) -> None:
    wide = people.with_columns((polars.col("age") * i).alias(f"age {i}") for i in range(2, 60))
    wide.write_csv("people.csv")
    assert main(["doctor", *ABOUT]) == 0
    out = capsys.readouterr().out
    assert "and 21 more columns; --json lists all." in out
    assert "age 38" in out
    assert "age 39" not in out
    assert main(["doctor", *ABOUT, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["columns"]) == 61


def test_without_a_label_the_columns_are_listed_and_it_is_asked_for(people: polars.DataFrame, capsys: Capsys) -> None:
    assert main(["doctor", "people.csv"]) == 2
    captured = capsys.readouterr()
    assert "people.csv needs --label" in captured.out
    assert "│ age    │ input │ number" in captured.out


def test_a_run_says_how_many_columns_it_took_as_what(people: polars.DataFrame, capsys: Capsys) -> None:
    people.with_columns(same=polars.lit(1)).write_csv("people.csv")
    fast = ["--set", "epochs=1", "--quiet"]
    expected = "Columns read as numbers: 1, categories: 1, dates: 0, texts: 0; constant and left out: 1."
    assert main(["run", ABOUT[0], "erm", *ABOUT[1:], *fast, "--net", "mlp", "--verbose"]) == 0
    assert expected in capsys.readouterr().out
    assert main(["run", ABOUT[0], "erm", *ABOUT[1:], *fast, "--net", "mlp", "--json"]) == 0  # it is finished
    assert json.loads(capsys.readouterr().out)["column_types"] == {"number": 1, "category": 1, "constant": 1}


def test_a_run_reads_its_table_once_and_a_finished_one_not_at_all(
    people: polars.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    reads: list[str] = []
    read = polars.read_csv

    def counted(source: object, **options: object) -> polars.DataFrame:
        reads.append(str(source))
        return read(source, **options)

    monkeypatch.setattr("polars.read_csv", counted)
    command = ["run", "people.csv", "erm", "--label", "income", "--set", "epochs=2", "--net", "auto", "--quiet"]
    assert main(command) == 0
    assert len(reads) == 1
    assert main(command) == 0
    assert len(reads) == 1


def test_an_id_that_repeats_is_noticed_until_the_rows_are_divided_by_it(tmp_path: Path, capsys) -> None:
    n = 300
    frame = polars.DataFrame(
        {
            "age": range(n),
            "patient": [f"p{row % 60}" for row in range(n)],
            "text": [f"a visit of {row}" for row in range(n)],
            "ill": ["yes", "no", "no"] * (n // 3),
        }
    )
    frame.write_csv(tmp_path / "ward.csv")
    command = ["doctor", str(tmp_path / "ward.csv"), "--label", "ill", "--json"]
    for more in ([], ["--drop", "patient"], ["--id", "patient"], ["--text", "text"]):
        assert main([*command, *more]) == 0
        findings = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["subject"] == "patient"]
        assert any("--split-by patient" in one["fix"] for one in findings), more
    for more in (["--split-by", "patient"], ["--split-by", "patient", "--id", "patient"]):
        assert main([*command, *more]) == 0
        found = json.loads(capsys.readouterr().out)
        assert not [one for one in found["findings"] if one["subject"] == "patient"]
        assert {one["name"]: one["role"] for one in found["columns"]}["patient"] == "split"
