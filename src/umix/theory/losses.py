"""The weighted mixup loss of a sample, exactly and by drawing pairs, and what lemmas A.1 and A.2 make of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from umix.theory.glm import GLM, Array, Predictor, Sample
from umix.theory.mixing_law import MixingLaw, TiltedLaw


@final
@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Array | Sequence[float]) -> Self:
        return cls(float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))))


def standard_loss(glm: GLM, f: Predictor, sample: Sample) -> float:
    """``1/n Σ w_i ℓ(x_i, y_i)``."""
    return float(np.mean(sample.w * glm.loss(f.value(sample.x), sample.y)))


def mixup_loss(glm: GLM, f: Predictor, sample: Sample, law: MixingLaw, *, nodes: int = 48) -> float:
    """``1/n² Σ_ij E_λ[λ w_i ℓ(x̃_ij, y_i) + (1-λ) w_j ℓ(x̃_ij, y_j)]`` as the paper writes it: all pairs, quadrature over λ."""
    total = 0.0
    for lam, mass in law.nodes(nodes):
        z = f.between(sample.x, lam)
        first = sample.w[:, None] * glm.loss(z, sample.y[:, None])
        second = sample.w[None, :] * glm.loss(z, sample.y[None, :])
        total += mass * float(np.mean(lam * first + (1 - lam) * second))
    return total


def partner_loss(glm: GLM, f: Predictor, sample: Sample, law: TiltedLaw, *, nodes: int = 48) -> float:
    """``1/n Σ_i w_i E_{λ~D̃} E_{r~partner} ℓ(λ x_i + (1-λ) r, y_i)``: each example keeps its label and is mixed with a partner.

    With uniform partners and strength 1 this *is* ``mixup_loss`` (docs/explanation/theory.md, section 2).
    """
    total = 0.0
    for lam, mass in law.nodes(nodes):
        losses = glm.loss(f.between(sample.x, lam), sample.y[:, None])
        total += mass * float(np.mean(sample.w * (losses @ sample.partner)))
    return total


def rescaled_loss(glm: GLM, f: Predictor, sample: Sample, law: TiltedLaw, *, nodes: int = 96) -> float:
    """``partner_loss`` of a linear ``f`` with every mixed input divided by its λ: the left-hand side of lemma A.2.

    At strength 1 it is infinite for a Poisson model, and for a Gaussian one unless alpha > 1, which raises UserError.
    """
    z = f.value(sample.x)
    total = 0.0
    for lam, mass in law.nodes(nodes, pole=int(glm.growth) if law.strength == 1 else 0):
        losses = glm.loss(z[:, None] + (1 - lam) / lam * z[None, :], sample.y[:, None])
        total += mass * float(np.mean(sample.w * (losses @ sample.partner)))
    return total


def mixup_loss_by_drawing(
    glm: GLM, f: Predictor, sample: Sample, law: MixingLaw, *, draws: int, rng: np.random.Generator
) -> Estimate:
    """A Monte Carlo estimate of the mixup loss from ``draws`` random pairs with one λ each, as Algorithm 1 draws them."""
    n = len(sample.x)
    i, j = rng.integers(n, size=draws), rng.integers(n, size=draws)
    lam = rng.beta(law.alpha, law.beta, size=draws)
    z: Array = f.value(lam[:, None] * sample.x[i] + (1 - lam)[:, None] * sample.x[j])
    losses = lam * sample.w[i] * glm.loss(z, sample.y[i]) + (1 - lam) * sample.w[j] * glm.loss(z, sample.y[j])
    return Estimate.of(losses)


@final
@dataclass(frozen=True)
class Expansion:
    """The terms of lemma A.1; ``mixed`` is the exact loss they add up to with the remainder."""

    standard: float
    r1: float
    r2: float
    r3: float
    mixed: float

    @property
    def remainder(self) -> float:
        """``E[(1-λ)² φ(1-λ)]``: what the terms up to second order do not explain."""
        return self.mixed - self.standard - self.r1 - self.r2 - self.r3


def expand(glm: GLM, f: Predictor, sample: Sample, law: TiltedLaw) -> Expansion:
    """Lemma A.1: ``partner_loss`` expanded in ``1-λ`` around the unmixed inputs, partners drawn from ``sample.partner``."""
    z = f.value(sample.x)
    residual = glm.mean(z) - sample.y
    slope = f.slope(sample.x)
    first = law.moment(1) * residual * (slope @ sample.partner)
    second = law.moment(2) / 2 * glm.variance(z) * (slope**2 @ sample.partner)
    bent = law.moment(2) / 2 * residual * (f.bend(sample.x) @ sample.partner)
    return Expansion(
        standard=standard_loss(glm, f, sample),
        r1=float(np.mean(sample.w * first)),
        r2=float(np.mean(sample.w * second)),
        r3=float(np.mean(sample.w * bent)),
        mixed=partner_loss(glm, f, sample, law),
    )


def regulariser(glm: GLM, f: Predictor, sample: Sample, law: TiltedLaw, *, sigma: Array | None = None) -> float:
    """Lemma A.2: ``1/(2n) [Σ w_i A''(x_iᵀθ)] E[(1-λ)²/λ²] θᵀΣθ``, which is to second order what ``rescaled_loss`` adds.

    ``Σ = Σ_j partner_j x_j x_jᵀ`` unless ``sigma`` is another one: it contains the weights only if partners are drawn by weight.
    The mean partner must be 0 (``sample.centred()``), else a first-order term is missing.
    """
    curvature = float(np.mean(sample.w * glm.variance(f.value(sample.x))))
    sigma = sample.partner_covariance() if sigma is None else sigma
    return curvature * law.squared_odds() * float(f.theta @ sigma @ f.theta) / 2


def printed_regulariser(glm: GLM, f: Predictor, sample: Sample, law: TiltedLaw) -> float:
    """``regulariser`` with the paper's ``Σ̂ = 1/n Σ w_i x_i x_iᵀ`` for any law of partners; quadratic in the weights' scale."""
    return regulariser(glm, f, sample, law, sigma=(sample.x * sample.w[:, None]).T @ sample.x / len(sample.x))


def shrinkage_and_variance(glm: GLM, f: Predictor, sample: Sample, law: TiltedLaw, *, nodes: int = 48) -> float:
    """The second-order form of ``partner_loss`` itself, with no division by λ, on centred data.

    ``1/n Σ w_i E_λ[ℓ(λ x_i, y_i) + (1-λ)²/2 A''(λ x_iᵀθ) θᵀΣθ]``: inputs shrink by λ, the partner adds variance. It is finite for
    every alpha, and exact for a Gaussian model.
    """
    z, form = f.value(sample.x), float(f.theta @ sample.partner_covariance() @ f.theta)
    return sum(
        mass
        * float(np.mean(sample.w * (glm.loss(lam * z, sample.y) + (1 - lam) ** 2 / 2 * glm.variance(lam * z) * form)))
        for lam, mass in law.nodes(nodes)
    )
