"""The checks of ``umix theory``: statements of the paper, each with a number that decides it, and readings that fail."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.integrate import quad
from scipy.stats import beta as beta_law

from umix.theory.bounds import ellipsoid_complexity
from umix.theory.covariance import GroupMoments, rank, whitened_trace
from umix.theory.expansion import expand
from umix.theory.glm import GLM, GLMS
from umix.theory.lemmas import demonstration, order, remainders
from umix.theory.mixing_law import MixingLaw
from umix.theory.population import Population
from umix.theory.predictor import Linear, Quadratic
from umix.theory.regulariser import printed_regulariser, regulariser
from umix.theory.sample import Sample
from umix.theory.summary import SeedSummary
from umix.theory.weighted_loss import mixup_loss, mixup_loss_by_drawing, partner_loss, rescaled_loss, standard_loss

_EXACT = 1e-9


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


def lemma_checks(streams: Callable[[str], np.random.Generator], *, alpha: float = 2.0) -> list[Check]:
    """The checks of lemmas A.1 and A.2 and of the law of λ, with Beta(alpha, alpha); takes a second or two."""
    mixing = MixingLaw.symmetric(alpha)
    settings = {name: (model, *demonstration(model, streams(f"lemmas {name}"))) for name, model in GLMS.items()}
    checks = [*_law_checks(), *_symmetry_checks(settings.values(), mixing, streams("pairs"))]
    for name in ("logistic", "poisson"):
        slope = order(remainders(*settings[name], alpha=alpha))
        checks.append(Check("lemma A.1", f"order of the remainder in the mixing strength, {name}", slope, 2.9, 4.1))
    checks += [
        _bent_check(*settings["logistic"], mixing, streams("curvature")),
        _small_alpha_check(*settings["logistic"]),
    ]
    return [*checks, *_regulariser_checks(settings, mixing)]


def bound_checks(
    cells: Sequence[SeedSummary], gaps_over_dimension: Sequence[float], rng: np.random.Generator
) -> list[Check]:
    """The checks of theorem 5.1: the trace behind the rank, the complexity, and the measured gaps of the experiment."""
    population = Population.drawn(d=30, r=6, rng=rng)
    x, _, _ = population.draw(400, rng)
    moments = population.moments(np.array([1.0, 2.0, 4.0]))
    r = rank(moments.weighted()).value
    mean_one = GroupMoments(moments.k, moments.w / (moments.k @ moments.w), moments.sigma)
    measured = ellipsoid_complexity(x, moments.weighted(), length=1.0, draws=400, rng=rng)
    ball = ellipsoid_complexity(x, np.eye(x.shape[1]), length=1.0, draws=400, rng=rng)
    trace = float(np.mean(np.sum(x**2, axis=1)))
    return [
        Check("theorem 5.1", "rank of Σ_X over rank of E[xxᵀ]", r / rank(moments.plain()).value, 1, 1),
        Check("lemma A.3", "tr(Σ_X†E[xxᵀ])/rank, weights ≥ 1", whitened_trace(moments) / r, 0, 1),
        Check(
            "lemma A.3", "tr(Σ_X†E[xxᵀ])/rank ≤ 1, weights of mean 1", whitened_trace(mean_one) / r, 0, 1, refuted=True
        ),
        Check("lemma A.3", "complexity of {θᵀΣ_Xθ ≤ 1} over √(rank/n)", measured.mean / np.sqrt(r / len(x)), 0, 1),
        Check("section 5", "complexity of {‖θ‖ ≤ 1} over √(mean ‖x‖²/n)", ball.mean / np.sqrt(trace / len(x)), 0, 1),
        dimension_check(gaps_over_dimension),
        Check("theorem 5.1", "largest mixup gap over its bound, all seeds", max(c.tightest for c in cells), -np.inf, 1),
    ]


def _law_checks() -> Iterator[Check]:
    law = MixingLaw(1.7, 2.6).tilted()
    mass = [
        quad(lambda t, a=a, b=b: beta_law.pdf(t, a, b) * (1 - t) ** 2 / t**2, 0, 1)[0] for _, a, b in law.components()
    ]
    apart = sum(share * m for (share, _, _), m in zip(law.components(), mass, strict=True)) / law.squared_odds() - 1
    yield Check("law of λ", "E[(1-λ)²/λ²] in closed form against quadrature, Beta(1.7, 2.6)", abs(apart), 0, 1e-6)
    halves = [abs(2 * one.moment(2) / one.moment(1) - 1) for one in (law, MixingLaw.symmetric(0.3).tilted())]
    yield Check("law of λ", "E[(1-λ)²] = E[1-λ]/2 for every law", max(halves), 0, _EXACT)


def _symmetry_checks(
    settings: Iterable[tuple[GLM, Sample, Linear]], mixing: MixingLaw, rng: np.random.Generator
) -> Iterator[Check]:
    same, weighted, drawn = [], [], []
    for glm, sample, f in settings:
        exact = mixup_loss(glm, f, sample, mixing)
        scale = abs(exact - standard_loss(glm, f, sample))
        same.append(abs(partner_loss(glm, f, sample, mixing.tilted()) - exact) / scale)
        weighted.append(abs(partner_loss(glm, f, sample.by_weight(), mixing.tilted()) - exact) / scale)
        estimate = mixup_loss_by_drawing(glm, f, sample, mixing, draws=20_000, rng=rng)
        drawn.append(abs(estimate.mean - exact) / estimate.error)
    yield Check("lemma A.1", "pair sum against D̃ with uniform partners", max(same), 0, _EXACT)
    yield Check("proof of A.1", "pair sum against D̃ with partners by weight", max(weighted), 0, _EXACT, refuted=True)
    yield Check("lemma A.1", "Monte Carlo against the pair sum, in standard errors", max(drawn), 0, 4)


def _bent_check(glm: GLM, sample: Sample, f: Linear, mixing: MixingLaw, rng: np.random.Generator) -> Check:
    """With a curved predictor R3 is not 0, and the remainder is of third order only if R3 is included."""
    half = rng.standard_normal((len(f.theta), len(f.theta)))
    bent = Quadratic(f.theta, 0.2 * (half + half.T))
    ends = [abs(expand(glm, bent, sample, mixing.tilted(strength)).remainder) for strength in (1 / 64, 1 / 128)]
    return Check(
        "lemma A.1", "order of the remainder with a quadratic f (R3 ≠ 0)", float(np.log2(ends[0] / ends[1])), 2.9, 4.1
    )


def _small_alpha_check(glm: GLM, sample: Sample, f: Linear) -> Check:
    terms = expand(glm, f, sample, MixingLaw.symmetric(1e-3).tilted())
    share = abs(terms.remainder) / (abs(terms.r1) + abs(terms.r2))
    return Check("lemma A.1", "remainder over R1 + R2 is small as alpha → 0 (at 0.001)", share, 0, 0.05, refuted=True)


def _regulariser_checks(settings: dict[str, tuple[GLM, Sample, Linear]], mixing: MixingLaw) -> Iterator[Check]:
    def apart(name: str, strength: float, form: Callable[..., float], sample: Sample | None = None) -> float:
        glm, default, f = settings[name]
        data, law = sample or default, mixing.tilted(strength)
        return abs(form(glm, f, data, law) / (rescaled_loss(glm, f, data, law) - standard_loss(glm, f, data)) - 1)

    yield Check(
        "lemma A.2", "relative error, plain Σ, Gaussian, strength 1", apart("gaussian", 1, regulariser), 0, _EXACT
    )
    for name in ("logistic", "poisson"):
        error = apart(name, 1 / 64, regulariser)
        yield Check("lemma A.2", f"relative error, plain Σ, {name}, strength 1/64", error, 0, 2e-3)
    error = apart("gaussian", 1 / 64, printed_regulariser)
    yield Check("lemma A.2", "relative error, printed Σ with uniform partners, Gaussian", error, 0, 0.02, refuted=True)
    _, sample, _ = settings["gaussian"]
    error = apart("gaussian", 1, printed_regulariser, sample.by_weight().centred())
    yield Check(
        "lemma A.2", "relative error, printed Σ with partners and centre by weight, mean weight 1", error, 0, _EXACT
    )
    doubled = Sample(sample.x, sample.y, 2 * sample.w, sample.partner)
    error = apart("gaussian", 1, printed_regulariser, doubled.by_weight().centred())
    yield Check(
        "lemma A.2",
        "relative error, printed Σ, partners and centre by weight, mean weight 2",
        error,
        0,
        0.02,
        refuted=True,
    )


def failures(checks: Sequence[Check]) -> list[Check]:
    """The checks that did not come out as expected."""
    return [check for check in checks if not check.as_expected]


def dimension_check(gaps: Sequence[float]) -> Check:
    """Whether ERM gaps at several dimensions d, all else equal, differ, as the bound with √(d/n) would allow."""
    apart = float(np.ptp(gaps) / abs(np.mean(gaps)))
    return Check("section 5", "gap of weighted ERM moves with d at fixed rank", apart, 1e-6, np.inf, refuted=True)
