"""The accuracy of the worst group as a metric of scikit-learn, and as a scorer that searches are given groups for."""

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.metrics import make_scorer
from sklearn.utils import check_consistent_length, column_or_1d

from umix.adapters.given_groups import cells
from umix.adapters.group_counts import group_counts
from umix.core.evaluation import MIN_GROUP
from umix.errors import UserError


def worst_group_accuracy(y_true: Any, y_pred: Any, *, groups: Any, min_group: int = MIN_GROUP) -> float:
    """The accuracy of the worst group; a group is a label with a value of ``groups``.

    Args:
        y_true: the true labels, [n].
        y_pred: the predicted labels, [n].
        groups: values of an attribute or of several, as in ``UMIXClassifier.fit``.
        min_group: size from which on a group may be the worst by its rate alone. A smaller one counts where its 95 % interval lies
            wholly below that of the worst larger one. With 1 the result is the lowest rate of all groups.

    >>> worst_group_accuracy([0, 0, 0, 1], [0, 0, 1, 1], groups=["a", "a", "b", "b"], min_group=1)
    0.0

    """
    true, predicted = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(true, predicted)
    classes, codes = np.unique(true, return_inverse=True)
    made = cells(codes, tuple(str(name) for name in classes), groups)
    return group_counts(predicted, true, made, min_group=min_group).worst


def worst_group_scorer(*, min_group: int = MIN_GROUP) -> Any:
    """A scorer by ``worst_group_accuracy`` for GridSearchCV and cross_validate, which are given ``groups`` when they fit.

    It needs ``sklearn.set_config(enable_metadata_routing=True)``.

    Args:
        min_group: as in ``worst_group_accuracy``.

    """
    if not get_config()["enable_metadata_routing"]:
        raise UserError(
            "worst_group_scorer must be given groups, which scikit-learn hands to a scorer only with metadata routing; call "
            "sklearn.set_config(enable_metadata_routing=True) first."
        )
    return make_scorer(worst_group_accuracy, min_group=min_group).set_score_request(groups=True)
