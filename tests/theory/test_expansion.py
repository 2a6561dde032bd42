"""Lemma A.1 against derivatives taken by torch."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.theory.expansion import expand
from umix.theory.glm import GLM, Gaussian, Logistic
from umix.theory.mixing_law import MixingLaw
from umix.theory.predictor import Linear, Quadratic
from umix.theory.sample import Sample

LAW = MixingLaw(1.7, 0.8)


def test_r1_r2_and_r3_are_the_first_two_derivatives_along_the_mixing_path(
    model: GLM, quadratic: Quadratic, sample: Sample, torch_loss: Callable
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


def test_a_linear_predictor_has_no_third_term(model: GLM, linear: Linear, sample: Sample) -> None:
    assert expand(model, linear, sample, LAW.tilted()).r3 == 0


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
@pytest.mark.parametrize("by_weight", [False, True])
def test_the_remainder_is_of_third_order_in_the_mixing_strength(
    kind: str, by_weight: bool, model: GLM, sample: Sample, request: pytest.FixtureRequest
) -> None:
    f, chosen = request.getfixturevalue(kind), sample.by_weight() if by_weight else sample
    if isinstance(model, Gaussian) and kind == "linear":
        assert expand(model, f, chosen, LAW.tilted()).remainder == pytest.approx(0, abs=1e-13)
        return
    halves = [abs(expand(model, f, chosen, LAW.tilted(s)).remainder) for s in (1 / 64, 1 / 128)]
    assert np.log2(halves[0] / halves[1]) == pytest.approx(3, abs=0.2)


def test_the_remainder_keeps_its_share_as_alpha_goes_to_zero(linear: Linear) -> None:
    rng = np.random.default_rng(0)
    sample = Sample.of(2 * rng.standard_normal((12, 3)), rng.integers(0, 2, 12).astype(float))
    shares = []
    for alpha in (1.0, 0.1, 0.001):
        terms = expand(Logistic(), linear, sample, MixingLaw.symmetric(alpha).tilted())
        shares.append(abs(terms.remainder / (terms.r1 + terms.r2)))
    assert min(shares) > 0.5 * max(shares) > 0.01


def test_the_terms_add_up_to_the_mixed_loss(model: GLM, quadratic: Quadratic, sample: Sample) -> None:
    terms = expand(model, quadratic, sample, LAW.tilted())
    assert terms.standard + terms.r1 + terms.r2 + terms.r3 + terms.remainder == pytest.approx(terms.mixed)
