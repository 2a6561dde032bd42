"""Lemma A.2 against exact losses and against a second derivative taken by torch."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.errors import UserError
from umix.theory.expansion import expand
from umix.theory.glm import GLM, Gaussian
from umix.theory.mixing_law import MixingLaw
from umix.theory.predictor import Linear
from umix.theory.regulariser import printed_regulariser, regulariser, shrinkage_and_variance
from umix.theory.sample import Sample
from umix.theory.weighted_loss import partner_loss, rescaled_loss, standard_loss

LAW = MixingLaw.symmetric(2.5)


@pytest.mark.parametrize("by_weight", [False, True])
def test_the_regulariser_is_half_the_second_derivative_in_the_odds(
    by_weight: bool, model: GLM, linear: Linear, sample: Sample, torch_loss: Callable
) -> None:
    chosen = (sample.by_weight() if by_weight else sample).centred()
    z, odds = torch.from_numpy(chosen.x @ linear.theta), torch.zeros((), dtype=torch.float64, requires_grad=True)
    w, y, partner = (torch.from_numpy(a) for a in (chosen.w, chosen.y, chosen.partner))
    total = (w * (torch_loss(z[:, None] + odds * z[None, :], y[:, None]) @ partner)).mean()
    (first,) = torch.autograd.grad(total, odds, create_graph=True)
    (second,) = torch.autograd.grad(first, odds)
    assert float(first.detach()) == pytest.approx(0, abs=1e-12)  # centred: no first-order term
    law = LAW.tilted()
    assert regulariser(model, linear, chosen, law) == pytest.approx(law.squared_odds() / 2 * float(second), rel=1e-10)


def test_for_a_gaussian_model_the_regulariser_is_all_that_is_added(linear: Linear, sample: Sample) -> None:
    model, law = Gaussian(), LAW.tilted()
    for chosen in (sample.centred(), sample.by_weight().centred()):
        added = rescaled_loss(model, linear, chosen, law) - standard_loss(model, linear, chosen)
        assert regulariser(model, linear, chosen, law) == pytest.approx(added, rel=1e-9)
        mixed = partner_loss(model, linear, chosen, law)
        assert shrinkage_and_variance(model, linear, chosen, law) == pytest.approx(mixed, rel=1e-10)


def test_the_relative_error_goes_to_zero_with_the_strength(model: GLM, linear: Linear, sample: Sample) -> None:
    chosen = sample.centred()

    def error(strength: float) -> float:
        law = LAW.tilted(strength)
        added = rescaled_loss(model, linear, chosen, law) - standard_loss(model, linear, chosen)
        return abs(regulariser(model, linear, chosen, law) / added - 1)

    assert error(1 / 256) < 2e-3
    assert error(1 / 256) <= error(1 / 4) + 1e-9


def test_the_printed_form_is_right_for_weights_of_mean_one_and_partners_by_weight(
    model: GLM, linear: Linear, sample: Sample
) -> None:
    one = Sample.of(sample.x, sample.y, sample.w / sample.w.mean()).by_weight().centred()
    law = LAW.tilted()
    right = regulariser(model, linear, one, law)
    assert printed_regulariser(model, linear, one, law) == pytest.approx(right, rel=1e-12)


def test_the_printed_form_is_not_homogeneous_in_the_weights(model: GLM, linear: Linear, sample: Sample) -> None:
    chosen, law = sample.centred(), LAW.tilted()
    doubled = Sample(chosen.x, chosen.y, 2 * chosen.w, chosen.partner)
    for form, factor in ((regulariser, 2), (printed_regulariser, 4)):
        assert form(model, linear, doubled, law) == pytest.approx(factor * form(model, linear, chosen, law))


def test_shrinkage_and_variance_agree_with_the_expansion_to_second_order(
    model: GLM, linear: Linear, sample: Sample
) -> None:
    chosen, law = sample.centred(), LAW.tilted(1e-3)
    terms = expand(model, linear, chosen, law)
    ours = shrinkage_and_variance(model, linear, chosen, law) - terms.standard
    assert ours == pytest.approx(terms.r1 + terms.r2, abs=1e-7 * np.max(sample.w))


def test_data_off_their_centre_are_refused(model: GLM, linear: Linear, sample: Sample) -> None:
    for form in (regulariser, printed_regulariser, shrinkage_and_variance):
        with pytest.raises(UserError, match=r"mean partner is 0.*take sample.centred"):
            form(model, linear, sample, LAW.tilted())


def test_an_alpha_of_one_is_refused_though_the_mixup_loss_is_finite(linear: Linear, sample: Sample) -> None:
    law = MixingLaw.symmetric(1.0).tilted()
    with pytest.raises(UserError, match=r"factor of lemma A\.2"):
        regulariser(Gaussian(), linear, sample.centred(), law)
    assert np.isfinite(shrinkage_and_variance(Gaussian(), linear, sample.centred(), law))
