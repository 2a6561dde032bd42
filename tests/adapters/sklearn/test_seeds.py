"""A number is one result; None and a RandomState are drawn from, as scikit-learn does."""

from collections.abc import Callable

import numpy as np

from umix import UMIXClassifier
from umix.adapters.sklearn.inputs import seed_of


def test_a_number_is_the_seed_itself() -> None:
    assert seed_of(7) == seed_of(np.int64(7)) == 7


def test_none_draws_from_the_global_generator() -> None:
    before = np.random.get_state()
    try:
        np.random.seed(3)
        first, second = seed_of(None), seed_of(None)
        np.random.seed(3)
        assert (seed_of(np.random), seed_of(None)) == (first, second)
    finally:
        np.random.set_state(before)
    assert first != second


def test_an_instance_gives_another_seed_in_every_fit(
    small: Callable[..., UMIXClassifier], rows: tuple[np.ndarray, ...]
) -> None:
    x, y, _ = rows
    model = small("erm", random_state=np.random.RandomState(5))
    first, second = (model.fit(x, y).predict_proba(x) for _ in range(2))
    again = small("erm", random_state=np.random.RandomState(5)).fit(x, y).predict_proba(x)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
