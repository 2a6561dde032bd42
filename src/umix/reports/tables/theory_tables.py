"""Tables of ``umix theory`` for the terminal."""

import math
from collections.abc import Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

from umix.theory.findings import Check, Findings
from umix.theory.lemmas import ALPHAS, FACTOR, FORMS, Point
from umix.theory.losses import Estimate


def check_table(checks: Sequence[Check], *, refuted: bool) -> Table:
    """The checks that should hold, or the readings that should not, with the number that decides each."""
    title = "Readings that do not hold" if refuted else "Statements that hold"
    table = Table(title=title, title_justify="left")
    for name in ("of", "reading" if refuted else "statement"):
        table.add_column(name)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("holds if", no_wrap=True)
    table.add_column("verdict")
    for check in checks:
        if check.refuted == refuted:
            texts = (check.source, check.statement, number(check.value), rule(check))
            table.add_row(*map(escape, texts), verdict(check))
    return table


def verdict(check: Check) -> str:
    """``holds`` or ``does not hold``; red where the other was expected."""
    words = "holds" if check.holds else "does not hold"
    return f"[green]{words}[/green]" if check.as_expected else f"[bold red]{words}, unlike before[/bold red]"


def rule(check: Check) -> str:
    """The values that a check allows, in short.

    >>> rule(Check("", "", 0.0, 0.0, 1.0)), rule(Check("", "", 3.0, 2.9, 4.1)), rule(Check("", "", 3.0, 1e-6, math.inf))
    ('≤ 1', '2.9 … 4.1', '≥ 1e-06')
    """
    if check.low == check.high:
        return f"= {check.low:g}"
    if math.isinf(check.high):
        return f"≥ {check.low:g}"
    return f"≤ {check.high:g}" if check.low in (0, -math.inf) else f"{check.low:g} … {check.high:g}"


def remainder_table(findings: Findings) -> Table:
    """What R1 + R2 + R3 leave of the exact loss, one row for each mixing strength."""
    return _by_model(
        findings.remainders,
        f"Lemma A.1: |remainder| over the mixing strength, alpha = {findings.design.alpha:g}",
        "strength",
        "It falls with the third power; for a Gaussian model it is 0 up to rounding.",
    )


def error_table(findings: Findings) -> Table:
    """Relative errors of the readings of lemma A.2, one row for each mixing strength."""
    names = (
        "lemma, plain Σ: inputs/λ",
        "lemma, printed Σ: inputs/λ",
        "lemma, plain Σ: mixup",
        "shrinkage + var.: mixup",
    )
    table = _table(
        f"Lemma A.2: relative error over the mixing strength, alpha = {findings.design.alpha:g}, logistic model",
        ("strength", *names),
        "Error of a second-order form as a share of what mixing adds. The lemma is true of the loss on inputs over λ, "
        "with plain Σ; of the mixup loss itself shrinkage + variance is (docs/explanation/theory.md).",
    )
    logistic = [point for point in findings.errors if point.model == "logistic"]
    for strength in _places(logistic):
        table.add_row(f"{strength:g}", *(value_at(logistic, strength, curve=form) for form in FORMS.values()))
    return table


def alpha_table(findings: Findings) -> Table:
    """What becomes of both lemmas as alpha falls to 1 and below, for mixup as it is (strength 1)."""
    curves = {
        FACTOR: FACTOR,
        "lemma A.2": "lemma A.2 adds",
        "loss on inputs over λ": "over λ adds",
        "mixup loss": "mixup adds",
    }
    table = _table(
        "Lemma A.2 as alpha falls to 1, logistic model, strength 1",
        ("alpha", *curves.values()),
        "The factor is (alpha+1)/(alpha-1). At alpha ≤ 1, so at the paper's 0.5, the lemma's right-hand side is infinite; "
        "what mixing adds is not.",
    )
    for alpha in ALPHAS:
        table.add_row(f"{alpha:g}", *(value_at(findings.factors, alpha, curve=curve) for curve in curves))
    return table


def rho_table(findings: Findings) -> Table:
    """ρ of every model on balls of growing radius."""
    return _by_model(
        findings.rhos,
        "Assumption 5.1: ρ of the sample on ‖v‖ ≤ radius, at most 1/2",
        "radius",
        "The smallest ratio that a search found, so an upper limit. A logistic model flattens along every ray: no ρ holds "
        "for all of space.",
    )


def _by_model(points: Sequence[Point], title: str, place: str, caption: str) -> Table:
    """A series of every model, one row for each place on the x axis."""
    models = list(dict.fromkeys(point.model for point in points))
    table = _table(title, (place, *models), caption)
    for at in _places(points):
        table.add_row(f"{at:g}", *(value_at(points, at, model=model) for model in models))
    return table


def _table(title: str, columns: Sequence[str], caption: str) -> Table:
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for name in columns:
        table.add_column(escape(name), justify="right")
    return table


def experiment_table(findings: Findings) -> Table:
    """Measured gaps, risks and both bounds, one row for each rank and size."""
    design = findings.design
    table = Table(
        title=escape(f"Theorem 5.1: gap E[wℓ] - mean wℓ in d = {design.dimension}, {design.seeds} seeds"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        caption="Mean ± standard error over seeds; the gap of a fixed model, whose mean is 0, is taken off. mixup - ERM: change "
        f"of the risk E\\[wℓ], below 0 mixing pays. Bounds hold with probability {1 - design.delta:g} and grow like √(rank/n); "
        "the gaps like " + ", ".join(f"{scaling(*powers)} ({fit})" for fit, powers in findings.exponents.items()) + ".",
        caption_justify="left",
    )
    names = ("rank", "n", "ERM gap", "mixup gap", "mixup - ERM", "bound\n√(rank/n)", "bound\n√(d/n)")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for last, cell in enumerate(findings.cells, start=1):
        ends = last == len(findings.cells) or findings.cells[last].rank != cell.rank
        gaps = (spread(cell.erm_gap), spread(cell.mixup_gap), spread(cell.risk_change))
        bounds = (number(cell.rank_bound), number(cell.dimension_bound))
        table.add_row(str(cell.rank), str(cell.n), *gaps, *bounds, end_section=ends)
    return table


def scaling(a: float, b: float) -> str:
    """The power law of a gap in words.

    >>> scaling(1.02, 0.98), scaling(math.nan, math.nan)
    ('rank^1.02 / n^0.98', 'too few clear cells to say')
    """
    return "too few clear cells to say" if math.isnan(a) else f"rank^{a:.2f} / n^{b:.2f}"


def value_at(points: Sequence[Point], at: float, *, model: str | None = None, curve: str | None = None) -> str:
    """The value of a series at a place, in short; a series has no point where it is infinite."""
    for point in points:
        if point.at == at and model in (None, point.model) and curve in (None, point.curve):
            return number(point.value)
    return "infinite"


def number(value: float) -> str:
    """Three digits that read easily.

    >>> number(0.12345), number(31.6), number(1.5e-9), number(0.0)
    ('0.123', '31.6', '1.5e-09', '0')
    """
    if value == 0:
        return "0"
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"


def spread(estimate: Estimate) -> str:
    """``0.042±0.010``, narrow: a row of them fits a terminal."""
    return f"{estimate.mean:.3f}±{estimate.error:.3f}"


def _places(points: Sequence[Point]) -> list[float]:
    return list(dict.fromkeys(point.at for point in points))
