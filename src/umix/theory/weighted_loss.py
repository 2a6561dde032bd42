"""The weighted loss and the weighted mixup loss of a sample: exactly, and by drawing pairs as Algorithm 1 does."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.errors import UserError
from umix.theory.glm import GLM, Array
from umix.theory.mixing_law import MixingLaw, TiltedLaw
from umix.theory.predictor import Linear, Predictor
from umix.theory.sample import Sample


@final
@dataclass(frozen=True)
class Estimate:
    """A Monte Carlo mean and its standard error."""

    mean: float
    error: float


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


def rescaled_loss(glm: GLM, f: Linear, sample: Sample, law: TiltedLaw, *, nodes: int = 96) -> float:
    """``partner_loss`` with every mixed input divided by its λ: the left-hand side of lemma A.2.

    Raises UserError if it is infinite: at strength 1 always for a Poisson model, for a Gaussian one unless alpha > 1.
    """
    if law.strength == 1 and math.isinf(glm.growth):
        raise UserError(
            f"The loss on inputs divided by λ must be finite, but that of the {glm.name} model is not for any Beta law: "
            f"exp((1-λ)/λ) outgrows every power of 1/λ; take a mixing strength below 1."
        )
    z = f.value(sample.x)
    total = 0.0
    for lam, mass in law.nodes(nodes, pole=int(glm.growth) if law.strength == 1 else 0):
        losses = glm.loss(z[:, None] + (1 - lam) / lam * z[None, :], sample.y[:, None])
        total += mass * float(np.mean(sample.w * (losses @ sample.partner)))
    return total


def mixup_loss_by_drawing(
    glm: GLM, f: Predictor, sample: Sample, law: MixingLaw, *, draws: int, rng: np.random.Generator
) -> Estimate:
    """A Monte Carlo estimate of the mixup loss from ``draws`` random pairs with one λ each, for large samples."""
    if draws < 2:
        raise UserError(f"A Monte Carlo estimate must have at least 2 draws, got {draws}.")
    n = len(sample.x)
    i, j = rng.integers(n, size=draws), rng.integers(n, size=draws)
    lam = rng.beta(law.alpha, law.beta, size=draws)
    z: Array = f.value(lam[:, None] * sample.x[i] + (1 - lam)[:, None] * sample.x[j])
    losses = lam * sample.w[i] * glm.loss(z, sample.y[i]) + (1 - lam) * sample.w[j] * glm.loss(z, sample.y[j])
    return Estimate(float(losses.mean()), float(losses.std(ddof=1) / math.sqrt(draws)))
