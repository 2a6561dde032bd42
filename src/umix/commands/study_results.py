"""What a study has come to, for people and programs."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from rich.markup import escape

from umix.commands.catalogue import print_json
from umix.commands.execution import run_json
from umix.commands.study_plan import StudyPlan
from umix.terminal import ERR, OUT

if TYPE_CHECKING:
    from umix.bench.runs.failure import Failure
    from umix.bench.runs.record import RunRecord


@final
@dataclass(frozen=True)
class Results:
    """Records and failures by the keys of their runs."""

    records: "dict[str, RunRecord]"
    failures: "dict[str, Failure]"


def print_results(made: StudyPlan, results: Results, select: str | None) -> None:
    """Warnings, a comparison per task, failed runs, and where to look further."""
    for label, warning in _warnings(made, results.records):
        ERR.print(f"[yellow]warning:[/yellow] {escape(label)}: {escape(warning)}", highlight=False, soft_wrap=True)
    if results.records:
        _print_comparison(made, results, select)
    for cell in made.grid.cells:
        if (failure := results.failures.get(cell.key)) is not None:
            name = f"{cell.task} · {cell.label} · seed {cell.spec.seed}"
            OUT.print(f"[red]failed:[/red] {escape(name)}: {escape(failure.sentence)}", highlight=False, soft_wrap=True)
    if results.failures:
        said = "The same command tries failed runs again; failed.json in a run's folder has the whole error."
        OUT.print(said, highlight=False, soft_wrap=True)
    said = f"Records: {made.out}/ (one folder per run). More: umix table {made.out} --groups; umix select {made.out}"
    OUT.print(said, highlight=False, markup=False, soft_wrap=True)


def _print_comparison(made: StudyPlan, results: Results, select: str | None) -> None:
    from umix.reports.comparison import compare
    from umix.reports.tables.comparison_tables import gains_grid, rates_grid
    from umix.reports.tables.failed_runs import with_failed
    from umix.reports.tables.formats import terminal

    runs: dict[str, dict[str, list[RunRecord]]] = {}
    failed: dict[str, Counter[str]] = {}
    for cell in made.grid.cells:
        if cell.key in results.records:
            runs.setdefault(cell.task, {}).setdefault(cell.label, []).append(results.records[cell.key])
        elif cell.key in results.failures:
            failed.setdefault(cell.task, Counter())[cell.label] += 1
    there = {cell.label: cell.spec.method for cell in made.grid.cells if cell.key in results.records}
    baseline = next((label for label, method in there.items() if method == "erm"), next(iter(there)))
    comparison = compare(runs, select=select, baseline=baseline)
    for note in comparison.notes:
        ERR.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    for task, cells in comparison.cells.items():
        OUT.print(terminal(with_failed(rates_grid(comparison, task), failed.get(task, {}))))
        if any(cell.gains for cell in cells.values()):
            OUT.print(terminal(gains_grid(comparison, task)))


def _warnings(made: StudyPlan, records: "dict[str, RunRecord]") -> list[tuple[str, str]]:
    """Each warning once per task and method, with the seeds it is about."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for cell in made.grid.cells:
        for warning in records[cell.key].warnings if cell.key in records else ():
            seeds.setdefault((f"{cell.task} · {cell.label}", warning), []).append(cell.spec.seed)
    return [(f"{name} · seed {', '.join(map(str, found))}", warning) for (name, warning), found in seeds.items()]


def print_study_json(made: StudyPlan, results: Results, select: str | None) -> None:
    """All runs and failures for programs."""
    records, failures = results.records, results.failures
    runs = [
        {"label": cell.label, **run_json(record, select if select is None or record.has(select) else None)}
        for cell in made.grid.cells
        if (record := records.get(cell.key)) is not None
    ]
    failed = [
        {"label": cell.label, **failures[cell.key].model_dump(mode="json")}
        for cell in made.grid.cells
        if cell.key in failures
    ]
    print_json({"runs": runs, "failed": failed, "skipped": list(made.grid.skipped)})
