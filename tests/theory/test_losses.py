"""The mixup loss: as printed, symmetrised, drawn, and by loops over pairs with scipy's quadrature; both lemmas
against derivatives taken by torch.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from umix.errors import UserError
from umix.theory.glm import GAUSSIAN, GLM, LOGISTIC, POISSON, Predictor, Sample
from umix.theory.losses import (
    expand,
    mixup_loss,
    mixup_loss_by_drawing,
    partner_loss,
    printed_regulariser,
    regulariser,
    rescaled_loss,
    shrinkage_and_variance,
    standard_loss,
)
from umix.theory.mixing_law import MixingLaw

LAW, WIDE = MixingLaw(1.7, 0.8), MixingLaw.symmetric(2.5)


def by_loops(model: GLM, f: Predictor, sample: Sample, law: MixingLaw) -> float:
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
def test_the_exact_mixup_loss_is_the_sum_over_pairs(model: GLM, quadratic: Predictor, sample: Sample) -> None:
    few = Sample.of(sample.x[:3], sample.y[:3], sample.w[:3])
    assert mixup_loss(model, quadratic, few, LAW) == pytest.approx(by_loops(model, quadratic, few, LAW), rel=1e-5)


@settings(max_examples=25)
@given(st.floats(0.1, 8), st.floats(0.1, 8), st.integers(0, 10**6))
def test_mixup_is_every_example_with_its_label_and_a_uniform_partner(a: float, b: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sample = Sample.of(rng.standard_normal((7, 2)), rng.integers(0, 2, 7).astype(float), rng.random(7) * 5)
    f, law = Predictor(rng.standard_normal(2)), MixingLaw(a, b)
    whole = mixup_loss(LOGISTIC, f, sample, law)
    assert partner_loss(LOGISTIC, f, sample, law.tilted()) == pytest.approx(whole, rel=1e-10)


def test_partners_drawn_by_weight_give_another_loss(model: GLM, linear: Predictor, sample: Sample) -> None:
    whole = mixup_loss(model, linear, sample, LAW)
    assert abs(partner_loss(model, linear, sample.by_weight(), LAW.tilted()) - whole) > 1e-3


def test_partners_drawn_by_weight_are_the_double_weighted_pair_sum(
    model: GLM, linear: Predictor, sample: Sample
) -> None:
    # 1/n² Σ_ij w_i w_j ℓ(x̃_ij, y_i) for weights of mean 1: the loss for which the printed proof is right.
    w = sample.w / sample.w.mean()
    one = Sample.of(sample.x, sample.y, w)
    pairs = sum(
        mass * np.mean(np.outer(w, w) * model.loss(linear.between(one.x, lam), one.y[:, None]))
        for lam, mass in LAW.tilted().nodes()
    )
    assert partner_loss(model, linear, one.by_weight(), LAW.tilted()) == pytest.approx(float(pairs), rel=1e-12)


def test_drawing_pairs_estimates_the_exact_loss(model: GLM, quadratic: Predictor, sample: Sample) -> None:
    estimate = mixup_loss_by_drawing(model, quadratic, sample, LAW, draws=40_000, rng=np.random.default_rng(0))
    assert 0 < estimate.error < 0.1
    assert abs(estimate.mean - mixup_loss(model, quadratic, sample, LAW)) < 4 * estimate.error


def test_no_strength_is_the_standard_loss(model: GLM, linear: Predictor, sample: Sample) -> None:
    plain = standard_loss(model, linear, sample)
    assert partner_loss(model, linear, sample, LAW.tilted(0.0)) == pytest.approx(plain, rel=1e-12)
    assert rescaled_loss(model, linear, sample, LAW.tilted(0.0)) == pytest.approx(plain, rel=1e-12)


def test_a_weight_of_two_is_a_row_twice(model: GLM, linear: Predictor, sample: Sample) -> None:
    n = len(sample.x)
    ones = Sample.of(sample.x, sample.y)
    twice = Sample(
        np.concatenate([ones.x, ones.x[:1]]), np.append(ones.y, ones.y[0]), np.ones(n + 1), np.append(ones.partner, 0)
    )
    doubled = Sample(ones.x, ones.y, np.append(2, np.ones(n - 1)), ones.partner)
    rows = partner_loss(model, linear, twice, LAW.tilted()) * (n + 1)
    assert partner_loss(model, linear, doubled, LAW.tilted()) * n == pytest.approx(rows, rel=1e-12)


@pytest.mark.parametrize(("model", "strength"), [(LOGISTIC, 1.0), (GAUSSIAN, 1.0), (POISSON, 0.8)])
def test_the_loss_on_inputs_over_lam_is_its_integral(model: GLM, strength: float, linear: Predictor) -> None:
    rng = np.random.default_rng(1)
    sample = Sample.of(rng.standard_normal((5, 3)), rng.integers(0, 2, 5).astype(float), 1 + rng.random(5))
    law, z = MixingLaw.symmetric(2.3).tilted(strength), linear.value(sample.x)

    def integrand(t: float) -> float:
        lam = 1 - strength * (1 - t)
        losses = model.loss(z[:, None] + (1 - lam) / lam * z[None, :], sample.y[:, None])
        return beta.pdf(t, 3.3, 2.3) * float(np.mean(sample.w * losses.mean(axis=1)))

    whole = quad(integrand, 0, 1, limit=200)[0]
    assert rescaled_loss(model, linear, sample, law) == pytest.approx(whole, rel=1e-6)


def test_an_infinite_loss_on_inputs_over_lam_is_refused(linear: Predictor, sample: Sample) -> None:
    with pytest.raises(UserError, match="must have alpha and beta above 1"):
        rescaled_loss(GAUSSIAN, linear, sample, MixingLaw.symmetric(1.0).tilted())
    assert np.isfinite(rescaled_loss(LOGISTIC, linear, sample, MixingLaw.symmetric(0.5).tilted()))


def test_r1_r2_and_r3_are_the_first_two_derivatives_along_the_mixing_path(
    model: GLM, quadratic: Predictor, sample: Sample, torch_loss: Callable
) -> None:
    x, theta, bend = (torch.from_numpy(a) for a in (sample.x, quadratic.theta, quadratic.curvature))
    share = torch.zeros((), dtype=torch.float64, requires_grad=True)  # 1-λ
    total = torch.zeros((), dtype=torch.float64)
    for i, (y, w) in enumerate(zip(sample.y, sample.w, strict=True)):
        for j, partner in enumerate(sample.partner):
            mixed = (1 - share) * x[i] + share * x[j]
            z = mixed @ theta + 0.5 * mixed @ bend @ mixed
            total = total + w * partner * torch_loss(z, float(y)) / len(sample.x)
    (first,) = torch.autograd.grad(total, share, create_graph=True)
    (second,) = torch.autograd.grad(first, share)
    law = LAW.tilted()
    terms = expand(model, quadratic, sample, law)
    assert terms.r1 == pytest.approx(law.moment(1) * float(first.detach()), rel=1e-10)
    assert terms.r2 + terms.r3 == pytest.approx(law.moment(2) / 2 * float(second), rel=1e-10)
    assert terms.r3 != 0


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
@pytest.mark.parametrize("by_weight", [False, True])
def test_the_remainder_is_of_third_order_in_the_mixing_strength(
    kind: str, by_weight: bool, model: GLM, sample: Sample, request: pytest.FixtureRequest
) -> None:
    f, chosen = request.getfixturevalue(kind), sample.by_weight() if by_weight else sample
    if model is GAUSSIAN and kind == "linear":
        assert expand(model, f, chosen, LAW.tilted()).remainder == pytest.approx(0, abs=1e-13)
        return
    halves = [abs(expand(model, f, chosen, LAW.tilted(s)).remainder) for s in (1 / 64, 1 / 128)]
    assert np.log2(halves[0] / halves[1]) == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize("by_weight", [False, True])
def test_the_regulariser_is_half_the_second_derivative_in_the_odds(
    by_weight: bool, model: GLM, linear: Predictor, sample: Sample, torch_loss: Callable
) -> None:
    chosen = (sample.by_weight() if by_weight else sample).centred()
    z, odds = torch.from_numpy(chosen.x @ linear.theta), torch.zeros((), dtype=torch.float64, requires_grad=True)
    w, y, partner = (torch.from_numpy(a) for a in (chosen.w, chosen.y, chosen.partner))
    total = (w * (torch_loss(z[:, None] + odds * z[None, :], y[:, None]) @ partner)).mean()
    (first,) = torch.autograd.grad(total, odds, create_graph=True)
    (second,) = torch.autograd.grad(first, odds)
    assert float(first.detach()) == pytest.approx(0, abs=1e-12)  # centred: no first-order term
    law = WIDE.tilted()
    assert regulariser(model, linear, chosen, law) == pytest.approx(law.squared_odds() / 2 * float(second), rel=1e-10)


def test_for_a_gaussian_model_the_regulariser_is_all_that_is_added(linear: Predictor, sample: Sample) -> None:
    model, law = GAUSSIAN, WIDE.tilted()
    for chosen in (sample.centred(), sample.by_weight().centred()):
        added = rescaled_loss(model, linear, chosen, law) - standard_loss(model, linear, chosen)
        assert regulariser(model, linear, chosen, law) == pytest.approx(added, rel=1e-9)
        mixed = partner_loss(model, linear, chosen, law)
        assert shrinkage_and_variance(model, linear, chosen, law) == pytest.approx(mixed, rel=1e-10)


def test_the_printed_form_is_right_for_weights_of_mean_one_and_partners_by_weight(
    model: GLM, linear: Predictor, sample: Sample
) -> None:
    one = Sample.of(sample.x, sample.y, sample.w / sample.w.mean()).by_weight().centred()
    law = WIDE.tilted()
    right = regulariser(model, linear, one, law)
    assert printed_regulariser(model, linear, one, law) == pytest.approx(right, rel=1e-12)


def test_the_printed_form_is_not_homogeneous_in_the_weights(model: GLM, linear: Predictor, sample: Sample) -> None:
    chosen, law = sample.centred(), WIDE.tilted()
    doubled = Sample(chosen.x, chosen.y, 2 * chosen.w, chosen.partner)
    for form, factor in ((regulariser, 2), (printed_regulariser, 4)):
        assert form(model, linear, doubled, law) == pytest.approx(factor * form(model, linear, chosen, law))


def test_shrinkage_and_variance_agree_with_the_expansion_to_second_order(
    model: GLM, linear: Predictor, sample: Sample
) -> None:
    chosen, law = sample.centred(), WIDE.tilted(1e-3)
    terms = expand(model, linear, chosen, law)
    ours = shrinkage_and_variance(model, linear, chosen, law) - terms.standard
    assert ours == pytest.approx(terms.r1 + terms.r2, abs=1e-7 * np.max(sample.w))
