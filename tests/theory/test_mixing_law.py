"""The tilted law of λ against quadrature of its density."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from umix.errors import UserError
from umix.theory.mixing_law import MixingLaw, TiltedLaw

PARAMETER = st.floats(0.05, 20)


def expected(law: TiltedLaw, function: object) -> float:
    """E over D̃ from the definition: λ of Beta(α, β) tilted by λ, and 1-λ tilted by 1-λ."""
    a, b, s = law.alpha, law.beta, law.strength

    def integrand(t: float) -> float:
        own, other = 1 - s * (1 - t), 1 - s * t
        return beta.pdf(t, a, b) * (t * function(own) + (1 - t) * function(other))

    return sum(quad(integrand, *ends, limit=200)[0] for ends in ((0, 0.5), (0.5, 1)))


@pytest.mark.parametrize("law", [TiltedLaw(2.0, 2.0), TiltedLaw(1.3, 4.0, 0.4)])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_moments_are_those_of_the_density(law: TiltedLaw, order: int) -> None:
    assert law.moment(order) == pytest.approx(expected(law, lambda lam: (1 - lam) ** order), rel=1e-6)


@given(PARAMETER, PARAMETER)
def test_the_second_moment_is_half_the_first_for_every_law(a: float, b: float) -> None:
    law = MixingLaw(a, b).tilted()
    assert law.moment(2) == pytest.approx(law.moment(1) / 2, rel=1e-12)


@given(PARAMETER, PARAMETER)
def test_no_moment_is_of_smaller_order_than_the_second(a: float, b: float) -> None:
    law = MixingLaw(a, b).tilted()
    assert law.moment(3) >= law.moment(2) / 2 * (1 - 1e-12)


@pytest.mark.parametrize(
    "law", [TiltedLaw(2.5, 2.5), TiltedLaw(3.0, 2.2), TiltedLaw(0.5, 0.7, 0.9), TiltedLaw(2.0, 2.0, 0.1)]
)
def test_squared_odds_are_those_of_the_density(law: TiltedLaw) -> None:
    assert law.squared_odds() == pytest.approx(expected(law, lambda lam: ((1 - lam) / lam) ** 2), rel=1e-6)


@given(st.floats(1.01, 50), st.floats(1.01, 50))
def test_squared_odds_are_the_mean_of_one_over_lam_times_its_rest_less_three(a: float, b: float) -> None:
    # E[1/(λ(1-λ))] under Beta(a, b) is (a+b-1)(a+b-2)/((a-1)(b-1)), which is at least 4.
    whole = (a + b - 1) * (a + b - 2) / ((a - 1) * (b - 1)) - 3
    assert MixingLaw(a, b).tilted().squared_odds() == pytest.approx(whole, rel=1e-9)
    assert whole >= 1


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 0.5), (3.0, 0.9)])
def test_infinite_squared_odds_are_refused_with_the_reason(a: float, b: float) -> None:
    with pytest.raises(
        UserError, match=r"must have alpha and beta above 1 to be finite, got .*: near λ = 0 the density"
    ):
        MixingLaw(a, b).tilted().squared_odds()
    assert np.isfinite(MixingLaw(a, b).tilted(0.99).squared_odds())


@pytest.mark.parametrize("law", [TiltedLaw(0.5, 0.5), TiltedLaw(2.0, 3.0), TiltedLaw(2.0, 2.0, 0.3)])
def test_nodes_integrate_smooth_functions(law: TiltedLaw) -> None:
    nodes = law.nodes(24)
    assert sum(mass for _, mass in nodes) == pytest.approx(1)
    ours = sum(mass * np.exp(-2 * lam) for lam, mass in nodes)
    assert ours == pytest.approx(expected(law, lambda lam: np.exp(-2 * lam)), rel=1e-7)


@pytest.mark.parametrize("pole", [1, 2])
def test_nodes_with_a_pole_integrate_what_grows_at_zero(pole: int) -> None:
    law = TiltedLaw(1.6, 2.4)
    ours = sum(mass * np.cos(lam) / lam**pole for lam, mass in law.nodes(24, pole=pole))
    assert ours == pytest.approx(expected(law, lambda lam: np.cos(lam) / lam**pole), rel=1e-6)
