"""Labels are there in every row and name classes, or the sentence says which rows or values do not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from sklearn.linear_model import LogisticRegression

from umix import UMIXClassifier, UserError, sample_weights

X = np.random.default_rng(0).normal(size=(8, 2))


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b", "b"] * 2,
        ["a", float("nan"), "b", "b"] * 2,
        np.array([0, np.nan, 1, 1] * 2),
        np.array(["a", None, "b", "b"] * 2, dtype=object),
        pandas.Series([0, None, 1, 1] * 2, dtype="Int64"),
        pandas.Series(["a", None, "b", "b"] * 2),
        pandas.Series(pandas.Categorical(["a", None, "b", "b"] * 2)),
        polars.Series(["a", None, "b", "b"] * 2),
        polars.Series([0, None, 1, 1] * 2),
    ],
    ids=["None", "NaN among texts", "NaN", "objects", "NA", "pandas", "categories", "polars", "polars numbers"],
)
@pytest.mark.parametrize("fit", [UMIXClassifier().fit, lambda x, y: sample_weights(LogisticRegression(), x, y)])
def test_a_missing_label_is_refused_with_its_row(fit: Callable[[Any, Any], Any], y: Any) -> None:
    message = r"^y must have a label in every row, but it is missing in 2 of 8, the first of them row 1 \(counted from 0\); leave"
    with pytest.raises(UserError, match=message):
        fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            X[:, 0],
            r"^y must name a class in every row, .*\(Unknown label type: continuous\); cut a quantity into a few",
        ),
        (
            np.array(["a", 1] * 4, dtype=object),
            r"^y must name a class in every row, .*write labels of several types as texts\.$",
        ),
        (["a"] * 8, r"^The labels must have at least two classes, got 1 class in 8 rows that count\.$"),
        ([0, 1] * 3, r"^y must have a label for each of the 8 rows of X, got 6\.$"),
        (None, r"^UMIXClassifier requires y to be passed, but the target y is None; give a label for every row\.$"),
    ],
    ids=["quantity", "mixed types", "one class", "too few", "none"],
)
def test_labels_that_are_no_classes_are_refused_in_a_sentence(y: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        UMIXClassifier().fit(X, y)
