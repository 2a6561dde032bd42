"""A task is loaded once for runs in a row, and again when its file has changed."""

import polars

from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec


def test_a_task_is_loaded_again_only_when_its_file_has_changed(tmp_path):
    path = tmp_path / "people.csv"
    polars.DataFrame({"x": range(40), "y": ["a", "b"] * 20}).write_csv(path)
    spec = RunSpec(task=str(path), method="erm", settings={"label": "y"})
    first = RunPaths().load_cached(spec)
    assert RunPaths().load_cached(spec.changed(spec.settings, seed=1)) is first
    polars.DataFrame({"x": range(60), "y": ["a", "b"] * 30}).write_csv(path)
    again = RunPaths().load_cached(spec.changed(spec.settings))
    assert sum(len(split) for split in again.splits.values()) == 60
