"""What there is, as people and programs read it: settings with their legal values, presets, what a folder holds."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from umix.commands.flag_names import as_flag
from umix.core.words import counted
from umix.errors import one_line
from umix.terminal import OUT, write_out

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from umix.bench.spec.presets import Tables
    from umix.data.checks.columns import ColumnFacts
    from umix.data.checks.data_check import DataCheck
    from umix.settings import Settings


_MOST_COLUMNS = 40  # that are shown of a wide table
_COLOURS = {"fine": "green", "look at this": "yellow", "look": "yellow", "broken": "red"}


def print_json(content: object) -> None:
    write_out(json.dumps(content, indent=2) + "\n")


@final
@dataclass(frozen=True)
class Entry:
    """One method, net or task as it is listed: its class, a column of the list, and more facts when it is shown alone."""

    kind: "type[Settings]"
    column: str = ""
    facts: Mapping[str, str | list[str]] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()  # settings that the entry's name stands for
    text: str = ""  # more about it: paragraphs and lists
    for_programs: Mapping[str, object] = field(default_factory=dict)  # facts that people read in other words

    @property
    def summary(self) -> str:
        """What it is, in one line."""
        return (self.kind.__doc__ or "").partition("\n")[0]

    def as_json(self) -> dict[str, Any]:
        return {
            "summary": self.kind.__doc__ or "",
            **self.facts,
            **self.for_programs,
            "settings": self.kind.model_json_schema(),
        }


def print_list(entries: Mapping[str, Entry], *, thing: str, column: str = "") -> None:
    """Print a line for each entry; a terminal cuts it at its right end, a pipe or file gets it whole."""
    rows = [(thing, column, "what it is"), *((name, entry.column, entry.summary) for name, entry in entries.items())]
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    for place, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False) if width]
        line = Text("  ".join([*cells, row[2]]), style="dim" if place == 0 else "")
        if place:
            line.stylize("bold", 0, len(row[0]))
        if OUT.is_terminal:
            OUT.print(line, no_wrap=True, overflow="ellipsis")
        else:
            OUT.print(line, soft_wrap=True)
    OUT.print(f"umix {thing}s NAME shows one of them with all its settings.", style="dim", highlight=False)


def print_entry(name: str, entry: Entry) -> None:
    """Print one entry whole: its facts, what its module says about it, and its settings."""
    from umix.settings import legal

    OUT.print(f"[bold]{escape(name)}[/bold]  {escape(entry.kind.__doc__ or '')}", highlight=False)
    facts = {
        fact.replace("_", " "): ", ".join(value) or "none" if isinstance(value, list) else value
        for fact, value in entry.facts.items()
    }
    if facts:
        OUT.print(_indented([(Text(f"{fact}:", style="dim"), Text(value)) for fact, value in facts.items()]))
    for paragraph in paragraphs(entry.text.replace("``", "")):
        is_item = paragraph.startswith("- ")
        OUT.print(_indented([(Text("-"), Text(paragraph[2:]))]) if is_item else Padding(Text(paragraph), (1, 0, 0, 2)))
    settings = []
    for setting, known in entry.kind.model_fields.items():
        if setting not in entry.hidden:
            default = "must be given" if known.is_required() else f"default {_value(known.default)}"
            tried = _searched(known)
            rules = f"{legal(known)}; {default}" + (f"; umix tune tries {tried}" if tried else "")
            settings.append((Text(setting, style="bold"), Text(f"{known.description or ''}\n").append(rules, "dim")))
    if settings:
        OUT.print()
        prefix = f"{entry.kind.part}." if entry.kind.part else ""
        OUT.print(Text(f"  settings (--set {prefix}NAME=VALUE)", style="dim"))
        OUT.print(_indented(settings))


def _indented(rows: Sequence[tuple[Text, Text]]) -> Padding:
    """Names on the left and texts on the right, whose further lines begin under the first."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    for row in rows:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, 2))


def _value(value: object) -> str:
    """A default as people write it."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    names = {None: "none", True: "true", False: "false", "": "none"}
    return names[value] if value is None or isinstance(value, bool) or value == "" else str(value)


def paragraphs(text: str) -> list[str]:
    r"""The paragraphs of a docstring and the items of its lists, each as one line.

    >>> paragraphs("One\nline.\n\nA list:\n- first\n  item;\n- second.")
    ['One line.', 'A list:', '- first item;', '- second.']
    """
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        begins = True
        for line in block.splitlines():
            if begins or line.lstrip().startswith("- "):
                found.append(line.strip())
            else:
                found[-1] += f" {line.strip()}"
            begins = False
    return [line for line in found if line]


def _searched(known: "FieldInfo") -> str:
    """The values that umix tune tries for a setting, in words."""
    from umix.settings import Range, Searched

    values = next((item.values for item in known.metadata if isinstance(item, Searched)), ())
    if isinstance(values, Range):
        return f"{values.low:g} to {values.high:g}" + (" (log)" if values.log else "")
    return ", ".join(map(str, values))


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


def print_data_check(found: "DataCheck") -> None:
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

    table = Table("group" if "class " in sections or not found.classes else "class")
    for split in found.counts:
        table.add_column(split, justify="right")
    if found.classes:
        table.add_row("all rows", *(cell(size, split, star=False) for split, size in found.rows.items()))
        table.add_section()
    for kind, counts in sections.items():
        for name in next(iter(counts.values())):
            cells = (cell(sizes[name], split, star=split in few[kind].get(name, ())) for split, sizes in counts.items())
            table.add_row(escape(one_line(f"{kind}{name}")), *cells)
        table.add_section()
    OUT.print(table)
    if starred:
        OUT.print(f"* fewer than {FEW_EXAMPLES} rows: too few to judge", highlight=False)


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
