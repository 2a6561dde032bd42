"""When the next checkpoint of a fit is due."""

from collections.abc import Callable
from pathlib import Path

import pytest

from umix.bench.runs.execute import execute
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.checkpoint_pace import EVERY_EPOCH, USUAL, CheckpointPace, CheckpointTimer
from umix.core.epoch_counts import Counts
from umix.training.context import Context
from umix.training.objective import MeanRisk

AT_THE_END = CheckpointPace(least=1e6, most=1e6)


class Clock:
    """A clock that stands still unless it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def written(pace: CheckpointPace, *, epoch: float, cost: float, epochs: int) -> list[int]:
    """After which epochs a checkpoint is due, where each takes so long to train and to write."""
    clock, found = Clock(), []
    timer = CheckpointTimer(pace, clock=clock)
    for number in range(epochs):
        clock.now += epoch
        if timer.is_due:
            found.append(number)
            with timer.writing():
                clock.now += cost
    return found


def test_checkpoints_of_short_epochs_take_two_percent_of_the_time() -> None:
    assert written(USUAL, epoch=0.25, cost=0.125, epochs=80) == [3, 28, 53, 78]


def test_a_cheap_checkpoint_is_written_every_second_and_not_more_often() -> None:
    assert written(USUAL, epoch=0.25, cost=0.001, epochs=12) == [3, 7, 11]


def test_long_epochs_all_end_with_a_checkpoint() -> None:
    assert written(USUAL, epoch=60.0, cost=1.0, epochs=4) == [0, 1, 2, 3]


def test_no_more_than_five_minutes_are_repeated() -> None:
    assert written(USUAL, epoch=100.0, cost=30.0, epochs=9) == [0, 3, 6]


def test_every_epoch_is_every_epoch() -> None:
    assert written(EVERY_EPOCH, epoch=0.0, cost=5.0, epochs=3) == [0, 1, 2]


def test_the_last_epoch_of_a_fit_always_ends_with_a_checkpoint(context: Callable[..., Context], tmp_path: Path) -> None:
    context(directory=tmp_path, pace=AT_THE_END).fit(MeanRisk())
    again = context(directory=tmp_path)
    again.fit(MeanRisk())
    assert again.journal.reports["fit"].reused


@pytest.mark.parametrize(("pace", "again"), [(EVERY_EPOCH, [2, 3]), (AT_THE_END, [0, 1, 2, 3])])
def test_a_resumed_run_gives_the_epochs_that_it_repeats_again(
    pace: CheckpointPace, again: list[int], tmp_path: Path
) -> None:
    spec = RunSpec(
        task="four_moons", method="erm", settings={"epochs": 4, "sizes": [20, 4, 4, 20], "hidden": [4], "eval_size": 5}
    )
    seen: list[tuple[int, list[int]]] = []

    def stop(epoch: int, val: Counts) -> None:
        if epoch == 2:
            raise ZeroDivisionError
        seen.append((epoch, val.all_hits.tolist()))

    with pytest.raises(ZeroDivisionError):
        execute(spec, paths=RunPaths(tmp_path, pace=pace), on_epoch=stop)
    first, seen = seen, []
    record = execute(
        spec,
        paths=RunPaths(tmp_path, pace=pace),
        on_epoch=lambda epoch, val: seen.append((epoch, val.all_hits.tolist())),
    )
    assert [epoch for epoch, _ in seen] == again
    assert all(row in first for row in seen if row[0] < 2)
    assert record.counts["val"].all_hits.tolist() == seen[-1][1]
