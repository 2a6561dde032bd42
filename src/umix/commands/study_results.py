"""Prints the results of a study."""

from typing import TYPE_CHECKING

from rich.markup import escape

from umix.commands.execution import run_json
from umix.terminal import ERR, OUT, print_json

if TYPE_CHECKING:
    from umix.api.study_result import StudyResult


def print_results(result: "StudyResult") -> None:
    """Print warnings, a comparison per task, failed runs, and commands that show more."""
    for label, warning in _warnings(result):
        ERR.print(f"[yellow]warning:[/yellow] {escape(label)}: {escape(warning)}", highlight=False, soft_wrap=True)
    if result.records:
        table = result.table()
        for note in table.comparison.notes:
            ERR.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
        OUT.print(table.renderable())
    for name, failure in result.failures.items():
        OUT.print(f"[red]failed:[/red] {escape(name)}: {escape(failure.sentence)}", highlight=False, soft_wrap=True)
    if result.failures:
        message = "The same command tries failed runs again; failed.json in a run's folder has the whole error."
        OUT.print(message, highlight=False, soft_wrap=True)
    out = result.plan.grid.places.out
    message = f"Records: {out}/ (one folder per run). More: umix table {out} --groups; umix table {out} --select all"
    OUT.print(message, highlight=False, markup=False, soft_wrap=True)


def _warnings(result: "StudyResult") -> list[tuple[str, str]]:
    """Every warning once per task, with the methods and seeds that it is about."""
    about: dict[tuple[str, str], dict[str, list[int]]] = {}
    for task, methods in result.records.items():
        for label, records in methods.items():
            for record in records:
                for warning in record.warnings:
                    about.setdefault((task, warning), {}).setdefault(label, []).append(record.seed)
    found = []
    for (task, warning), by_method in about.items():
        if len(by_method) > 1 and by_method.keys() == result.records[task].keys():
            found.append((f"{task} · all methods", warning))
            continue
        for label, seeds in by_method.items():
            found.append((f"{task} · {label} · seed {', '.join(map(str, seeds))}", warning))
    return found


def print_study_json(result: "StudyResult") -> None:
    """Print all runs and failures as JSON."""
    from umix.reports.arrange import decided_rows

    select = result.select
    runs = [
        {
            "label": label,
            "learner": record.net,
            **run_json(record, select if select is None or record.has(select) else None),
        }
        for methods in decided_rows(result.records, select=select).values()
        for label, records in methods.items()
        for record in records
    ]
    failed = [
        {"label": entry.label, **failure.model_dump(mode="json")} for entry, failure in result.failed_entries.items()
    ]
    print_json({"runs": runs, "failed": failed, "skipped": list(result.skipped)})
