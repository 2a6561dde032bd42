"""What there is, as people and programs read it: settings with their legal values, presets, what a folder holds."""

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from umix.settings import Settings, legal
from umix.terminal import OUT

if TYPE_CHECKING:
    from umix.bench.spec.presets import Tables
    from umix.data.checks.data_check import DataCheck


def print_json(content: object) -> None:
    sys.stdout.write(json.dumps(content, indent=2) + "\n")


def print_catalogue(
    entries: Mapping[str, tuple[type[Settings], str, dict[str, Any]]], *, as_json: bool, hidden: tuple[str, ...] = ()
) -> None:
    """Print each class with its facts and settings, but for people without those that the entry's name stands for."""
    if as_json:
        print_json(
            {
                name: {"summary": text, **facts, "settings": kind.model_json_schema()}
                for name, (kind, text, facts) in entries.items()
            }
        )
        return
    for name, (kind, text, facts) in entries.items():
        OUT.print(f"[bold]{escape(name)}[/bold]  {escape(text)}", highlight=False)
        for fact, value in facts.items():
            words = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
            listed = ", ".join(words) or "none" if isinstance(words, list) else words
            OUT.print(
                f"  {fact.replace('_', ' ')}: {listed}", highlight=False, style="dim", markup=False, soft_wrap=True
            )
        table = Table(
            "setting", "legal", "default", "meaning", box=None, padding=(0, 2), show_header=bool(kind.model_fields)
        )
        for field_name, field in kind.model_fields.items():
            if field_name in hidden:
                continue
            default = "must be given" if field.is_required() else str(field.default)
            table.add_row(*map(escape, (field_name, legal(field), default, field.description or "")))
        OUT.print(table)


def print_preset_names(entries: Mapping[str, tuple[str, list[str]]], *, as_json: bool) -> None:
    """Print a line for each name: what it is and how its presets are called."""
    if as_json:
        print_json({name: {"summary": text, "presets": presets} for name, (text, presets) in entries.items()})
        return
    table = Table("name", "presets", "what", box=None, padding=(0, 2))
    for name, (text, presets) in entries.items():
        table.add_row(f"[bold]{name}[/bold]", ", ".join(presets), escape(text.partition("\n")[0]))
    OUT.print(table)


def print_presets(presets: "Mapping[str, Tables]", title: str) -> None:
    """All settings of a task's presets, a row each."""
    table = Table("preset", "part", "setting", "value", title=escape(title), title_justify="left")
    for name, tables in presets.items():
        for part, values in tables.items():
            own = {key: value for key, value in values.items() if isinstance(value, dict)}
            table.add_row(name, part, *_columns({key: value for key, value in values.items() if key not in own}))
            for inner, settings in own.items():
                table.add_row(name, f"{part}.{inner}", *_columns(settings))
        table.add_section()
    OUT.print(table)


def print_data_check(found: "DataCheck", title: str) -> None:
    """What was found in a folder or a file: counts, then problems."""
    table = Table(
        "group" if found.counts != found.classes else "class", *found.counts, title=escape(title), title_justify="left"
    )
    if found.classes:
        table.add_row("all rows", *(f"{n:,}" for n in found.rows.values()), end_section=True)
    if found.classes and found.counts != found.classes:
        _add_counts(table, found.classes, "class ")
    _add_counts(table, found.counts)
    OUT.print(table)
    for problem in found.problems:
        OUT.print(f"[red]wrong:[/red] {escape(str(problem))}", highlight=False, soft_wrap=True)
    for note in found.notes:
        OUT.print(f"note: {escape(note)}", highlight=False, soft_wrap=True)
    for mismatch in found.mismatches:
        allowed = "allowed" if found.allow_subset else "wrong"
        OUT.print(f"[yellow]{allowed}:[/yellow] {escape(mismatch)}", highlight=False, soft_wrap=True)
    verdict = "fine" if found.fine else "not fine"
    opened = f", {found.images:,} images opened" if found.images else ""
    OUT.print(f"{escape(str(found.folder))}: {verdict}{opened}", highlight=False, soft_wrap=True)


def _add_counts(table: Table, counts: Mapping[str, Mapping[str, int]], kind: str = "") -> None:
    """A row for each name, with its number in every split."""
    for name in next(iter(counts.values())):
        table.add_row(escape(f"{kind}{name}"), *(f"{sizes[name]:,}" for sizes in counts.values()))
    table.add_section()


def _columns(values: Mapping[str, Any]) -> tuple[str, str]:
    return "\n".join(values), "\n".join(escape(json.dumps(value)) for value in values.values())


def print_facts(facts: Mapping[str, Mapping[str, object]], title: str) -> None:
    """Named values in sections."""
    table = Table(title=title, title_justify="left", show_header=False)
    for section, entries in facts.items():
        for name, value in entries.items():
            table.add_row(section, name, escape(str(value)))
        table.add_section()
    OUT.print(table)
