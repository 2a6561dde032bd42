"""The mixup loss: as printed, symmetrised, drawn, and by loops over pairs with scipy's quadrature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from umix.errors import UserError
from umix.theory.glm import GLM, Gaussian, Logistic, Poisson
from umix.theory.mixing_law import MixingLaw
from umix.theory.predictor import Linear, Quadratic
from umix.theory.sample import Sample
from umix.theory.weighted_loss import mixup_loss, mixup_loss_by_drawing, partner_loss, rescaled_loss, standard_loss

LAW = MixingLaw(1.7, 0.8)


def by_loops(model: GLM, f: Linear | Quadratic, sample: Sample, law: MixingLaw) -> float:
    """The printed double sum, a scipy integral for every pair."""

    def one(i: int, j: int) -> float:
        def integrand(lam: float) -> float:
            z = f.value((lam * sample.x[i] + (1 - lam) * sample.x[j])[None])
            own, other = (sample.w[k] * model.loss(z, sample.y[k])[0] for k in (i, j))
            return lam * own + (1 - lam) * other

        return quad(lambda lam: beta.pdf(lam, law.alpha, law.beta) * integrand(lam), 0, 1)[0]

    n = len(sample.x)
    return sum(one(i, j) for i in range(n) for j in range(n)) / n**2


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_the_exact_mixup_loss_is_the_sum_over_pairs(model: GLM, quadratic: Quadratic, sample: Sample) -> None:
    few = Sample.of(sample.x[:3], sample.y[:3], sample.w[:3])
    assert mixup_loss(model, quadratic, few, LAW) == pytest.approx(by_loops(model, quadratic, few, LAW), rel=1e-5)


@settings(max_examples=25)
@given(st.floats(0.1, 8), st.floats(0.1, 8), st.integers(0, 10**6))
def test_mixup_is_every_example_with_its_label_and_a_uniform_partner(a: float, b: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sample = Sample.of(rng.standard_normal((7, 2)), rng.integers(0, 2, 7).astype(float), rng.random(7) * 5)
    f, law = Linear(rng.standard_normal(2)), MixingLaw(a, b)
    whole = mixup_loss(Logistic(), f, sample, law)
    assert partner_loss(Logistic(), f, sample, law.tilted()) == pytest.approx(whole, rel=1e-10)


def test_partners_drawn_by_weight_give_another_loss(model: GLM, linear: Linear, sample: Sample) -> None:
    whole = mixup_loss(model, linear, sample, LAW)
    assert abs(partner_loss(model, linear, sample.by_weight(), LAW.tilted()) - whole) > 1e-3


def test_with_equal_weights_both_readings_of_the_partner_agree(model: GLM, linear: Linear, sample: Sample) -> None:
    equal = Sample.of(sample.x, sample.y)
    ours = [partner_loss(model, linear, one, LAW.tilted()) for one in (equal, equal.by_weight())]
    assert ours[0] == pytest.approx(ours[1], rel=1e-12)


def test_partners_drawn_by_weight_are_the_double_weighted_pair_sum(model: GLM, linear: Linear, sample: Sample) -> None:
    # 1/n² Σ_ij w_i w_j ℓ(x̃_ij, y_i) for weights of mean 1: the loss for which the printed proof is right.
    w = sample.w / sample.w.mean()
    one = Sample.of(sample.x, sample.y, w)
    pairs = sum(
        mass * np.mean(np.outer(w, w) * model.loss(linear.between(one.x, lam), one.y[:, None]))
        for lam, mass in LAW.tilted().nodes()
    )
    assert partner_loss(model, linear, one.by_weight(), LAW.tilted()) == pytest.approx(float(pairs), rel=1e-12)


def test_drawing_pairs_estimates_the_exact_loss(model: GLM, quadratic: Quadratic, sample: Sample) -> None:
    estimate = mixup_loss_by_drawing(model, quadratic, sample, LAW, draws=40_000, rng=np.random.default_rng(0))
    assert 0 < estimate.error < 0.1
    assert abs(estimate.mean - mixup_loss(model, quadratic, sample, LAW)) < 4 * estimate.error


def test_no_strength_is_the_standard_loss(model: GLM, linear: Linear, sample: Sample) -> None:
    plain = standard_loss(model, linear, sample)
    assert partner_loss(model, linear, sample, LAW.tilted(0.0)) == pytest.approx(plain, rel=1e-12)
    assert rescaled_loss(model, linear, sample, LAW.tilted(0.0)) == pytest.approx(plain, rel=1e-12)


def test_a_weight_of_two_is_a_row_twice(model: GLM, linear: Linear, sample: Sample) -> None:
    n = len(sample.x)
    ones = Sample.of(sample.x, sample.y)
    twice = Sample(
        np.concatenate([ones.x, ones.x[:1]]), np.append(ones.y, ones.y[0]), np.ones(n + 1), np.append(ones.partner, 0)
    )
    doubled = Sample(ones.x, ones.y, np.append(2, np.ones(n - 1)), ones.partner)
    rows = partner_loss(model, linear, twice, LAW.tilted()) * (n + 1)
    assert partner_loss(model, linear, doubled, LAW.tilted()) * n == pytest.approx(rows, rel=1e-12)


@pytest.mark.parametrize(("model", "strength"), [(Logistic(), 1.0), (Gaussian(), 1.0), (Poisson(), 0.8)])
def test_the_loss_on_inputs_over_lam_is_its_integral(model: GLM, strength: float, linear: Linear) -> None:
    rng = np.random.default_rng(1)
    sample = Sample.of(rng.standard_normal((5, 3)), rng.integers(0, 2, 5).astype(float), 1 + rng.random(5))
    law, z = MixingLaw.symmetric(2.3).tilted(strength), linear.value(sample.x)

    def integrand(t: float) -> float:
        lam = 1 - strength * (1 - t)
        losses = model.loss(z[:, None] + (1 - lam) / lam * z[None, :], sample.y[:, None])
        return beta.pdf(t, 3.3, 2.3) * float(np.mean(sample.w * losses.mean(axis=1)))

    whole = quad(integrand, 0, 1, limit=200)[0]
    assert rescaled_loss(model, linear, sample, law) == pytest.approx(whole, rel=1e-6)


def test_an_infinite_loss_on_inputs_over_lam_is_refused(linear: Linear, sample: Sample) -> None:
    with pytest.raises(UserError, match="poisson model is not for any Beta law"):
        rescaled_loss(Poisson(), linear, sample, MixingLaw.symmetric(5.0).tilted())
    with pytest.raises(UserError, match="must have alpha and beta above 1"):
        rescaled_loss(Gaussian(), linear, sample, MixingLaw.symmetric(1.0).tilted())
    assert np.isfinite(rescaled_loss(Logistic(), linear, sample, MixingLaw.symmetric(0.5).tilted()))


def test_one_draw_has_no_standard_error(linear: Linear, sample: Sample) -> None:
    with pytest.raises(UserError, match="at least 2 draws, got 1"):
        mixup_loss_by_drawing(Logistic(), linear, sample, LAW, draws=1, rng=np.random.default_rng(0))
