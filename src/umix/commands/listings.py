"""``umix tasks``, ``umix nets``, ``umix methods`` and ``umix presets``: what there is."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from umix.commands.catalogue import print_catalogue, print_json, print_preset_names, print_presets
from umix.commands.flags import Json
from umix.errors import UserError, unknown
from umix.registry import Registry
from umix.terminal import ERR

if TYPE_CHECKING:
    from umix.settings import Settings


def tasks(*, as_json: Json = False) -> None:
    """List the tasks, each with its options."""
    from umix.data.arrays.source import ArraySource
    from umix.data.images.image_folder import ImageFolder
    from umix.data.registry import TASKS
    from umix.data.tables.source import TableSource
    from umix.data.texts.source import TextSource

    own: dict[str, type[Settings]] = {
        "FILE.csv": TableSource,
        "FILE.csv --text": TextSource,
        "FILE.npz": ArraySource,
        "FOLDER/": ImageFolder,
    }
    kinds: dict[str, type[Settings]] = {**TASKS, **own}
    print_catalogue(
        {name: (kind, kind.__doc__ or "", {}) for name, kind in kinds.items()}, as_json=as_json, hidden=("path",)
    )
    _print_problems(TASKS)


def nets(*, as_json: Json = False) -> None:
    """List the nets and the libraries that know others, each with its options and whether it is installed."""
    from umix.nets.library import install_command, installed
    from umix.nets.registry import NETS

    facts: dict[str, tuple[type[Settings], str, dict[str, object]]] = {}
    in_the_name: set[str] = set()
    for kind in NETS.values():
        needs: dict[str, object] = {}
        if kind.library:
            missing = f"not installed: {install_command(kind.library, kind.extra)}"
            needs["library"] = f"{kind.library}, {'installed' if installed(kind.library) else missing}"
        facts[kind.usage()] = (kind, kind.__doc__ or "", needs)
        in_the_name |= set(kind.options_in(kind.usage()) or {})
    print_catalogue(facts, as_json=as_json, hidden=tuple(in_the_name))
    _print_problems(NETS)


def methods(*, as_json: Json = False) -> None:
    """List the methods, each with its hyperparameters, their legal ranges and defaults, and its paper."""
    from umix.methods.registry import METHODS

    facts = {
        name: (
            kind,
            kind.__doc__ or "",
            {
                "paper": kind.paper,
                "needs_training_groups": kind.needs_groups_if or kind.needs_groups,
                "needs_validation_groups": kind.needs_val_groups,
                "stages_before_the_fit": list(kind.stages),
            },
        )
        for name, kind in METHODS.items()
    }
    print_catalogue(facts, as_json=as_json)
    _print_problems(METHODS)


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
