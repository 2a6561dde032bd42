"""The user's file behind a run: which columns are what, and that it is read once."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest

from umix.bench.runs.record import RunRecord
from umix.data.rows.table_file import content_hash
from umix.errors import UserError
from umix.reports.page.training_table import source_of, with_id


def test_label_split_id_and_weight_are_neither_inputs_nor_groups(
    tmp_path: Path, record: Callable[..., RunRecord]
) -> None:
    path = tmp_path / "t.csv"
    polars.DataFrame({name: [1, 2] for name in ("y", "part", "number", "w", "age", "sex", "leak")}).write_csv(path)
    roles = {"label": "y", "split": "part", "id": "number", "weight": "w", "groups": ["sex"], "drop": ["leak", "sex"]}
    task = {"path": "t.csv", "content": content_hash(path), **roles}
    made = record(0, [5, 5], task=str(path), plan={"task": task, "method": {"name": "erm"}})
    source = source_of(made, np.array([0, 1]))
    assert source.inputs == ("age",)
    assert source.groups == ("sex",)
    assert source.by_columns


def test_a_column_that_no_table_of_texts_can_hold_is_no_id(tmp_path: Path, record: Callable[..., RunRecord]) -> None:
    path = tmp_path / "t.parquet"
    polars.DataFrame({"x": [1, 2], "tags": [["a"], ["b"]], "when": ["may", "june"]}).write_parquet(path)
    task = {"path": path.name, "content": content_hash(path), "label": "x"}
    made = record(0, [5, 5], task=str(path), plan={"task": task, "method": {"name": "erm"}})
    examples = polars.DataFrame({"row": [1, 0]})
    assert with_id(examples, made, "when").to_dict(as_series=False) == {"row": [1, 0], "when": ["june", "may"]}
    with pytest.raises(UserError, match="id=tags must hold numbers, texts or dates"):
        with_id(examples, made, "tags")


def test_numbers_with_a_decimal_comma_are_numbers_of_the_page_too(
    tmp_path: Path, record: Callable[..., RunRecord]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x;y\n1,5;0\nNA;1\n")
    task = {"path": "t.csv", "content": content_hash(path), "label": "y"}
    made = record(0, [5, 5], task=str(path), plan={"task": task, "method": {"name": "erm"}})
    assert source_of(made, np.array([0, 1])).table["x"].to_list() == [1.5, None]
