"""Lemma A.1: the weighted mixup loss as weighted loss + R1 + R2 + R3 + remainder."""

from dataclasses import dataclass
from typing import final

import numpy as np

from umix.theory.glm import GLM
from umix.theory.mixing_law import TiltedLaw
from umix.theory.predictor import Predictor
from umix.theory.sample import Sample
from umix.theory.weighted_loss import partner_loss, standard_loss


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
    def added(self) -> float:
        """The mixed loss minus the weighted loss."""
        return self.mixed - self.standard

    @property
    def remainder(self) -> float:
        """``E[(1-λ)² φ(1-λ)]``: the part of ``added`` that the terms up to second order do not explain."""
        return self.added - self.r1 - self.r2 - self.r3


def expand(glm: GLM, f: Predictor, sample: Sample, law: TiltedLaw) -> Expansion:
    """The expansion of ``partner_loss`` in ``1-λ`` around the unmixed inputs, partners drawn from ``sample.partner``."""
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
