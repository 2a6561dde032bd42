"""Settings in tables, and the page that holds those of fits, evaluation, nets and data."""

from typing import Any

from umix.bench.search.search_space import searched_fields
from umix.bench.spec.evaluation_settings import EvaluationSettings
from umix.data.registry import OWN, TASKS
from umix.models.registry import NETS
from umix.settings import Range, Settings, legal
from umix.training.fit_settings import FitSettings

_INTRODUCTION = """\
# Settings

Every setting of a run has a full name, `part.field`. On the command line it is `--set fit.lr=0.01`, in Python
`umix.train(task, "umix", fit={"lr": 0.01})`, in a preset or a study `fit.lr`. The name of the field alone is enough where only one
part has it: `--set eta=3`. What is not set comes from the preset; `umix presets TASK` shows the settings that a preset starts from.
Where a table says `inf`, a whole number is at most a million and any other at most 1e12; a net that is larger than the machine's
memory is refused before it is built.

The hyperparameters of a method, `umix.eta` for example, are on [its page](methods/index.md). *Search* is what `umix tune` tries.
"""


def setting_rows(kind: type[Settings], prefix: str = "", hidden: frozenset[str] = frozenset()) -> list[str]:
    """The table of the settings of ``kind``, in lines of Markdown; full names begin with ``prefix``."""
    space = searched_fields(kind)
    columns = ["name", "legal", "default", *(["search"] if space else []), "meaning"]
    rows = [columns, ["---"] * len(columns)]
    for name, field in kind.model_fields.items():
        if name not in hidden:
            default = (
                "must be given" if field.is_required() else f"`{field.default}`" if field.default != "" else "none"
            )
            tried = [_tried(space.get(name))] if space else []
            rows.append([f"`{prefix}{name}`", legal(field), default, *tried, field.description or ""])
    return [f"| {' | '.join(row)} |" for row in rows]


def _tried(values: Range | list[Any] | None) -> str:
    if isinstance(values, Range):
        return f"{values.low:g} … {values.high:g}{' (log)' if values.log else ''}"
    return ", ".join(map(str, values)) if values else ""


def settings_page() -> str:
    """The page of all settings but those of methods."""
    parts = [
        _INTRODUCTION,
        "## Fits",
        "",
        "Of the final fit, `fit.NAME`, and of a stage before it, `STAGE.NAME`, for example",
    ]
    parts += ["`trajectory.epochs`; a stage has the settings of the final fit where nothing else is said.", ""]
    parts += [
        *setting_rows(FitSettings, "fit."),
        "",
        "## Evaluation",
        "",
        *setting_rows(EvaluationSettings, "evaluation."),
        "",
    ]
    parts += ["## Nets", "", "`--net NAME` chooses the net ([nets](../how-to/nets.md)).", ""]
    for kind in (NETS[name] for name in NETS.own):
        hidden = frozenset({*(kind.options_in(kind.usage()) or {}), *kind.from_data})
        parts += _section(f"`{kind.usage()}`", kind, "net.", hidden)
    parts += [
        "## Data of your own",
        "",
        "The path chooses the kind of data ([your own data](../how-to/own-data.md)).",
        "",
    ]
    for name, kind in OWN.items():
        parts += _section(name.capitalize(), kind, "task.", frozenset({"path"}))
    parts += ["## Tasks", ""]
    for name in TASKS.own:
        parts += _section(f"`{name}`", TASKS[name], "task.")
    return "\n".join(parts)


def _section(title: str, kind: type[Settings], prefix: str, hidden: frozenset[str] = frozenset()) -> list[str]:
    rows = setting_rows(kind, prefix, hidden) if set(kind.model_fields) - hidden else ["It has no settings."]
    return [f"### {title}", "", (kind.__doc__ or "").partition("\n")[0], "", *rows, ""]
