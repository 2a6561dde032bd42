"""The seed of a fit, from a ``random_state`` as scikit-learn has them."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from umix.errors import UserError


def seed_of(random_state: Any) -> int:
    """A whole number as it is; from a RandomState, or numpy's global one for None, the next draw: another one in every fit."""
    if random_state is None or random_state is np.random or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    if isinstance(random_state, int | np.integer) and 0 <= random_state < 2**32:
        return int(random_state)
    raise UserError(
        f"random_state must be None, a whole number in [0, {2**32}) or a numpy.random.RandomState, got {random_state!r}."
    )
