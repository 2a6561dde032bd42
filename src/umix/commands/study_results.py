"""What a study has come to, for people and programs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from rich.markup import escape

from umix.catalogue import print_json
from umix.commands.execution import run_json
from umix.commands.study_plan import StudyPlan
from umix.terminal import ERR, OUT

if TYPE_CHECKING:
    from umix.bench.failure import Failure
    from umix.bench.record import RunRecord


@final
@dataclass(frozen=True)
class Results:
    """Records and failures by the keys of their runs."""

    records: "dict[str, RunRecord]"
    failures: "dict[str, Failure]"


def print_results(made: StudyPlan, results: Results, select: str | None) -> None:
    """Warnings, a comparison per task, failed runs, and where to look further."""
    from umix.report.comparison import compare
    from umix.report.tables import comparison_table

    records, failures = results.records, results.failures
    for label, warning in _warnings(made, records):
        ERR.print(f"[yellow]warning:[/yellow] {escape(label)}: {escape(warning)}", highlight=False, soft_wrap=True)
    for task in dict.fromkeys(cell.task for cell in made.grid.cells):
        runs: dict[str, list[RunRecord]] = {}
        for cell in made.grid.cells:
            if cell.task == task and cell.key in records:
                runs.setdefault(cell.label, []).append(records[cell.key])
        if runs:
            first = next(iter(runs.values()))[0]
            sizes = {name: group.size for name, group in first.summary(select).groups.items()}
            OUT.print(comparison_table(compare(runs, select=first.rule(select)), title=escape(task), test_sizes=sizes))
    for cell in made.grid.cells:
        if cell.key in failures:
            name = f"{cell.task} · {cell.label} · seed {cell.spec.seed}"
            failure = failures[cell.key]
            OUT.print(f"[red]failed:[/red] {escape(name)}: {escape(failure.sentence)}", highlight=False, soft_wrap=True)
    if failures:
        OUT.print(
            "The same command tries failed runs again; failed.json in a run's folder has the whole error.",
            highlight=False,
            soft_wrap=True,
        )
    OUT.print(f"Records: {made.out}/ (one folder per run)", highlight=False, markup=False, soft_wrap=True)


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
        {"label": cell.label, **run_json(records[cell.key], select)} for cell in made.grid.cells if cell.key in records
    ]
    failed = [
        {"label": cell.label, **failures[cell.key].model_dump(mode="json")}
        for cell in made.grid.cells
        if cell.key in failures
    ]
    print_json({"runs": runs, "failed": failed, "skipped": list(made.grid.skipped)})
