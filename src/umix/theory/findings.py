"""Everything that ``umix theory`` prints and plots: statements of the paper with the numbers that decide them, and series."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.integrate import quad
from scipy.stats import beta as beta_law
from threadpoolctl import threadpool_limits

from umix.theory.bounds import GroupMoments, ellipsoid_complexity, rank, whitened_trace
from umix.theory.experiment import (
    Design,
    Measured,
    SeedSummary,
    Streams,
    by_cell,
    exponents,
    gaps_over_dimension,
    run,
)
from umix.theory.glm import GLM, GLMS, Predictor, Sample
from umix.theory.lemmas import (
    Point,
    demonstration,
    factors,
    order,
    regulariser_errors,
    remainder_shares,
    remainders,
    rhos,
)
from umix.theory.losses import (
    expand,
    mixup_loss,
    mixup_loss_by_drawing,
    partner_loss,
    printed_regulariser,
    regulariser,
    rescaled_loss,
    standard_loss,
)
from umix.theory.mixing_law import MixingLaw
from umix.theory.population import Population

_EXACT = 1e-9

#: For the name of each model: the model, a sample, and its weighted fit.
Demonstrations = Mapping[str, tuple[GLM, Sample, Predictor]]


@final
@dataclass(frozen=True)
class Check:
    """A statement, its source, the number that decides it, and the interval in which it holds.

    ``refuted`` marks a reading of the paper that does not hold: its number is expected outside of the interval.
    """

    source: str
    statement: str
    value: float
    low: float
    high: float
    refuted: bool = False

    @property
    def holds(self) -> bool:
        return bool(self.low <= self.value <= self.high)

    @property
    def as_expected(self) -> bool:
        return self.holds != self.refuted


@final
@dataclass(frozen=True)
class Findings:
    """The checks, the series of both lemmas and of ρ, and the experiment's cells with the exponents (rank, n) of both gaps."""

    design: Design
    checks: list[Check]
    remainders: list[Point]
    shares: list[Point]
    errors: list[Point]
    factors: list[Point]
    rhos: list[Point]
    cells: list[SeedSummary]
    exponents: dict[str, tuple[float, float]]


def find(design: Design, streams: Streams, *, measured: Callable[[Measured], None] | None = None) -> Findings:
    """All findings of the experiment ``design``; ``measured`` is called with every measurement."""
    with threadpool_limits(1):  # several threads would slow down thousands of small matrix products
        return _find(design, streams, measured)


def _find(design: Design, streams: Streams, measured: Callable[[Measured], None] | None) -> Findings:
    examples = demonstrations(streams)
    # The lemmas come first, so that an alpha for which they do not hold raises before the experiment runs.
    checks = lemma_checks(examples, streams, alpha=design.alpha)
    rows = []
    for one in run(design, streams):
        rows.append(one)
        if measured:
            measured(one)
    cells = by_cell(rows)
    return Findings(
        design=design,
        checks=[*checks, *bound_checks(cells, gaps_over_dimension(design, streams), streams(0, "bounds"))],
        remainders=[point for one in examples.values() for point in remainders(*one, alpha=design.alpha)],
        shares=[point for one in examples.values() for point in remainder_shares(*one)],
        errors=[point for one in examples.values() for point in regulariser_errors(*one, alpha=design.alpha)],
        factors=factors(*examples["logistic"]),
        rhos=[point for model, sample, _ in examples.values() for point in rhos(model, sample)],
        cells=cells,
        exponents={fit: exponents(cells, fit) for fit in ("erm", "mixup")},
    )


def demonstrations(streams: Streams) -> Demonstrations:
    """The sample and the fit of every model on which the lemmas are computed."""
    return {name: (model, *demonstration(model, streams(0, f"lemmas {name}"))) for name, model in GLMS.items()}


def failures(checks: Sequence[Check]) -> list[Check]:
    """The checks that did not come out as expected."""
    return [check for check in checks if not check.as_expected]


def lemma_checks(examples: Demonstrations, streams: Streams, *, alpha: float) -> list[Check]:
    """The checks of lemmas A.1 and A.2 and of the law of λ, with Beta(alpha, alpha); takes a second or two."""
    mixing = MixingLaw.symmetric(alpha)
    checks = [*_law_checks(), *_partner_checks(examples, mixing, streams(0, "pairs"))]
    for name in ("logistic", "poisson"):
        slope = order(remainders(*examples[name], alpha=alpha))
        checks.append(Check("lemma A.1", f"order of the remainder in the mixing strength, {name}", slope, 2.9, 4.1))
    checks += [
        _bent_check(*examples["logistic"], mixing, streams(0, "curvature")),
        _small_alpha_check(*examples["logistic"]),
    ]
    return [*checks, *_regulariser_checks(examples, mixing)]


def _law_checks() -> Iterator[Check]:
    law = MixingLaw(1.7, 2.6).tilted()
    mass = [
        quad(lambda t, a=a, b=b: beta_law.pdf(t, a, b) * (1 - t) ** 2 / t**2, 0, 1)[0] for _, a, b in law.components()
    ]
    apart = sum(share * m for (share, _, _), m in zip(law.components(), mass, strict=True)) / law.squared_odds() - 1
    yield Check("law of λ", "E[(1-λ)²/λ²] in closed form against quadrature, Beta(1.7, 2.6)", abs(apart), 0, 1e-6)
    halves = [abs(2 * one.moment(2) / one.moment(1) - 1) for one in (law, MixingLaw.symmetric(0.3).tilted())]
    yield Check("law of λ", "E[(1-λ)²] = E[1-λ]/2 for every law", max(halves), 0, _EXACT)


def _partner_checks(examples: Demonstrations, mixing: MixingLaw, rng: np.random.Generator) -> Iterator[Check]:
    uniform, weighted, drawn = [], [], []
    for glm, sample, f in examples.values():
        exact = mixup_loss(glm, f, sample, mixing)
        scale = abs(exact - standard_loss(glm, f, sample))
        uniform.append(abs(partner_loss(glm, f, sample, mixing.tilted()) - exact) / scale)
        weighted.append(abs(partner_loss(glm, f, sample.by_weight(), mixing.tilted()) - exact) / scale)
        estimate = mixup_loss_by_drawing(glm, f, sample, mixing, draws=20_000, rng=rng)
        drawn.append(abs(estimate.mean - exact) / estimate.error)
    yield Check("lemma A.1", "pair sum against D̃ with uniform partners", max(uniform), 0, _EXACT)
    yield Check("proof of A.1", "pair sum against D̃ with partners by weight", max(weighted), 0, _EXACT, refuted=True)
    yield Check("lemma A.1", "Monte Carlo against the pair sum, in standard errors", max(drawn), 0, 4)


def _bent_check(glm: GLM, sample: Sample, f: Predictor, mixing: MixingLaw, rng: np.random.Generator) -> Check:
    """With a curved predictor R3 is not 0, and the remainder is of third order only if R3 is included."""
    half = rng.standard_normal((len(f.theta), len(f.theta)))
    bent = Predictor(f.theta, 0.2 * (half + half.T))
    ends = [abs(expand(glm, bent, sample, mixing.tilted(strength)).remainder) for strength in (1 / 64, 1 / 128)]
    slope = float(np.log2(ends[0] / ends[1]))
    return Check("lemma A.1", "order of the remainder with a quadratic f (R3 ≠ 0)", slope, 2.9, 4.1)


def _small_alpha_check(glm: GLM, sample: Sample, f: Predictor) -> Check:
    terms = expand(glm, f, sample, MixingLaw.symmetric(1e-3).tilted())
    share = abs(terms.remainder) / (abs(terms.r1) + abs(terms.r2))
    return Check("lemma A.1", "remainder over R1 + R2 is small as alpha → 0 (at 0.001)", share, 0, 0.05, refuted=True)


def _regulariser_checks(examples: Demonstrations, mixing: MixingLaw) -> Iterator[Check]:
    def apart(name: str, strength: float, form: Callable[..., float], sample: Sample | None = None) -> float:
        glm, default, f = examples[name]
        data, law = sample or default, mixing.tilted(strength)
        return abs(form(glm, f, data, law) / (rescaled_loss(glm, f, data, law) - standard_loss(glm, f, data)) - 1)

    error = apart("gaussian", 1, regulariser)
    yield Check("lemma A.2", "relative error, plain Σ, Gaussian, strength 1", error, 0, _EXACT)
    for name in ("logistic", "poisson"):
        error = apart(name, 1 / 64, regulariser)
        yield Check("lemma A.2", f"relative error, plain Σ, {name}, strength 1/64", error, 0, 2e-3)
    error = apart("gaussian", 1 / 64, printed_regulariser)
    yield Check("lemma A.2", "relative error, printed Σ with uniform partners, Gaussian", error, 0, 0.02, refuted=True)
    _, sample, _ = examples["gaussian"]
    statement = "relative error, printed Σ with partners and centre by weight, mean weight 1"
    error = apart("gaussian", 1, printed_regulariser, sample.by_weight().centred())
    yield Check("lemma A.2", statement, error, 0, _EXACT)
    doubled = Sample(sample.x, sample.y, 2 * sample.w, sample.partner)
    statement = "relative error, printed Σ, partners and centre by weight, mean weight 2"
    error = apart("gaussian", 1, printed_regulariser, doubled.by_weight().centred())
    yield Check("lemma A.2", statement, error, 0, 0.02, refuted=True)


def bound_checks(cells: Sequence[SeedSummary], gaps: Sequence[float], rng: np.random.Generator) -> list[Check]:
    """The checks of theorem 5.1: the trace behind the rank, the complexity, and the measured gaps of the experiment."""
    population = Population.drawn(d=30, r=6, rng=rng)
    x, _, _ = population.draw(400, rng)
    moments = population.moments(np.array([1.0, 2.0, 4.0]))
    r = rank(moments.weighted())
    mean_one = GroupMoments(moments.k, moments.w / (moments.k @ moments.w), moments.sigma)
    measured = ellipsoid_complexity(x, moments.weighted(), draws=400, rng=rng)
    ball = ellipsoid_complexity(x, np.eye(x.shape[1]), draws=400, rng=rng)
    length = float(np.mean(np.sum(x**2, axis=1)))
    traces = [whitened_trace(one) / r for one in (moments, mean_one)]
    return [
        Check("theorem 5.1", "rank of Σ_X over rank of E[xxᵀ]", r / rank(moments.plain()), 1, 1),
        Check("lemma A.3", "tr(Σ_X†E[xxᵀ])/rank, weights ≥ 1", traces[0], 0, 1),
        Check("lemma A.3", "tr(Σ_X†E[xxᵀ])/rank ≤ 1, weights of mean 1", traces[1], 0, 1, refuted=True),
        Check("lemma A.3", "complexity of {θᵀΣ_Xθ ≤ 1} over √(rank/n)", measured.mean / np.sqrt(r / len(x)), 0, 1),
        Check("section 5", "complexity of {‖θ‖ ≤ 1} over √(mean ‖x‖²/n)", ball.mean / np.sqrt(length / len(x)), 0, 1),
        dimension_check(gaps),
        Check("theorem 5.1", "largest mixup gap over its bound, all seeds", max(c.tightest for c in cells), -np.inf, 1),
    ]


def dimension_check(gaps: Sequence[float]) -> Check:
    """Whether ERM gaps at several dimensions d, all else equal, differ, as the bound with √(d/n) would allow."""
    apart = float(np.ptp(gaps) / abs(np.mean(gaps)))
    return Check("section 5", "gap of weighted ERM moves with d at fixed rank", apart, 1e-6, np.inf, refuted=True)
