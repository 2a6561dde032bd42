"""Fits of scikit-learn whose warnings say nothing that the caller does not check itself."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def quiet_fit() -> Iterator[None]:
    """A block in which scikit-learn neither warns of convergence nor of invalid values in products of finite matrices.

    The float32 kernels of OpenBLAS sometimes set the processor's "invalid" flag for finite matrices with finite products, and
    NumPy turns the flag into a warning. scikit-learn refuses inputs that are not finite before it multiplies.
    """
    from sklearn.exceptions import ConvergenceWarning  # imported here because it takes a second

    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
