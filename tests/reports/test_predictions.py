"""The held-out predictions of a run are read as they were written; a broken file is one sentence."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest

from umix.bench.runs.record import RunRecord
from umix.errors import UserError
from umix.reports.predictions import load_predictions
from umix.run_folder import PREDICTIONS

Make = Callable[..., RunRecord]


@pytest.fixture
def run(tmp_path: Path, record: Make, predicted: Callable[..., None]) -> RunRecord:
    sizes = {"val": [1, 0], "test": [0, 2]}
    counts = {
        name: {"hits": [[0, 0]], "sizes": of_groups, "class_hits": [[0, 0]], "class_sizes": of_groups}
        for name, of_groups in sizes.items()
    }
    parts = {"group_columns": ["y", "sex"], "group_parts": [["no", "f"], ["yes", "m"]]}
    made = record(0, [5, 5], classes=["no", "yes"], split_counts=counts, **parts)
    made.save(tmp_path)
    predicted(
        tmp_path,
        label=np.array([0, 1, 1]),
        prediction=np.array([0, 0, 1]),
        split=np.array(["val", "test", "test"]),
        confidence=np.array([0.9, 0.8, 0.6]),
        classes=2,
        group=np.array([0, 1, 1]),
        row=np.array([4, 2, 7]),
    )
    return made


def test_predictions_are_what_was_written(run: RunRecord) -> None:
    found = load_predictions(run)
    assert found is not None
    assert found.wrong.tolist() == [False, True, False]
    assert found.member.tolist() == [[True, False], [False, True], [False, True]]
    assert found.probability is not None
    assert found.probability[1] == pytest.approx([0.8, 0.2])
    assert found.loss == pytest.approx(-np.log([0.9, 0.2, 0.6]))
    test = found.of("test")
    assert test.row is not None
    assert test.row.tolist() == [2, 7]
    assert test.file is None
    assert found.same_examples(found)
    assert not found.same_examples(found.rows(np.array([1, 0, 2])))


def test_overlapping_groups_have_a_column_each_and_many_classes_no_probabilities(run: RunRecord) -> None:
    path = run.directory / PREDICTIONS
    flags = [polars.Series("group 0", [True, True, False]), polars.Series("group 1", [True, False, False])]
    polars.read_parquet(path).drop("group", "p 0", "p 1").with_columns(flags).write_parquet(path)
    found = load_predictions(run)
    assert found is not None
    assert found.member.tolist() == [[True, True], [True, False], [False, False]]
    assert found.probability is None
    assert found.loss == pytest.approx(-np.log([0.9, 0.2, 0.6]))


def test_a_run_without_a_selected_epoch_has_none(run: RunRecord) -> None:
    (run.directory / PREDICTIONS).unlink()
    assert load_predictions(run) is None


@pytest.mark.parametrize("length", [0, 4, 100, -10])
def test_a_torn_table_is_one_sentence(run: RunRecord, length: int) -> None:
    path = run.directory / PREDICTIONS
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(UserError, match="is damaged"):
        load_predictions(run)
