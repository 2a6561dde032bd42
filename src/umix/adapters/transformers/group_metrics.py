"""The rate of every group as metrics of a Trainer."""

from typing import Any, final

from umix.adapters.group_counts import group_counts
from umix.core.judging import MIN_GROUP


@final
class GroupMetrics:
    """``Trainer(compute_metrics=GroupMetrics(groups))``: ``average``, ``worst`` and ``group/NAME`` of every group.

    ``groups`` are those of the evaluation set in its order: values [n], several columns of them, or ``Groups``. A group is a
    combination of label and value; without values the classes are the groups. ``metric_for_best_model="worst"`` keeps the
    checkpoint that is best on the worst group. ``min_group`` is that of ``group_counts``.
    """

    def __init__(self, groups: Any = None, *, min_group: int = MIN_GROUP) -> None:
        self.groups = groups
        self.min_group = min_group

    def __call__(self, evaluated: Any) -> dict[str, float]:
        """The metrics of an ``EvalPrediction``, whose predictions are logits [n, classes] or classes [n]."""
        predicted = evaluated.predictions
        if isinstance(predicted, tuple):  # logits, then hidden states or the like
            predicted = predicted[0]
        return group_counts(predicted, evaluated.label_ids, self.groups, min_group=self.min_group).metrics()
