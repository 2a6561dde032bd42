"""The check of a table has every finding once, a clean table has none, and broken data are a verdict instead of an error."""

import datetime
from pathlib import Path

import numpy as np
import polars
import pytest

from umix.data.arrays import task_from_arrays
from umix.data.checks.data_check import check_rows, check_table, first_findings
from umix.data.checks.finding import Finding
from umix.data.rows.table_file import read_table
from umix.data.tables.source import TableSource
from umix.data.task import Task
from umix.data.texts.source import TextSource
from umix.errors import UserError

N = 1200


def clean() -> dict[str, list[object]]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    return {
        "age": (rng.normal(size=N) + y).round(4).tolist(),
        "job": rng.choice(["a", "b", "c"], N).tolist(),
        "sex": rng.choice(["f", "m"], N).tolist(),
        "y": y.tolist(),
    }


def source(folder: Path, **more: object) -> TableSource:
    polars.DataFrame({**clean(), **more}).write_csv(folder / "people.csv")
    return TableSource(path=folder / "people.csv", label="y", groups=("sex",))


def test_a_clean_table_is_fine(tmp_path: Path) -> None:
    found = check_table(source(tmp_path))
    assert (found.verdict, found.findings, found.notes) == ("fine", [], [])
    assert sum(found.rows.values()) == N
    assert first(source(tmp_path)) == []


def first(table: TableSource) -> list[Finding]:
    return first_findings(table, read_table(table.path))


def test_every_column_has_one_finding_and_the_leak_comes_first(tmp_path: Path) -> None:
    y = clean()["y"]
    odd = source(tmp_path, id=list(range(N)), fold=[i % 5 for i in range(N)], told=y, empty=["x"] * N)
    found = check_table(odd)
    assert found.verdict == "look at this"
    assert [finding.subject for finding in found.findings] == ["told", "fold", "id", "empty"]
    assert found.notes == []  # what is a finding is not said again


def test_what_a_run_says_first_is_not_among_the_notes_of_its_task(tmp_path: Path) -> None:
    odd = source(tmp_path, id=list(range(N)), told=clean()["y"], empty=["x"] * N)
    notes = {finding.note for finding in first(odd)}
    assert {finding.subject for finding in first(odd)} == {"told"}
    assert not notes.intersection(odd.load().notes)


def test_the_notes_of_a_task_are_findings_of_its_check(tmp_path: Path) -> None:
    odd = source(tmp_path, id=list(range(N)), empty=["x"] * N)
    assert set(odd.load().notes) == {finding.note for finding in check_table(odd).findings}


def test_a_row_number_does_not_hide_copied_rows(tmp_path: Path) -> None:
    columns = clean()
    half = {name: values[: N // 2] * 2 for name, values in columns.items()}
    found = check_table(source(tmp_path, **half, id=list(range(N))))
    assert [finding.subject for finding in found.findings] == ["id", "rows"]


def test_a_table_that_cannot_be_trained_on_is_broken(tmp_path: Path) -> None:
    polars.DataFrame({"x": range(40), "y": ["one"] * 40}).write_csv(tmp_path / "a.csv")
    found = check_table(TableSource(path=tmp_path / "a.csv", label="y"))
    assert found.verdict == "broken"
    assert found.findings[0].message() == "The label 'y' must have at least two classes, but every row says 'one'."
    assert first(TableSource(path=tmp_path / "a.csv", label="y")) == []  # the run raises it


def test_a_column_that_is_not_there_raises_as_in_a_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'sex'"):
        check_table(source(tmp_path).model_copy(update={"groups": ("sexx",)}))


def test_columns_of_every_type_can_be_checked(tmp_path: Path) -> None:
    day = datetime.datetime(2020, 1, 1)
    frame = polars.DataFrame(clean()).with_columns(
        polars.Series("nothing", [None] * N),
        polars.Series("yes", [i % 3 == 0 for i in range(N)]),
        polars.Series("kind", ["a", "b"] * (N // 2), dtype=polars.Categorical),
        polars.Series("fixed", ["a", None] * (N // 2), dtype=polars.Enum(["a"])),
        polars.Series("when", [day + datetime.timedelta(hours=i) for i in range(N)]),
        polars.Series("date", [(day + datetime.timedelta(days=i % 9)).date() for i in range(N)]),
        polars.Series("time", [datetime.time(i % 24) for i in range(N)]),
        polars.Series("lasted", [datetime.timedelta(minutes=i % 50) for i in range(N)]),
        polars.Series("infinite", [float("inf"), float("nan"), None, 1.0] * (N // 4)),
        polars.Series("large", [2**40 + 2**20 * (i % 300) for i in range(N)], dtype=polars.UInt64),
    )
    frame.write_parquet(tmp_path / "people.parquet")
    own = TableSource(path=tmp_path / "people.parquet", label="y", groups=("sex",))
    assert first(own) == []
    assert [finding.subject for finding in check_table(own).findings] == ["nothing"]
    frame.with_columns(several=polars.Series([[1, 2]] * N)).write_parquet(tmp_path / "people.parquet")
    assert first(own) == []
    assert "must hold numbers, texts or dates" in check_table(own).findings[0].message()


def test_repeated_texts_are_copies(tmp_path: Path) -> None:
    y = ["no", "yes"] * 150
    said = [f"{word} {place % 40}" for place, word in enumerate(y)]
    polars.DataFrame({"said": said, "y": y}).write_csv(tmp_path / "a.csv")
    found = check_table(TextSource(path=tmp_path / "a.csv", text="said", label="y"))
    assert [finding.subject for finding in found.findings] == ["rows"]


def arrays(x: np.ndarray) -> Task:
    return task_from_arrays(x, np.arange(len(x)) % 2, data_seed=0)


def test_repeated_arrays_are_copies() -> None:
    x = np.random.default_rng(0).normal(size=(300, 3))
    assert check_rows(Path("a.npz"), arrays(x)).verdict == "fine"
    assert [finding.subject for finding in check_rows(Path("a.npz"), arrays(x[np.arange(300) % 50])).findings] == [
        "rows"
    ]


def test_numbers_with_a_decimal_comma_are_checked_as_numbers(tmp_path: Path) -> None:
    columns = polars.DataFrame(clean())
    told = columns["y"] + np.random.default_rng(1).random(N).round(6) / 2
    comma = source(tmp_path, told=told.cast(polars.String).str.replace(".", ",", literal=True))
    assert [finding.subject for finding in check_table(comma).findings] == ["told"]  # it gives the label away
    assert [finding.subject for finding in first(comma)] == ["told"]


def roles_and_types(path: Path, **options: object) -> dict[str, tuple[str, str | None]]:
    return {one.name: (one.role, one.type) for one in check_table(TableSource(path=path, **options)).columns}


def test_every_column_is_listed_with_its_role_type_missing_share_and_an_example(tmp_path: Path) -> None:
    day = datetime.date(2020, 1, 1)
    rows = range(N)
    frame = polars.DataFrame(clean()).with_columns(
        polars.Series("comma", ["" if i % 4 == 0 else f"{i % 50},5" for i in rows]),
        polars.Series("day", [(day + datetime.timedelta(days=i % 90)).isoformat() for i in rows]),
        polars.Series("word", [["NA", "?", "yes", "no"][i % 4] for i in rows]),
        polars.Series("long", [f"some words about {i} and {i % 7}" for i in rows]),
        polars.Series("same", ["x"] * N),
        polars.Series("part", [("train", "val", "test")[i % 3] for i in rows]),
        polars.Series("weight", [1.0, 2.0] * (N // 2)),
        polars.Series("key", [f"k{i}" for i in rows]),
        polars.Series("secret", [None, "s"] * (N // 2)),
    )
    frame.write_csv(tmp_path / "a.csv")
    options = {"label": "y", "groups": ("sex",), "split": "part", "weight": "weight", "id": "key", "drop": ("secret",)}
    columns = check_table(TableSource(path=tmp_path / "a.csv", **options)).columns
    assert [one.name for one in columns] == frame.columns
    assert {one.name: (one.role, one.type, one.missing) for one in columns} == {
        "age": ("input", "number", 0),
        "job": ("input", "category", 0),
        "sex": ("group", "category", 0),
        "y": ("label", None, 0),
        "comma": ("input", "number", 0.25),
        "day": ("input", "date", 0),
        "word": ("input", "category", 0.5),
        "long": ("input", "text", 0),
        "same": ("input", "constant", 0),
        "part": ("split", None, 0),
        "weight": ("weight", None, 0),
        "key": ("id", None, 0),
        "secret": ("ignored", None, 0.5),
    }
    examples = {one.name: one.example for one in columns}
    assert (examples["comma"], examples["word"], examples["key"]) == ("1,5", "yes", "k0")


def test_a_group_that_is_no_input_has_no_type_and_a_class_called_none_is_not_missing(tmp_path: Path) -> None:
    frame = polars.DataFrame(clean()).with_columns(y=polars.Series(["none", "some"] * (N // 2)))
    frame.write_csv(tmp_path / "a.csv")
    checked = check_table(TableSource(path=tmp_path / "a.csv", label="y", groups=("sex",), drop=("sex",)))
    facts = {one.name: one for one in checked.columns}
    assert (facts["sex"].role, facts["sex"].type) == ("group", None)
    assert (facts["y"].missing, facts["y"].example) == (0, "none")


def test_columns_are_listed_before_a_label_is_named_and_where_the_table_is_broken(tmp_path: Path) -> None:
    polars.DataFrame(clean()).write_csv(tmp_path / "a.csv")
    found = check_table(TableSource(path=tmp_path / "a.csv"))
    assert found.verdict == "broken"
    assert found.findings[0].message().startswith("a.csv needs label= with the column of the class to predict")
    assert [one.type for one in found.columns] == ["number", "category", "category", "number"]
    (tmp_path / "c.csv").write_text("a,,y\n1,2,3\n4,5,6\n")
    assert [one.role for one in check_table(TableSource(path=tmp_path / "c.csv")).columns] == ["input"] * 3
    broken = polars.DataFrame(clean()).with_columns(several=polars.Series([[1, 2]] * N))
    broken.write_parquet(tmp_path / "b.parquet")
    found = check_table(TableSource(path=tmp_path / "b.parquet", label="y"))
    assert found.verdict == "broken"
    assert [(one.name, one.role, one.type) for one in found.columns][-2:] == [
        ("y", "label", None),
        ("several", "input", None),
    ]


def test_of_texts_the_columns_are_listed_too(tmp_path: Path) -> None:
    polars.DataFrame({"said": ["a b", "c d"] * 50, "y": ["n", "p"] * 50, "more": range(100)}).write_csv(
        tmp_path / "a.csv"
    )
    found = check_table(TextSource(path=tmp_path / "a.csv", text="said", label="y"))
    assert [(one.role, one.type) for one in found.columns] == [("input", "text"), ("label", None), ("ignored", None)]
