"""The accuracy of the worst group as a metric of scikit-learn, and as a scorer that searches are given groups for."""

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.metrics import make_scorer
from sklearn.utils import check_consistent_length, column_or_1d

from umix.adapters.given_groups import cells
from umix.adapters.group_counts import group_counts
from umix.errors import UserError


def worst_group_accuracy(y_true: Any, y_pred: Any, *, groups: Any) -> float:
    """The lowest accuracy among the groups, which are label × value of ``groups`` (see ``UMIXClassifier.fit``).

    >>> worst_group_accuracy([0, 0, 0, 1], [0, 0, 1, 1], groups=["a", "a", "b", "b"])
    0.0
    """
    true, predicted = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(true, predicted)
    classes, codes = np.unique(true, return_inverse=True)
    return group_counts(predicted, true, cells(codes, tuple(str(name) for name in classes), groups)).worst


def worst_group_scorer() -> Any:
    """A scorer by the worst group's accuracy for GridSearchCV and cross_validate, which are given ``groups`` when they fit.

    It needs ``sklearn.set_config(enable_metadata_routing=True)``.
    """
    if not get_config()["enable_metadata_routing"]:
        raise UserError(
            "worst_group_scorer must be given groups, which scikit-learn hands to a scorer only with metadata routing; call "
            "sklearn.set_config(enable_metadata_routing=True) first."
        )
    return make_scorer(worst_group_accuracy).set_score_request(groups=True)
