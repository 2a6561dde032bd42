"""``umix tasks``, ``umix nets``, ``umix methods`` and ``umix presets``: lists of what there is, and one of it whole."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, final

from cyclopts import Parameter
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from umix.commands.flags import Json
from umix.errors import UserError, unknown
from umix.registry import Registry
from umix.terminal import ERR, OUT, print_json

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from umix.bench.spec.presets import Tables
    from umix.methods.method import Method
    from umix.settings import Settings


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


def tasks(
    name: Annotated[str | None, Parameter(help="A task, or table, arrays, images or text.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """List the tasks, a line for each; with NAME show one with all its options."""
    from umix.data.registry import OWN, TASKS

    own_data = {"table": "FILE.csv", "text": "FILE.csv --text", "arrays": "FILE.npz", "images": "FOLDER/"}
    entries = {known: Entry(kind) for known, kind in TASKS.items()}
    entries |= {own_data[kind]: Entry(OWN[kind], hidden=frozenset({"path"})) for kind in own_data}
    _show(entries, name, other=own_data, registry=TASKS, as_json=as_json)
    _print_problems(TASKS)


def nets(
    name: Annotated[str | None, Parameter(help="A net, or a library of nets such as hf.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """List the nets and the libraries that know others, a line for each; with NAME show one with all its options."""
    from umix.models.library import install_command, installed
    from umix.models.registry import NETS

    entries, usages = {}, {}
    for known, kind in NETS.items():
        usages[known] = kind.usage()
        state = "built in"
        facts: dict[str, str | list[str]] = {}
        if kind.library:
            state = "installed" if installed(kind.library) else "not installed"
            how = "" if installed(kind.library) else f": {install_command(kind.library, kind.extra)}"
            facts["library"] = f"{kind.library}, {state}{how}"
        hidden = frozenset({*(kind.options_in(kind.usage()) or {}), *kind.from_data})
        entries[kind.usage()] = Entry(kind, state, facts, hidden)
    _show(entries, name, other=usages, registry=NETS, column="library", as_json=as_json)
    _print_problems(NETS)


def methods(name: Annotated[str | None, Parameter(help="A method.")] = None, *, as_json: Json = False) -> None:
    """List the methods, a line for each; with NAME show one with its paper, its stages and all its hyperparameters."""
    from umix.methods.method import DIFFERS_EVERYWHERE
    from umix.methods.registry import METHODS

    entries = {}
    for known, kind in METHODS.items():
        facts: dict[str, str | list[str]] = {
            "paper": kind.paper,
            "group_labels": group_labels(kind),
            "stages_before_the_fit": list(kind.stages),
        }
        said = (sys.modules[kind.__module__].__doc__ or "").partition("\n")[2]  # its first line is about the paper
        said = f"{said.rstrip()}\n\n{DIFFERS_EVERYWHERE}"
        needs = {
            "needs_training_groups": kind.needs_groups_if or kind.needs_groups,
            "needs_validation_groups": kind.needs_val_groups,
            "needs_groups_of_a_few_rows": kind.needs_some_groups is True,
        }
        entries[known] = Entry(kind, group_labels(kind), facts, text=said, for_programs=needs)
    _show(entries, name, other={}, registry=METHODS, column="uses group labels", as_json=as_json)
    _print_problems(METHODS)


def group_labels(kind: "type[Method]") -> str:
    """What a method uses of the group labels, beside selecting the epoch and reporting."""
    if kind.uses_known_groups:
        return "as far as known"
    if kind.needs_groups_if.startswith("if "):
        return f"depends on {kind.needs_groups_if.removeprefix('if ')}"
    needs_groups: object = kind.needs_groups  # a property where it depends on the settings
    if needs_groups:
        return "to train" if needs_groups is True or kind.needs_groups_if else "depends on its settings"
    if kind.needs_some_groups is True:
        return "of a few rows, to train"
    return "validation groups to train" if kind.needs_val_groups else "none"


def _show(
    entries: dict[str, Entry],
    name: str | None,
    *,
    other: dict[str, str],
    registry: Registry[Any],
    as_json: bool,
    column: str = "",
) -> None:
    """Print all entries, or the one called ``name``; ``other`` are other names of entries."""
    if name is None:
        if as_json:
            print_json({known: entry.as_json() for known, entry in entries.items()})
        else:
            _print_list(entries, thing=registry.thing, column=column)
        return
    title = other.get(name, name)
    if title not in entries:
        registry.get(name)  # raises where it is a plug-in that cannot be used
        raise unknown(registry.thing, name, {*entries, *other})
    if as_json:
        print_json({"name": title, **entries[title].as_json()})
    else:
        _print_entry(title, entries[title])


def presets(
    name: Annotated[
        str | None,
        Parameter(help="A task; table, arrays, images or text; or the path of data of your own. Else all are listed."),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Show the settings that the presets (run --preset) of NAME start from, or what there are presets for."""
    from umix.bench.spec.presets import presets_for
    from umix.data.registry import OWN, TASKS, source_kind

    sources = {**TASKS, **OWN}
    if name is None:
        _print_preset_names(
            {name: (kind.__doc__ or "", list(presets_for(kind))) for name, kind in sources.items()}, as_json=as_json
        )
        return
    try:
        tables = presets_for(OWN[name] if name in OWN else source_kind(name)[0])
    except UserError:
        raise unknown("task, kind of data or path", name, sources) from None
    if as_json:
        print_json(tables)
    else:
        _print_presets(tables, f"presets of {name}")


def _print_problems(registry: Registry[Any]) -> None:
    """Say on stderr which plug-ins of installed packages cannot be used, and why."""
    for plug_in in registry.plug_ins:
        if plug_in.problem:
            ERR.print(f"note: {plug_in.problem}", highlight=False, markup=False, soft_wrap=True)


def _print_list(entries: Mapping[str, Entry], *, thing: str, column: str = "") -> None:
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


def _print_entry(name: str, entry: Entry) -> None:
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
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        begins = True
        for line in block.splitlines():
            if begins or line.lstrip().startswith("- "):
                blocks.append(line.strip())
            else:
                blocks[-1] += f" {line.strip()}"
            begins = False
    return [line for line in blocks if line]


def _searched(known: "FieldInfo") -> str:
    """The values that umix tune tries for a setting, in words."""
    from umix.settings import Range, Searched

    values = next((item.values for item in known.metadata if isinstance(item, Searched)), ())
    if isinstance(values, Range):
        return f"{values.low:g} to {values.high:g}" + (" (log)" if values.log else "")
    return ", ".join(map(str, values))


def _print_preset_names(entries: Mapping[str, tuple[str, list[str]]], *, as_json: bool) -> None:
    """Print a line for each name: what it is and how its presets are called."""
    if as_json:
        print_json({name: {"summary": text, "presets": presets} for name, (text, presets) in entries.items()})
        return
    table = Table("name", "presets", "what", box=None, padding=(0, 2))
    for name, (text, presets) in entries.items():
        table.add_row(f"[bold]{name}[/bold]", ", ".join(presets), escape(text.partition("\n")[0]))
    OUT.print(table)


def _print_presets(presets: "Mapping[str, Tables]", title: str) -> None:
    """All settings of a task's presets, a row each."""
    table = Table("preset", "part", "setting", "value", title=escape(title), title_justify="left")
    for name, tables in presets.items():
        for part, values in tables.items():
            parts = {key: value for key, value in values.items() if isinstance(value, dict)}
            table.add_row(name, part, *_columns({key: value for key, value in values.items() if key not in parts}))
            for inner, settings in parts.items():
                table.add_row(name, f"{part}.{inner}", *_columns(settings))
        table.add_section()
    OUT.print(table)


def _columns(values: Mapping[str, Any]) -> tuple[str, str]:
    return "\n".join(values), "\n".join(escape(json.dumps(value)) for value in values.values())
