"""The score that a search maximises."""

import numpy as np
import pytest

from umix.bench.search.tune import validation_score
from umix.core.epoch_counts import Counts
from umix.errors import UserError

SIZES = np.array([10, 10])
VAL = Counts(np.array([[1, 9], [6, 7], [5, 9]]), SIZES, np.array([[8, 2], [6, 7], [9, 9]]), SIZES)


@pytest.mark.parametrize(
    ("select", "score"), [(None, 0.6), ("worst", 0.6), ("average", 0.9), ("worst_class", 0.9), ("last", 0.5)]
)
def test_the_score_is_that_of_the_epoch_the_rule_selects(select: str | None, score: float) -> None:
    assert validation_score(VAL, select) == score


def test_without_groups_the_classes_count() -> None:
    bare = Counts(np.zeros((3, 0)), np.zeros(0), VAL.class_hits, SIZES)
    assert validation_score(bare, None) == pytest.approx(0.9)  # both classes, and so the average
    assert validation_score(bare, "last") == pytest.approx(0.9)
    with pytest.raises(UserError, match="select=worst must have a score"):
        validation_score(bare, "worst")
