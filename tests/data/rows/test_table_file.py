"""Tables whose cells are longer or deeper than parsers take."""

import json
from pathlib import Path

import pytest

from umix.data.rows.table_file import column_names, read_table
from umix.errors import UserError


@pytest.mark.parametrize(
    "content",
    ["a" * 140_000 + ",y\n1,2\n", '"' + "a" * 140_000, '"a,b\n' + "1,2\n" * 40_000],
    ids=["a long name", "an open quote", "an open quote before rows"],
)
def test_a_name_longer_than_128_kib_is_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "people.csv").write_text(content)
    for read in (column_names, read_table):
        with pytest.raises(
            UserError, match=r"people\.csv must be a table, but one of its rows cannot be read .* quote"
        ):
            read(tmp_path / "people.csv")


@pytest.mark.parametrize("levels", [1000, 100_000])
def test_json_lines_nested_without_end_are_refused_in_one_sentence(tmp_path: Path, levels: int) -> None:
    (tmp_path / "people.jsonl").write_text('{"a": ' + "[" * levels + "]" * levels + "}\n")
    for read in (column_names, read_table):
        with pytest.raises(
            UserError, match=r"people\.jsonl must hold a row of plain values .* line 1 is nested more than 60"
        ):
            read(tmp_path / "people.jsonl")


def test_json_lines_with_many_brackets_that_are_not_nested_are_read(tmp_path: Path) -> None:
    text = "[{" * 100 + '\\"'
    (tmp_path / "people.jsonl").write_text(json.dumps({"a": text, "b": [[1]] * 100, "y": 1}) + "\n")
    assert read_table(tmp_path / "people.jsonl")["a"].to_list() == [text]
