"""Weighted samples and their partners."""

import numpy as np
import pytest

from umix.errors import UserError
from umix.theory.sample import Sample

X = np.array([[1.0, 0.0], [3.0, 2.0], [5.0, 7.0]])
Y = np.zeros(3)


def test_centring_takes_off_the_mean_of_the_partners() -> None:
    plain = Sample.of(X, Y, np.array([1.0, 1.0, 2.0]))
    np.testing.assert_allclose(plain.centred().x.mean(axis=0), 0, atol=1e-15)
    weighted = plain.by_weight()
    np.testing.assert_allclose(weighted.w @ weighted.centred().x, 0, atol=1e-15)
    assert weighted.off_centre() > 0.1
    assert weighted.centred().off_centre() == pytest.approx(0, abs=1e-15)


def test_the_covariance_of_the_partners_carries_weights_only_if_partners_do() -> None:
    w = np.array([1.0, 1.0, 4.0])
    sample = Sample.of(X, Y, w)
    np.testing.assert_allclose(sample.partner_covariance(), X.T @ X / 3)
    np.testing.assert_allclose(sample.by_weight().partner_covariance(), X.T @ np.diag(w) @ X / 6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.zeros(2)}, r"shape \[n\]"),
        ({"x": np.full((3, 2), np.nan)}, "finite numbers"),
        ({"w": np.array([1.0, -1.0, 1.0])}, "weights must be at least 0"),
        ({"partner": np.ones(3)}, "add up to 1"),
    ],
)
def test_what_is_no_sample_is_refused(changes: dict, message: str) -> None:
    parts = {"x": X, "y": Y, "w": np.ones(3), "partner": np.full(3, 1 / 3)}
    with pytest.raises(UserError, match=message):
        Sample(**{**parts, **changes})
