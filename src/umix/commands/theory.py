"""``umix theory``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from umix.commands.flags import Json, Quiet
from umix.terminal import OUT, Bars, print_json

if TYPE_CHECKING:
    from umix.theory.findings import Findings

_QUICK: dict[str, Any] = {"sizes": (100, 400), "ranks": (2, 10), "seeds": 4}


def theory(
    *,
    figures: Annotated[Path | None, Parameter(help="Folder to write the figures into.")] = None,
    format_: Annotated[
        Literal["svg", "png", "pdf", "html"], Parameter(name="--format", help="Format of the figures.")
    ] = "svg",
    seeds: Annotated[
        int | None, Parameter(help="Populations and samples per cell of the experiment. Default: 20.")
    ] = None,
    alpha: Annotated[float, Parameter(help="Parameter of λ ~ Beta(alpha, alpha); lemma A.2 needs more than 1.")] = 2.0,
    quick: Annotated[bool, Parameter(negative="", help="A small experiment: 2 sizes, 2 ranks, 4 seeds.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int | None:
    """Compute the paper's theory: lemmas A.1 and A.2 against exact losses, theorem 5.1 against measured gaps; --figures plots."""
    from umix.core.streams import stream
    from umix.reports.charts.theory_figures import save_figures
    from umix.reports.tables.theory_tables import (
        alpha_table,
        check_table,
        error_table,
        experiment_table,
        remainder_table,
        rho_table,
    )
    from umix.store import ensure_writable
    from umix.theory.experiment import Design, cells
    from umix.theory.findings import failures, find

    settings = _QUICK if quick else {}
    design = Design(**{**settings, "alpha": alpha, **({} if seeds is None else {"seeds": seeds})})
    if figures:
        ensure_writable(figures)
    with Bars(quiet=quiet) as bars:
        bars.label = "theory"
        bars.start("experiment", total=len(cells(design)) * design.seeds, done=0)
        findings = find(
            design, lambda seed, purpose: stream(seed, "theory", purpose), measured=lambda _: bars.advance(1)
        )
    written = save_figures(findings, figures, format_=format_) if figures else []
    failed = failures(findings.checks)
    if as_json:
        print_json({**_plain(findings), "figures": [str(path) for path in written]})
    else:
        tables = (table(findings) for table in (remainder_table, error_table, alpha_table, rho_table, experiment_table))
        checks = (check_table(findings.checks, refuted=False), check_table(findings.checks, refuted=True))
        for table in (*checks, *tables):
            OUT.print(table)
            OUT.print()
        for path in written:
            OUT.print(f"Figure: {path}", highlight=False, markup=False, soft_wrap=True)
        as_expected = len(findings.checks) - len(failed)
        OUT.print(f"{as_expected} of {len(findings.checks)} checks came out as expected.", highlight=False)
    return 1 if failed else None


def _plain(findings: "Findings") -> dict[str, Any]:
    """The findings as JSON values; infinite limits of checks become null."""
    import json

    from pydantic import TypeAdapter

    from umix.theory.findings import Findings

    content: dict[str, Any] = json.loads(TypeAdapter(Findings).dump_json(findings))
    for check, plain in zip(findings.checks, content["checks"], strict=True):
        plain["as_expected"] = check.as_expected
    return content
