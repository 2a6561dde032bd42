"""Classifiers that train quickly, and rows of numbers and of a table."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.datasets import make_classification

from umix import UMIXClassifier

#: A fit takes a few hundredths of a second; what it says of its few rows and epochs is no matter.
SMALL: dict[str, Any] = {"epochs": 3, "lr": 0.05, "batch_size": 32, "net_options": {"hidden": [8]}, "threshold": "off"}


@pytest.fixture(scope="session")
def small() -> Callable[..., UMIXClassifier]:
    """Makes small classifiers: UMIX with nothing left open, or another method with its preset."""

    def make(method: str = "umix", **changes: Any) -> UMIXClassifier:
        fixed = {"eta": 3, "pool": "example", "length": 2} if method == "umix" else {}
        return UMIXClassifier(method, **{**SMALL, **fixed, **changes})

    return make


@pytest.fixture(scope="session")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers [200, 5], labels 0 and 1, and the side of the first number, which is known to some methods."""
    x, y = make_classification(200, 5, n_informative=3, flip_y=0.1, random_state=0)
    return x, y, np.where(x[:, 0] > 0.3, "right", "left")


@pytest.fixture(scope="session")
def people() -> tuple[pandas.DataFrame, np.ndarray]:
    """A frame with texts, categories, numbers, dates and gaps, on all of which the label depends."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "town": rng.choice(["Bonn", "Köln", "Ulm"], 240),
            "kind": pandas.Categorical(rng.choice(["a", "b"], 240)),
            "age": rng.normal(40, 10, 240),
            "since": np.datetime64("2020-01-01", "s") + rng.integers(0, 2000, 240) * np.timedelta64(1, "D"),
        }
    )
    score = (frame["town"] == "Ulm") * 2.0 + (frame["kind"] == "a") + (frame["age"] - 40) / 10
    y = np.where(score + (frame["since"] > "2023-01-01") > 1.5, "yes", "no")
    frame.loc[::9, "age"] = np.nan
    frame.loc[4, "town"] = None
    return frame, y
