import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from umix.core.quiet_fit import quiet_fit


def test_invalid_values_of_products_and_fits_that_did_not_converge_are_not_warned_of():
    with quiet_fit():
        np.array([np.inf, 1.0], dtype=np.float32) @ np.zeros(2, dtype=np.float32)  # sets the processor's flag
        warnings.warn("did not converge", ConvergenceWarning, stacklevel=1)


def test_other_warnings_are_kept():
    with quiet_fit(), pytest.warns(RuntimeWarning, match="overflow"):
        np.array([3e38], dtype=np.float32) * np.float32(10)
