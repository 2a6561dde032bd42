"""Settings per task that come with umix, as TOML tables: ``[preset.part]`` with the parts task, net, fit, a stage or a method.

A method may have fit settings of its own: ``[preset.METHOD.fit]``, and for a stage ``[preset.METHOD.STAGE]``.
A task without a file has the presets of its kind of data (``TaskSource.preset_kind``).
A file of your own has the same form. It is named ``FILE.toml`` if it holds one preset, ``FILE.toml:NAME`` if it holds several.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from umix.data.registry import OWN
from umix.data.task import TaskSource
from umix.errors import UserError, unknown
from umix.files import write_whole
from umix.methods.registry import METHODS

Tables = dict[str, dict[str, Any]]
#: Used instead of ``default`` if a net of another library is trained whole and the task has such a preset.
PRETRAINED = "pretrained"


@cache
def presets_of(task: str) -> dict[str, Tables]:
    """All presets of ``task`` by name; empty if umix has no file for it."""
    file = resources.files("umix") / "presets" / f"{task}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def presets_for(kind: type[TaskSource]) -> dict[str, Tables]:
    """All presets of the task ``kind`` by name; if umix has no file for it, those of its kind of data, ``preset_kind``.

    These know nothing of the task, so that its ``default_net`` is used, with the preset's options for that net, if it has some.
    """
    if own := presets_of(kind.name):
        return own
    general = presets_of(kind.preset_kind)
    if not general:
        raise unknown(f"preset_kind of the task {kind.name}", kind.preset_kind, OWN)
    return {name: _without_task(tables, net=kind.default_net) for name, tables in general.items()}


def _without_task(tables: Tables, *, net: str) -> Tables:
    """``tables`` without settings of data, and without those of a net other than ``net``."""
    kept = {part: values for part, values in tables.items() if part not in ("task", "net")}
    options = tables.get("net", {})
    return kept | ({"net": options} if options.get("name") == net else {})


def preset(task: str, name: str, known: Mapping[str, Tables] | None = None) -> Tables:
    """The tables of the preset ``name`` of ``task``, or of the preset file whose path ``name`` is.

    ``known`` are the presets of the task, those of its file unless given.
    """
    if is_preset_file(name):
        path, _, chosen = name.rpartition(":") if ".toml:" in name else (name, "", "")
        return _file_preset(Path(path), chosen)
    known = presets_of(task) if known is None else known
    if name not in known:
        raise unknown(f"preset of {task}", name, known)
    return known[name]


def is_preset_file(name: str) -> bool:
    """Whether ``name`` is ``FILE.toml`` or ``FILE.toml:NAME`` and not a preset that comes with umix."""
    return name.endswith(".toml") or ".toml:" in name


def _file_preset(path: Path, name: str) -> Tables:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"There is no preset file {path}.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"The preset file {path} must be TOML, but it cannot be read: {error}.") from None
    if not content:
        raise UserError(f"The preset file {path} must hold a preset, [NAME.PART] with settings, but it is empty.")
    if name and name not in content:
        raise unknown(f"preset of {path}", name, content)
    if not name and len(content) > 1:
        raise UserError(
            f"The preset file {path} holds several presets, so one must be named: {path}:{' or :'.join(content)}."
        )
    found = content[name or next(iter(content))]
    parts = {
        "task",
        "net",
        "fit",
        "judge",
        *METHODS,
        *(stage for method in METHODS.values() for stage in method.stages),
    }
    for part, values in found.items() if isinstance(found, dict) else [(str(found), None)]:
        if not isinstance(values, dict):
            raise UserError(f"The preset file {path} must hold tables [NAME.PART], got {part!r} outside of a part.")
        if part not in parts:
            raise unknown(f"part of the preset in {path}", part, parts)
    return dict(found)


def write_preset(path: Path, name: str, tables: Tables, *, notes: Sequence[str]) -> None:
    """Write ``tables`` as the only preset of the file ``path``, below ``notes`` as comments; values of None are left out."""
    lines = [f"# {line}" for note in notes for line in note.splitlines()]
    for part, values in tables.items():
        given = {field: value for field, value in values.items() if value is not None}
        lines += ["", f"[{name}.{part}]", *(f"{field} = {_toml(value)}" for field, value in given.items())]
    write_whole(path, ("\n".join(lines) + "\n").encode())


def _toml(value: Any) -> str:
    """A setting in TOML, which writes texts, numbers, booleans and lists as JSON does."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
