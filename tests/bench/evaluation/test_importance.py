"""Permutation importance: what the model needs is large, what it does not need is about 0; columns are shuffled whole."""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars
import pytest

from umix import RunResult, evaluate, load_result, task_from_table, train
from umix.bench.evaluation import importance as module
from umix.bench.evaluation.evaluated import ColumnImportance, Importance
from umix.run_folder import IMPORTANCE


def by_column(found: Importance | None) -> dict[str, ColumnImportance]:
    assert found is not None
    return {one.column: one for one in found.columns}


def test_the_only_column_that_matters_is_large_and_noise_is_about_zero(
    result: RunResult, new: polars.DataFrame
) -> None:
    found = evaluate(result, new, importance=True)
    columns = by_column(found.importance)
    assert set(columns) == {"x", "noise", "colour"}  # label, id and dropped columns are no inputs
    # Labels follow x but for 15 %: shuffled, half of the predictions are by chance, 85 % become 50 %.
    assert columns["x"].all == pytest.approx(found.average - 0.5, abs=0.06)
    assert max(abs(columns[name].all) for name in ("noise", "colour")) < 0.03


def test_a_shuffle_is_what_it_says(result: RunResult, new: polars.DataFrame) -> None:
    """The mean over shuffles by hand, through ``predict``, agrees within the noise of shuffling."""
    found = by_column(evaluate(result, new, importance=True).importance)["x"]
    rng, right = np.random.default_rng(7), (result.predict(new)["label"] == new["y"]).mean()
    by_hand = []
    for _ in range(20):
        shuffled = new.with_columns(x=polars.Series(rng.permutation(new["x"].to_numpy())))
        by_hand.append(right - (result.predict(shuffled)["label"] == new["y"]).mean())
    assert found.all == pytest.approx(np.mean(by_hand), abs=4 * np.std(by_hand) / np.sqrt(5))


def test_for_the_worst_group_values_come_from_all_rows(result: RunResult, new: polars.DataFrame) -> None:
    found = evaluate(result, new, importance=True)
    assert found.importance is not None
    assert found.importance.worst_group == found.worst_group
    # Its rows share a label, so among themselves they could shuffle x without any loss.
    assert by_column(found.importance)["x"].worst > 0.15


def test_it_is_the_same_every_time(result: RunResult, new: polars.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 200)
    first, second = (evaluate(result, new, importance=True).importance for _ in range(2))
    assert first == second
    assert first is not None
    assert first.rows == 200


def test_a_column_of_several_numbers_is_shuffled_as_a_whole() -> None:
    rng = np.random.default_rng(0)
    days = rng.integers(0, 700, 400)
    frame = polars.DataFrame(
        {
            "day": [date(2020, 1, 1) + timedelta(days=int(k)) for k in days],
            "z": rng.normal(size=400),
            "y": np.where(days > 350, "late", "early"),
        }
    )
    run = train(task_from_table(frame, label="y"), "erm", epochs=40, net="mlp")
    found = evaluate(run, frame, importance=True)
    columns = by_column(found.importance)
    assert set(columns) == {"day", "z"}
    assert columns["day"].all > 0.3
    assert columns["day"].worst is None  # there are no groups


def test_it_is_kept_in_the_folder_of_the_run(result: RunResult, new: polars.DataFrame, tmp_path: Path) -> None:
    assert result.directory is not None
    path = result.directory / IMPORTANCE
    path.unlink(missing_ok=True)
    evaluate(load_result(result.directory), new, importance=True, threshold="off")
    assert not path.exists()  # of another choice than the run's
    evaluate(result, importance=True)
    assert '"data": "test rows of people"' in path.read_text()
