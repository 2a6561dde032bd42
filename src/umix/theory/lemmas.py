"""The series in the tables and figures of lemmas A.1 and A.2 and assumption 5.1, on a small weighted sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.theory.bounds import retentiveness
from umix.theory.experiment import minimiser
from umix.theory.glm import GLM, Predictor, Sample
from umix.theory.losses import (
    expand,
    partner_loss,
    printed_regulariser,
    regulariser,
    rescaled_loss,
    shrinkage_and_variance,
    standard_loss,
)
from umix.theory.mixing_law import MixingLaw

#: The mixing strengths of the tables and figures, largest first.
STRENGTHS = tuple(2.0**-k for k in range(0, 8))
#: The alphas at which the factor of lemma A.2 is shown, largest last; it is finite above 1.
ALPHAS = (0.5, 1.0, 1.01, 1.03, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
#: The alphas at which the remainder's share is shown; mixing vanishes as alpha goes to 0.
SMALL_ALPHAS = (0.001, 0.01, 0.05, 0.2, 0.5, 1.0, 1.5, 3.0)

#: The radii of the balls on which ρ is estimated.
RADII = (0.5, 1.0, 2.0, 4.0, 8.0)

FACTOR = "E[(1-λ)²/λ²]"
FORMS = {
    "inputs over λ": "lemma A.2, plain Σ | loss on inputs over λ",
    "printed": "lemma A.2, printed weighted Σ | loss on inputs over λ",
    "mixup": "lemma A.2, plain Σ | mixup loss",
    "shrinkage": "shrinkage + variance | mixup loss",
}


@final
@dataclass(frozen=True)
class Point:
    """One point of a series: the model, the curve, the position on the x axis, and the value."""

    model: str
    curve: str
    at: float
    value: float


def demonstration(glm: GLM, rng: np.random.Generator) -> tuple[Sample, Predictor]:
    """A centred sample of three groups with different covariances and weights 1, 2, 4 (scaled to mean 1), and its weighted fit.

    At the fit, R1 is almost 0, which is the best case for lemma A.2.
    """
    group = np.repeat([0, 1, 2], [45, 30, 15])
    x = (
        rng.standard_normal((len(group), 4))
        * np.array([[1, 1, 0.3, 0.3], [1.5, 0.3, 0.3, 0.3], [0.3, 0.3, 0.3, 2.0]])[group]
    )
    y = glm.draw(0.7 * x @ np.array([1.0, -0.5, 0.5, 1.0]), rng)
    w = np.array([1.0, 2.0, 4.0])[group]
    sample = Sample.of(x, y, w / w.mean()).centred()
    return sample, Predictor(minimiser(glm, sample, ridge=1e-6))


def remainders(glm: GLM, sample: Sample, f: Predictor, *, alpha: float) -> list[Point]:
    """|remainder| of lemma A.1 over the mixing strengths."""
    law = MixingLaw.symmetric(alpha)
    return [
        Point(glm.name, "remainder", strength, abs(expand(glm, f, sample, law.tilted(strength)).remainder))
        for strength in STRENGTHS
    ]


def order(points: Sequence[Point]) -> float:
    """The slope of log value against log strength over the weaker half of the strengths."""
    weak = sorted(points, key=lambda point: point.at)[: len(points) // 2]
    return float(np.polyfit(np.log([p.at for p in weak]), np.log([p.value for p in weak]), 1)[0])


def remainder_shares(glm: GLM, sample: Sample, f: Predictor) -> list[Point]:
    """|remainder| / (|R1| + |R2|) of lemma A.1 for mixup (strength 1) over alpha: it does not go to 0 with alpha."""
    points = []
    for alpha in SMALL_ALPHAS:
        terms = expand(glm, f, sample, MixingLaw.symmetric(alpha).tilted())
        points.append(Point(glm.name, "share", alpha, abs(terms.remainder) / (abs(terms.r1) + abs(terms.r2))))
    return points


def regulariser_errors(glm: GLM, sample: Sample, f: Predictor, *, alpha: float) -> list[Point]:
    """|approximation - exact| over the loss that mixing adds, for the readings of lemma A.2 and the mixing strengths."""
    standard = standard_loss(glm, f, sample)
    points = []
    for strength in STRENGTHS:
        law = MixingLaw.symmetric(alpha).tilted(strength)
        plain, printed = regulariser(glm, f, sample, law), printed_regulariser(glm, f, sample, law)
        mixed = partner_loss(glm, f, sample, law) - standard
        pairs = {"mixup": (plain, mixed), "shrinkage": (shrinkage_and_variance(glm, f, sample, law) - standard, mixed)}
        if strength < 1 or np.isfinite(glm.growth):  # else the loss on inputs over λ is infinite
            rescaled = rescaled_loss(glm, f, sample, law) - standard
            pairs |= {"inputs over λ": (plain, rescaled), "printed": (printed, rescaled)}
        points += [
            Point(glm.name, FORMS[form], strength, abs(guess / exact - 1)) for form, (guess, exact) in pairs.items()
        ]
    return points


def factors(glm: GLM, sample: Sample, f: Predictor) -> list[Point]:
    """E[(1-λ)²/λ²] over alpha, and the loss that mixing adds by the lemma and by the exact losses (strength 1).

    Curves have no point at an alpha for which they are infinite.
    """
    standard = standard_loss(glm, f, sample)
    points = []
    for alpha in ALPHAS:
        law = MixingLaw.symmetric(alpha).tilted()
        values = {"mixup loss": partner_loss(glm, f, sample, law) - standard}
        if alpha > glm.growth - 1:
            values["loss on inputs over λ"] = rescaled_loss(glm, f, sample, law) - standard
        if alpha > 1:
            values |= {FACTOR: law.squared_odds(), "lemma A.2": regulariser(glm, f, sample, law)}
        points += [Point(glm.name, curve, alpha, value) for curve, value in values.items()]
    return points


def rhos(glm: GLM, sample: Sample) -> list[Point]:
    """ρ of the sample's weighted law on balls of growing radius."""
    return [Point(glm.name, "rho", r, retentiveness(glm, sample.x, sample.w, radius=r, shells=2)) for r in RADII]
