"""``umix doctor``."""

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from umix.commands.flags import DataFlags, Json, Set, as_flag, parse_settings
from umix.core.words import counted
from umix.errors import Setting, one_line
from umix.terminal import ERR, OUT, print_json

if TYPE_CHECKING:
    from umix.bench.spec.run_spec import RunSpec
    from umix.data.checks.data_check import ColumnFacts, DataCheck
    from umix.data.task import Task

_MOST_COLUMNS = 40  # that are shown of a wide table
_COLOURS = {"fine": "green", "look at this": "yellow", "look": "yellow", "broken": "red"}


def doctor(
    task: Annotated[str | None, Parameter(help="A task with a folder of files, or the path of your own data.")] = None,
    *,
    set_: Set = (),
    data: DataFlags | None = None,
    as_json: Json = False,
) -> int | None:
    """Show versions, devices and extras; with TASK check its data without training.

    The verdict is "fine", "look at this" (something is listed that may be wrong) or "broken" (cannot be trained on: exit code 2).
    TASK is a name, whose folder is compared with what was published, or the path of your own data, with the same flags as for
    umix run. Tables, arrays and texts are read as for a run, and the columns of a table are listed; of a folder every image is
    opened.
    """
    from umix.bench.doctor import check, facts

    if task is None:
        machine = facts()
        if as_json:
            print_json(machine)
        else:
            _print_facts(machine, "umix doctor")
        return None
    data = data or DataFlags()
    found = check(task, data.root, parse_settings(set_) | data.settings())
    if as_json:
        findings = [finding.as_json(as_flag) for finding in found.all_findings]
        rows = {"rows": found.rows} if found.rows else {}
        known = {**dataclasses.asdict(found), "folder": str(found.folder), "findings": findings}
        print_json({"verdict": found.verdict, "findings": findings, **known, **rows})
    else:
        _print_data_check(found)
    return 2 if found.verdict == "broken" else 0


def _print_facts(facts: Mapping[str, Mapping[str, object]], title: str) -> None:
    """Named values in sections."""
    table = Table(title=title, title_justify="left", show_header=False)
    for section, entries in facts.items():
        for name, value in entries.items():
            table.add_row(section, name, escape(str(value)))
        table.add_section()
    OUT.print(table)


def _print_data_check(found: "DataCheck") -> None:
    """What was found in a folder or a file: the verdict, the findings, the counts, and how it was read."""
    findings = found.all_findings
    many = f", {counted(len(findings), 'finding')}" if findings else ""
    opened = f", {found.images:,} images opened" if found.images else ""
    verdict = f"[{_COLOURS[found.verdict]}]{found.verdict}[/]"
    OUT.print(f"{escape(str(found.folder))}: {verdict}{many}{opened}", highlight=False, soft_wrap=True)
    if findings:
        table = Table.grid(padding=(0, 1))
        for finding in findings:
            table.add_row(f"[{_COLOURS[finding.severity]}]{finding.severity}:[/]", Text(finding.message(as_flag)))
        OUT.print()
        OUT.print(table)
    if found.columns:
        OUT.print()
        _print_columns(found.columns)
    if found.counts:
        OUT.print()
        _print_counts(found)
    for note in found.notes:
        OUT.print(f"note: {escape(one_line(note))}", highlight=False, soft_wrap=True)
    if found.allow_subset:
        for mismatch in found.mismatches:
            OUT.print(f"[yellow]allowed:[/yellow] {escape(mismatch)}", highlight=False, soft_wrap=True)


def _print_columns(columns: "Sequence[ColumnFacts]") -> None:
    """Print a row for each column, of a wide table for the first ones."""
    table = Table("column", "role", "read as")
    table.add_column("missing", justify="right")
    table.add_column("example", no_wrap=True, overflow="ellipsis")
    for one in columns[:_MOST_COLUMNS]:
        example = Text(one_line(one.example or ""))
        table.add_row(
            Text(one_line(one.name)), one.role, one.type or "–", f"{one.missing:.1%}".replace("%", " %"), example
        )
    OUT.print(table)
    if len(columns) > _MOST_COLUMNS:
        more = counted(len(columns) - _MOST_COLUMNS, "more column")
        OUT.print(f"… and {more}; --json lists all.", highlight=False)
    if texts := [one.name for one in columns if one.role == "input" and one.type == "text"]:
        OUT.print(
            f"Texts ({escape(one_line(', '.join(texts)))}) become numbers before the model. An export to .onnx or .pt2 takes these "
            "numbers; one to MLflow takes the texts.",
            highlight=False,
            soft_wrap=True,
        )


def _print_counts(found: "DataCheck") -> None:
    """Print the rows of every class and group in every split; those of val and test that are too few to judge have a star."""
    from umix.core.statistics import FEW_EXAMPLES
    from umix.data.checks.group_findings import too_small

    sections = {"": found.counts}
    if found.classes and found.classes != found.counts:
        sections = {"class ": found.classes, "": found.counts}
    few = {kind: too_small(counts) for kind, counts in sections.items()}
    starred = {split for small in few.values() for splits in small.values() for split in splits}

    def cell(size: int, split: str, *, star: bool) -> str:
        return f"{size:,}" + ("*" if star else " " if split in starred else "")

    groups = [one.name for role in ("label", "group") for one in found.columns if one.role == role]
    of_groups = f"group ({', '.join(groups)})" if groups else "group"
    table = Table(escape(one_line(of_groups)) if "class " in sections or not found.classes else "class")
    for split in found.counts:
        table.add_column(split, justify="right")
    if found.classes:
        table.add_row("all rows", *(cell(size, split, star=False) for split, size in found.rows.items()))
        table.add_section()
    for kind, counts in sections.items():
        for name in next(iter(counts.values())):
            cells = (cell(sizes[name], split, star=split in few[kind].get(name, ())) for split, sizes in counts.items())
            table.add_row(escape(one_line(f"{kind}{found.titles.get(name, name)}")), *cells)
        table.add_section()
    OUT.print(table)
    if starred:
        OUT.print(f"* fewer than {FEW_EXAMPLES} rows: shown, but decides only if clearly the worst", highlight=False)


def table_task(spec: "RunSpec") -> "Task | None":
    """The task of a run on a table, which is read once; None for other data. What is most suspicious is said on stderr."""
    from umix.data.checks.data_check import first_findings
    from umix.data.rows.table_file import read_table
    from umix.data.tables.source import TableSource

    source: object = spec.plan.source
    if not isinstance(source, TableSource):
        return None
    frame = read_table(source.path)
    if source.fold in (None, 1) and (findings := first_findings(source, frame)):
        about_data = {
            key: value for key, value in spec.settings.items() if key.removeprefix("task.") in type(source).model_fields
        }
        command = doctor_command(spec.task, about_data)
        words = f"note: {findings[0].message(as_flag)} All findings: {command}"
        ERR.print(words, highlight=False, markup=False, soft_wrap=True)
    return source.task(frame)


def doctor_command(task: str, settings: Mapping[str, object]) -> str:
    """The command that checks the data of a run with these settings of the task.

    >>> print(doctor_command("my people.csv", {"task.label": "income", "task.drop": ["age, in years"]}))
    umix doctor 'my people.csv' --label income --set 'drop=["age, in years"]'
    """
    words = ["umix", "doctor", shlex.quote(task)]
    for key, value in settings.items():
        name = key.removeprefix("task.")
        if isinstance(value, list | tuple):
            words += ["--set", shlex.quote(f"{name}={json.dumps(list(value))}")]
        else:
            words.append(as_flag(Setting(name, shlex.quote(str(value)))))
    return " ".join(words)
