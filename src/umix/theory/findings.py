"""Computes everything that ``umix theory`` prints and plots."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from threadpoolctl import threadpool_limits

from umix.theory.checks import Check, bound_checks, lemma_checks
from umix.theory.experiment import Design, Measured, Streams, gaps_over_dimension, run
from umix.theory.glm import GLMS
from umix.theory.lemmas import Point, demonstration, factors, regulariser_errors, remainder_shares, remainders, rhos
from umix.theory.summary import SeedSummary, by_cell, exponents


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
    # The lemmas come first, so that an alpha for which they do not hold raises before the experiment runs.
    checks = lemma_checks(lambda purpose: streams(0, purpose), alpha=design.alpha)
    settings = {name: (model, *demonstration(model, streams(0, f"lemmas {name}"))) for name, model in GLMS.items()}
    rows = []
    with threadpool_limits(1):  # several threads would slow down thousands of small matrix products
        for one in run(design, streams):
            rows.append(one)
            if measured:
                measured(one)
    cells = by_cell(rows)
    return Findings(
        design=design,
        checks=[*checks, *bound_checks(cells, gaps_over_dimension(design, streams), streams(0, "bounds"))],
        remainders=[point for s in settings.values() for point in remainders(*s, alpha=design.alpha)],
        shares=[point for s in settings.values() for point in remainder_shares(*s)],
        errors=[point for s in settings.values() for point in regulariser_errors(*s, alpha=design.alpha)],
        factors=factors(*settings["logistic"]),
        rhos=[point for model, sample, _ in settings.values() for point in rhos(model, sample, streams(0, "rho"))],
        cells=cells,
        exponents={fit: exponents(cells, fit) for fit in ("erm", "mixup")},
    )
