"""Lemma A.2: to second order, mixing adds a quadratic form of θ on centred data; corrected, and as the paper prints it."""

import numpy as np

from umix.errors import UserError
from umix.theory.glm import GLM, Array
from umix.theory.mixing_law import TiltedLaw
from umix.theory.predictor import Linear
from umix.theory.sample import Sample

#: The largest distance of the mean partner from 0, relative to the size of the inputs, for which the lemma is computed.
CENTRED = 1e-8


def regulariser(glm: GLM, f: Linear, sample: Sample, law: TiltedLaw) -> float:
    """``1/(2n) [Σ w_i A''(x_iᵀθ)] E[(1-λ)²/λ²] θᵀΣθ`` with ``Σ = Σ_j partner_j x_j x_jᵀ``: what ``rescaled_loss`` adds.

    Σ contains the weights only if partners are drawn by weight. Raises UserError if the mean partner is not 0, because a
    first-order term would be missing.
    """
    _need_centred(sample)
    return _curvature(glm, f, sample) * law.squared_odds() * _form(f, sample.partner_covariance()) / 2


def printed_regulariser(glm: GLM, f: Linear, sample: Sample, law: TiltedLaw) -> float:
    """``regulariser`` with the paper's ``Σ̂ = 1/n Σ w_i x_i x_iᵀ`` for any law of partners; quadratic in the weights' scale."""
    _need_centred(sample)
    sigma = (sample.x * sample.w[:, None]).T @ sample.x / len(sample.x)
    return _curvature(glm, f, sample) * law.squared_odds() * _form(f, sigma) / 2


def shrinkage_and_variance(glm: GLM, f: Linear, sample: Sample, law: TiltedLaw, *, nodes: int = 48) -> float:
    """The second-order form of ``partner_loss`` itself, with no division by λ, on centred data.

    ``1/n Σ w_i E_λ[ℓ(λ x_i, y_i) + (1-λ)²/2 A''(λ x_iᵀθ) θᵀΣθ]``: inputs shrink by λ, the partner adds variance. It is finite for
    every alpha, and exact for a Gaussian model.
    """
    _need_centred(sample)
    z, form = f.value(sample.x), _form(f, sample.partner_covariance())
    return sum(
        mass
        * float(np.mean(sample.w * (glm.loss(lam * z, sample.y) + (1 - lam) ** 2 / 2 * glm.variance(lam * z) * form)))
        for lam, mass in law.nodes(nodes)
    )


def _curvature(glm: GLM, f: Linear, sample: Sample) -> float:
    return float(np.mean(sample.w * glm.variance(f.value(sample.x))))


def _form(f: Linear, sigma: Array) -> float:
    return float(f.theta @ sigma @ f.theta)


def _need_centred(sample: Sample) -> None:
    if (off := sample.off_centre()) > CENTRED:
        raise UserError(
            f"Lemma A.2 must have data whose mean partner is 0, got one {off:.2g} times the inputs' size away; "
            f"take sample.centred()."
        )
