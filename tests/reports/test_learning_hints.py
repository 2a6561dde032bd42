"""Likely mislabelled against learned late, from trajectories written out by hand."""

import numpy as np
import pytest

from umix.reports.learning_hints import Hint, last_epochs, learning_hints


def bits(*histories: str) -> tuple[np.ndarray, np.ndarray]:
    """``correct`` and ``visited`` [epochs, n] of histories with a letter per epoch: 1 right, 0 wrong, - not visited."""
    letters = np.array([list(history) for history in histories]).T
    return letters == "1", letters != "-"


def hint(history: str, *, start: int = 0, length: int = 4) -> Hint:
    hints = learning_hints(*bits(history), start=start, length=length)
    assert hints is not None
    return Hint(int(hints[0]))


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("00000000", Hint.CONTRADICTED),  # wrong in the window, wrong in epochs 7 and 8
        ("00001000", Hint.CONTRADICTED),  # right once after the window: one forgetting event
        ("00001010", Hint.NONE),  # right in epoch 7: the net is not sure
        ("00010100", Hint.NONE),  # wrong in 75 % of the window, not in 90 %, and still wrong at the end
        ("00001111", Hint.LEARNED_LATE),
        ("00110011", Hint.LEARNED_LATE),  # wrong in half of the window
        ("01110011", Hint.NONE),  # wrong in a quarter of the window
        ("00001110", Hint.NONE),  # wrong in the last epoch
        ("11111111", Hint.NONE),
        ("0-000-00", Hint.CONTRADICTED),  # an epoch without a visit says nothing
        ("000000--", Hint.NONE),  # not visited at the end
        ("----0000", Hint.NONE),  # not visited in the window
    ],
)
def test_a_trajectory_of_eight_epochs_with_a_window_of_four(history: str, expected: Hint) -> None:
    assert last_epochs(8) == 2
    assert hint(history) == expected


def test_more_than_one_forgetting_event_is_not_consistent() -> None:
    assert hint("0000101000000000") == Hint.NONE
    assert hint("0000100000000000") == Hint.CONTRADICTED


def test_without_an_early_and_a_late_part_there_are_no_hints() -> None:
    assert learning_hints(*bits("00"), start=0, length=2) is None
    assert learning_hints(*bits("00000"), start=4, length=1) is None  # JTT: the window is the last epoch
