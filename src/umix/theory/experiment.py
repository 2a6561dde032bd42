"""Measures the generalisation gaps of weighted ERM and weighted mixup for several n and intrinsic ranks, with the bounds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, final

import numpy as np
from pydantic import Field

from umix.settings import Settings
from umix.theory.bounds import Bound, generalisation_bound
from umix.theory.covariance import rank
from umix.theory.fit import minimiser, mixed_rows
from umix.theory.glm import Array, Logistic
from umix.theory.mixing_law import MixingLaw
from umix.theory.population import Population
from umix.theory.predictor import Linear
from umix.theory.retentive import retentiveness
from umix.theory.sample import Sample
from umix.theory.weighted_loss import standard_loss

#: A generator for a seed and a purpose; the caller owns the seeding.
Streams = Callable[[int, str], np.random.Generator]
_LOGISTIC = Logistic()
# Rows per mixed fit and λ, at least. In small samples every example gets more partners, so that all fits are equally smooth.
_ROWS = 3200
_NODES = 3


@final
class Design(Settings):
    """The settings of the experiment."""

    sizes: tuple[Annotated[int, Field(ge=1, le=10**5)], ...] = Field(
        (100, 200, 400, 800, 1600), min_length=1, description="Training sizes n."
    )
    ranks: tuple[int, ...] = Field((2, 5, 10, 20), min_length=1, description="Intrinsic ranks r.")
    dimension: int = Field(100, ge=2, le=10**4, description="Dimension d of the inputs.")
    seeds: int = Field(20, ge=2, le=10**4, description="Populations and samples per cell.")
    alpha: float = Field(2.0, gt=0, description="Parameter of Beta(alpha, alpha) for λ.")
    eta: float = Field(4.0, ge=0, description="Weight of uncertainty: w = eta·u + 1.")
    ridge: float = Field(1e-3, gt=0, description="Ridge of both fits, for separable samples.")
    delta: float = Field(0.05, gt=0, lt=1, description="Probability with which the bounds may fail.")


@final
@dataclass(frozen=True)
class Measured:
    """The measurements of one sample: the gap E[wℓ] - 1/n Σ wℓ and the risk E[wℓ] of both fits, and both bounds for mixup.

    ``luck`` is the gap of a model that was fixed before the sample was drawn. Its mean is 0, and it
    has most of the noise of the other gaps. Subtracting it gives means over seeds with less noise.
    """

    n: int
    rank: int
    dimension: int
    seed: int
    erm_gap: float
    mixup_gap: float
    luck: float
    erm_risk: float
    mixup_risk: float
    rank_bound: Bound
    dimension_bound: Bound
    rho: float
    gamma: float


def cells(design: Design) -> list[tuple[int, int]]:
    """The (n, rank) pairs of a design."""
    return [(n, r) for r in design.ranks for n in design.sizes]


def run(design: Design, streams: Streams) -> Iterator[Measured]:
    """All ``len(cells(design)) * design.seeds`` measurements of the experiment."""
    for n, r in cells(design):
        for seed in range(design.seeds):
            yield measure(design, n=n, r=r, seed=seed, streams=streams)


def measure(design: Design, *, n: int, r: int, seed: int, streams: Streams) -> Measured:
    """Both fits on one sample of a population drawn for the seed; the gaps are exact, without a test set."""
    population = Population.drawn(d=design.dimension, r=r, rng=streams(seed, f"population {r}"))
    pilot = pilot_of(population, eta=design.eta, ridge=design.ridge, rng=streams(seed, f"pilot {r}"))
    w = pilot.w
    x, y, group = population.draw(n, streams(seed, f"sample {r} {n}"))
    # Both fits lie in the span of the rows for every d, so they are computed there, in an orthonormal basis.
    _, values, axes = np.linalg.svd(x, full_matrices=False)
    axes = axes[values > 1e-9 * values[0]]
    sample = Sample.of(x @ axes.T, y, w[group])
    law = MixingLaw.symmetric(design.alpha)
    rng = streams(seed, f"partners {r} {n}")
    mixed = mixed_rows(sample, law, partners=max(2, _ROWS // n), nodes=_NODES, rng=rng)
    erm, mixup = (minimiser(_LOGISTIC, rows, ridge=design.ridge) for rows in (sample, mixed))
    thetas = (erm, mixup, axes @ pilot.theta)
    risks = [population.risk(theta @ axes, w) for theta in thetas]
    gaps = [risk - standard_loss(_LOGISTIC, Linear(t), sample) for risk, t in zip(risks, thetas, strict=True)]
    sigma = population.moments(w).weighted()
    curvature = float(np.mean(sample.w * _LOGISTIC.variance(sample.x @ mixup)))
    gamma = curvature * float(mixup @ axes @ sigma @ axes.T @ mixup)
    length = float(np.linalg.norm(mixup))
    retentive = retentiveness(_LOGISTIC, sample.x, radius=length, rng=rng, w=sample.w, starts=0, shells=1)
    bound = partial(
        generalisation_bound,
        n=n,
        gamma=gamma,
        rho=retentive.rho,
        lipschitz=float(w.max()),  # |A'(z) - y| ≤ 1 for labels in [0, 1]
        largest=float(np.max(sample.w * _LOGISTIC.loss(sample.x @ mixup, y))),
        delta=design.delta,
    )
    return Measured(
        n=n,
        rank=r,
        dimension=design.dimension,
        seed=seed,
        erm_gap=gaps[0],
        mixup_gap=gaps[1],
        luck=gaps[2],
        erm_risk=risks[0],
        mixup_risk=risks[1],
        rank_bound=bound(dimension=rank(sigma).value),
        dimension_bound=bound(dimension=design.dimension),
        rho=retentive.rho,
        gamma=gamma,
    )


def gaps_over_dimension(design: Design, streams: Streams, *, dimensions: tuple[int, ...] = (1, 4, 16)) -> list[float]:
    """The gaps of weighted ERM on one sample with fixed rank r and coordinates, for d = r times each of ``dimensions``."""
    n, r = design.sizes[0], design.ranks[0]
    designs = [design.model_copy(update={"dimension": r * times}) for times in dimensions]
    return [measure(one, n=n, r=r, seed=0, streams=streams).erm_gap for one in designs]


@final
@dataclass(frozen=True, eq=False)
class Pilot:
    """The result of a first stage on a separate sample: weights ``w`` [g] of the groups and a weighted fit ``theta`` [d]."""

    w: Array
    theta: Array


def pilot_of(
    population: Population, *, eta: float, ridge: float, rng: np.random.Generator, n: int = 2000, epochs: int = 20
) -> Pilot:
    """Weights ``eta·u + 1``: u is a group's mean share of epochs in which gradient descent gets its pilot examples wrong.

    The pilot sample is not the training sample, because the theorem needs weights that depend on the group only and
    are fixed beforehand.
    """
    x, y, group = population.draw(n, rng)
    inner = x @ population.basis
    theta = np.zeros(inner.shape[1])
    step = 4 / float(np.linalg.eigvalsh(inner.T @ inner / n)[-1])
    wrong = np.zeros(n)
    for _ in range(epochs):
        theta -= step * inner.T @ (_LOGISTIC.mean(inner @ theta) - y) / n
        wrong += ((inner @ theta > 0) != (y > 0.5)) / epochs
    sizes = np.bincount(group, minlength=len(population.k))
    u = np.bincount(group, weights=wrong, minlength=len(population.k)) / np.maximum(sizes, 1)
    w: Array = eta * u + 1
    return Pilot(w, population.basis @ minimiser(_LOGISTIC, Sample.of(inner, y, w[group]), ridge=ridge))
