"""The experiment: generalisation gaps of weighted ERM and weighted mixup for several n and intrinsic ranks, with the bounds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, final

import numpy as np
from pydantic import Field

from umix.settings import Settings
from umix.theory.bounds import generalisation_bound, rank, retentiveness
from umix.theory.glm import GLM, LOGISTIC, Array, Predictor, Sample
from umix.theory.losses import Estimate, standard_loss
from umix.theory.mixing_law import MixingLaw
from umix.theory.population import Population

#: A generator for a seed and a purpose; the caller owns the seeding.
Streams = Callable[[int, str], np.random.Generator]
# Rows per mixed fit and λ, at least. In small samples every example gets more partners, so that all fits are equally smooth.
_ROWS = 3200
_NODES = 3
_NEWTON_STEPS, _SMALL_DECREASE = 100, 1e-10


@final
class Design(Settings):
    """The settings of the experiment."""

    sizes: tuple[Annotated[int, Field(ge=1, le=10**5)], ...] = Field(
        (100, 200, 400, 800, 1600), min_length=1, description="Training sizes n."
    )
    ranks: tuple[Annotated[int, Field(ge=2)], ...] = Field(
        (2, 5, 10, 20), min_length=1, description="Intrinsic ranks r."
    )
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
    rank_bound: float
    dimension_bound: float
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
    w, pilot = pilot_of(population, eta=design.eta, ridge=design.ridge, rng=streams(seed, f"pilot {r}"))
    x, y, group = population.draw(n, streams(seed, f"sample {r} {n}"))
    # Both fits lie in the span of the rows for every d, so they are computed there, in an orthonormal basis.
    _, values, axes = np.linalg.svd(x, full_matrices=False)
    axes = axes[values > 1e-9 * values[0]]
    sample = Sample.of(x @ axes.T, y, w[group])
    law = MixingLaw.symmetric(design.alpha)
    rng = streams(seed, f"partners {r} {n}")
    mixed = mixed_rows(sample, law, partners=max(2, _ROWS // n), nodes=_NODES, rng=rng)
    erm, mixup = (minimiser(LOGISTIC, rows, ridge=design.ridge) for rows in (sample, mixed))
    thetas = (erm, mixup, axes @ pilot)
    risks = [population.risk(theta @ axes, w) for theta in thetas]
    gaps = [risk - standard_loss(LOGISTIC, Predictor(t), sample) for risk, t in zip(risks, thetas, strict=True)]
    sigma = population.moments(w).weighted()
    curvature = float(np.mean(sample.w * LOGISTIC.variance(sample.x @ mixup)))
    gamma = curvature * float(mixup @ axes @ sigma @ axes.T @ mixup)
    rho = retentiveness(LOGISTIC, sample.x, sample.w, radius=float(np.linalg.norm(mixup)))
    bound = partial(
        generalisation_bound,
        n=n,
        gamma=gamma,
        rho=rho,
        lipschitz=float(w.max()),  # |A'(z) - y| ≤ 1 for labels in [0, 1]
        largest=float(np.max(sample.w * LOGISTIC.loss(sample.x @ mixup, y))),
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
        rank_bound=bound(dimension=rank(sigma)),
        dimension_bound=bound(dimension=design.dimension),
        rho=rho,
        gamma=gamma,
    )


def gaps_over_dimension(design: Design, streams: Streams, *, dimensions: tuple[int, ...] = (1, 4, 16)) -> list[float]:
    """The gaps of weighted ERM on one sample with fixed rank r and coordinates, for d = r times each of ``dimensions``."""
    n, r = design.sizes[0], design.ranks[0]
    designs = [design.model_copy(update={"dimension": r * times}) for times in dimensions]
    return [measure(one, n=n, r=r, seed=0, streams=streams).erm_gap for one in designs]


def pilot_of(
    population: Population, *, eta: float, ridge: float, rng: np.random.Generator, n: int = 2000, epochs: int = 20
) -> tuple[Array, Array]:
    """Weights ``eta·u + 1`` [g] of the groups and a weighted fit [d], from a first stage on a separate sample.

    u is a group's mean share of epochs in which gradient descent gets its pilot examples wrong.
    The pilot sample is not the training sample, because the theorem needs weights that depend on the group only and
    are fixed beforehand.
    """
    x, y, group = population.draw(n, rng)
    inner = x @ population.basis
    theta = np.zeros(inner.shape[1])
    step = 4 / float(np.linalg.eigvalsh(inner.T @ inner / n)[-1])
    wrong = np.zeros(n)
    for _ in range(epochs):
        theta -= step * inner.T @ (LOGISTIC.mean(inner @ theta) - y) / n
        wrong += ((inner @ theta > 0) != (y > 0.5)) / epochs
    sizes = np.bincount(group, minlength=len(population.k))
    u = np.bincount(group, weights=wrong, minlength=len(population.k)) / np.maximum(sizes, 1)
    w: Array = eta * u + 1
    return w, population.basis @ minimiser(LOGISTIC, Sample.of(inner, y, w[group]), ridge=ridge)


def minimiser(glm: GLM, sample: Sample, *, ridge: float) -> Array:
    """θ with the least ``1/n Σ w_i ℓ(x_i, y_i) + ridge/2 ‖θ‖²`` by damped Newton steps.

    The ridge is for separable samples, on which θ of a logistic model would grow without limit.
    """
    n, d = sample.x.shape
    theta = np.zeros(d)
    value = _objective(glm, sample, theta, ridge)
    for _ in range(_NEWTON_STEPS):
        z = sample.x @ theta
        gradient = sample.x.T @ (sample.w * (glm.mean(z) - sample.y)) / n + ridge * theta
        hessian = (sample.x * (sample.w * glm.variance(z))[:, None]).T @ sample.x / n + ridge * np.eye(d)
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if decrease < _SMALL_DECREASE:
            return theta
        size = 1.0
        while (moved := _objective(glm, sample, theta - size * step, ridge)) > value - 1e-4 * size * decrease:
            size /= 2
            if size < 1e-8:  # smaller steps change the objective by less than its rounding error
                return theta
        theta, value = theta - size * step, moved
    return theta


def mixed_rows(sample: Sample, law: MixingLaw, *, partners: int, nodes: int, rng: np.random.Generator) -> Sample:
    """A sample whose weighted loss estimates ``mixup_loss``: every row is mixed with ``partners`` random rows at ``nodes`` λ.

    λ is integrated by quadrature, so the choice of partners is the only noise.
    """
    n = len(sample.x)
    x, w = [], []
    points = law.tilted().nodes(nodes)
    for _ in range(partners):
        other = sample.x[rng.choice(n, size=n, p=sample.partner)]
        for lam, mass in points:
            x.append(lam * sample.x + (1 - lam) * other)
            w.append(sample.w * mass * len(points))
    return Sample.of(np.concatenate(x), np.tile(sample.y, partners * len(points)), np.concatenate(w))


def _objective(glm: GLM, sample: Sample, theta: Array, ridge: float) -> float:
    losses = glm.loss(sample.x @ theta, sample.y)
    return float(np.mean(sample.w * losses)) + ridge / 2 * float(theta @ theta)


@final
@dataclass(frozen=True)
class SeedSummary:
    """All seeds of one (n, rank): mean gaps minus the ``luck`` of the sample, risks and bounds.

    ``risk_change`` is the risk of mixup minus that of ERM, paired by seed; below 0 mixup is better.
    """

    n: int
    rank: int
    dimension: int
    seeds: int
    erm_gap: Estimate
    mixup_gap: Estimate
    erm_risk: Estimate
    risk_change: Estimate
    rho: float
    gamma: float
    rank_bound: float
    dimension_bound: float
    #: The largest mixup gap over the seeds, luck included, divided by the bound with the rank; at most 1 by the theorem.
    tightest: float


def by_cell(measured: Iterable[Measured]) -> list[SeedSummary]:
    """One summary for every measured (rank, n), sorted."""
    groups: dict[tuple[int, int], list[Measured]] = {}
    for one in measured:
        groups.setdefault((one.rank, one.n), []).append(one)
    return [_cell(groups[key]) for key in sorted(groups)]


def exponents(cells: Sequence[SeedSummary], fit: str) -> tuple[float, float]:
    """(a, b) of the least-squares fit ``gap ~ rank^a / n^b`` to the cells' gaps of ``fit`` (erm or mixup); the bounds have (½, ½).

    Cells whose mean gap is not above twice its standard error are left out: their logarithm is noise.
    """
    gaps = [(cell, cell.erm_gap if fit == "erm" else cell.mixup_gap) for cell in cells]
    clear = [(cell, gap) for cell, gap in gaps if gap.mean > 2 * gap.error]
    if len({cell.n for cell, _ in clear}) < 2 or len({cell.rank for cell, _ in clear}) < 2:
        return float("nan"), float("nan")
    rows = np.array([[1.0, np.log(cell.rank), -np.log(cell.n)] for cell, _ in clear])
    _, a, b = np.linalg.lstsq(rows, np.log([gap.mean for _, gap in clear]), rcond=None)[0]
    return float(a), float(b)


def _cell(rows: Sequence[Measured]) -> SeedSummary:
    first = rows[0]
    return SeedSummary(
        n=first.n,
        rank=first.rank,
        dimension=first.dimension,
        seeds=len(rows),
        erm_gap=Estimate.of([row.erm_gap - row.luck for row in rows]),
        mixup_gap=Estimate.of([row.mixup_gap - row.luck for row in rows]),
        erm_risk=Estimate.of([row.erm_risk for row in rows]),
        risk_change=Estimate.of([row.mixup_risk - row.erm_risk for row in rows]),
        rho=float(np.mean([row.rho for row in rows])),
        gamma=float(np.mean([row.gamma for row in rows])),
        rank_bound=float(np.mean([row.rank_bound for row in rows])),
        dimension_bound=float(np.mean([row.dimension_bound for row in rows])),
        tightest=max(row.mixup_gap / row.rank_bound for row in rows),
    )
