"""``umix tasks``, ``umix nets``, ``umix methods`` and ``umix presets``: lists of what there is, and one of it whole."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from umix.commands.catalogue import (
    Entry,
    print_entry,
    print_json,
    print_list,
    print_preset_names,
    print_presets,
)
from umix.commands.flags import Json
from umix.errors import UserError, unknown
from umix.registry import Registry
from umix.terminal import ERR

if TYPE_CHECKING:
    from umix.methods.method import Method


def tasks(
    name: Annotated[str | None, Parameter(help="A task, or table, arrays, images or text.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """List the tasks, a line for each; with NAME show one with all its options."""
    from umix.data.registry import OWN, TASKS

    own = {"table": "FILE.csv", "text": "FILE.csv --text", "arrays": "FILE.npz", "images": "FOLDER/"}
    entries = {known: Entry(kind) for known, kind in TASKS.items()}
    entries |= {own[kind]: Entry(OWN[kind], hidden=frozenset({"path"})) for kind in own}
    _show(entries, name, other=own, registry=TASKS, as_json=as_json)
    _print_problems(TASKS)


def nets(
    name: Annotated[str | None, Parameter(help="A net, or a library of nets such as hf.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """List the nets and the libraries that know others, a line for each; with NAME show one with all its options."""
    from umix.nets.library import install_command, installed
    from umix.nets.registry import NETS

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
    from umix.methods.registry import METHODS

    entries = {}
    for known, kind in METHODS.items():
        facts: dict[str, str | list[str]] = {
            "paper": kind.paper,
            "group_labels": group_labels(kind),
            "stages_before_the_fit": list(kind.stages),
        }
        said = (sys.modules[kind.__module__].__doc__ or "").partition("\n")[2]  # its first line is about the paper
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
            print_list(entries, thing=registry.thing, column=column)
        return
    found = other.get(name, name)
    if found not in entries:
        registry.get(name)  # raises where it is a plug-in that cannot be used
        raise unknown(registry.thing, name, {*entries, *other})
    if as_json:
        print_json({"name": found, **entries[found].as_json()})
    else:
        print_entry(found, entries[found])


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

    known = {**TASKS, **OWN}
    if name is None:
        print_preset_names(
            {name: (kind.__doc__ or "", list(presets_for(kind))) for name, kind in known.items()}, as_json=as_json
        )
        return
    try:
        found = presets_for(OWN[name] if name in OWN else source_kind(name)[0])
    except UserError:
        raise unknown("task, kind of data or path", name, known) from None
    if as_json:
        print_json(found)
    else:
        print_presets(found, f"presets of {name}")


def _print_problems(registry: Registry[Any]) -> None:
    """Say on stderr which plug-ins of installed packages cannot be used, and why."""
    for plug_in in registry.plug_ins:
        if plug_in.problem:
            ERR.print(f"note: {plug_in.problem}", highlight=False, markup=False, soft_wrap=True)
