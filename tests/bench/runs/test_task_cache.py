"""A task is loaded once for runs in a row, and again when its file has changed."""

import polars

from umix.bench.runs.task_cache import load_once
from umix.data.tables.source import TableSource


def test_a_task_is_loaded_again_only_when_its_file_has_changed(tmp_path):
    path = tmp_path / "people.csv"
    polars.DataFrame({"x": range(40), "y": ["a", "b"] * 20}).write_csv(path)
    first = load_once(TableSource(path=path, label="y"), None)
    assert load_once(TableSource(path=path, label="y"), None) is first
    polars.DataFrame({"x": range(60), "y": ["a", "b"] * 30}).write_csv(path)
    assert sum(len(split) for split in load_once(TableSource(path=path, label="y"), None).splits.values()) == 60
