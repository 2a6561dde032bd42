"""Presets: named settings of a task, as TOML tables ``[PRESET.PART]``.

A part is task, net, fit, a stage or a method. ``[PRESET.METHOD.fit]`` and ``[PRESET.METHOD.STAGE]``
are fit settings of one method.
A task without a preset file has the presets of its kind of data (``TaskSource.preset_kind``).
Users can write preset files of the same form. A file with one preset is named ``FILE.toml``, a
preset in a file with several ``FILE.toml:NAME``.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from umix.bench.spec.code_in_files import refuse_code
from umix.data.registry import OWN
from umix.data.task import TaskSource
from umix.errors import UserError, unknown
from umix.methods.registry import METHODS
from umix.store import atomic_write
from umix.toml_text import read_toml

Tables = dict[str, dict[str, Any]]
#: Used instead of ``default`` if all layers of a net of another library are trained and the task has such a preset.
PRETRAINED = "pretrained"


@cache
def presets_of(task: str) -> dict[str, Tables]:
    """All presets of ``task`` by name; empty if umix has no file for it."""
    file = resources.files("umix") / "presets" / f"{task}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def presets_for(kind: type[TaskSource]) -> dict[str, Tables]:
    """All presets of the task ``kind`` by name; if umix has no file for it, those of its kind of data, ``preset_kind``.

    Presets of a kind of data do not name the task's net. The task's ``default_net`` is used, with
    the preset's options for that net, if it has any.
    """
    if of_task := presets_of(kind.name):
        return of_task
    general = presets_of(kind.preset_kind)
    if not general:
        raise unknown(f"preset_kind of the task {kind.name}", kind.preset_kind, OWN)
    return {name: _without_task(tables, net=kind.default_net) for name, tables in general.items()}


def _without_task(tables: Tables, *, net: str) -> Tables:
    """``tables`` without settings of data, and without those of a net other than ``net``."""
    others = {part: values for part, values in tables.items() if part not in ("task", "net")}
    options = tables.get("net", {})
    return others | ({"net": options} if options.get("name") == net else {})


def preset(task: str, name: str, known: Mapping[str, Tables] | None = None, *, trust_code: bool = False) -> Tables:
    """The tables of the preset ``name`` of ``task``, or of the preset file at the path ``name``.

    ``known`` are the presets of the task, by default those of its file. A preset file may name code
    as its net only with ``trust_code``.
    """
    if is_preset_file(name):
        path, _, in_file = name.rpartition(":") if ".toml:" in name else (name, "", "")
        return _file_preset(Path(path), in_file, trust_code=trust_code)
    known = presets_of(task) if known is None else known
    if name not in known:
        raise unknown(f"preset of {task}", name, known)
    return known[name]


def is_preset_file(name: str) -> bool:
    """Whether ``name`` is ``FILE.toml`` or ``FILE.toml:NAME`` and not a preset that comes with umix."""
    return name.endswith(".toml") or ".toml:" in name


def _file_preset(path: Path, name: str, *, trust_code: bool) -> Tables:
    content = read_toml(path, what="preset file")
    if not content:
        raise UserError(f"The preset file {path} must hold a preset, [NAME.PART] with settings, but it is empty.")
    if name and name not in content:
        raise unknown(f"preset of {path}", name, content)
    if not name and len(content) > 1:
        raise UserError(
            f"The preset file {path} holds several presets, so one must be named: {path}:{' or :'.join(content)}."
        )
    tables = content[name or next(iter(content))]
    stages = {stage for method in METHODS.values() for stage in method.stages}
    parts = {"task", "net", "fit", "evaluation", *METHODS, *stages}
    for part, values in tables.items() if isinstance(tables, dict) else [(str(tables), None)]:
        if not isinstance(values, dict):
            raise UserError(f"The preset file {path} must hold tables [NAME.PART], got {part!r} outside of a part.")
        if part not in parts:
            raise unknown(f"part of the preset in {path}", part, parts)
    refuse_code(tables, f"The preset file {path}", trust_code=trust_code)
    return dict(tables)


def write_preset(path: Path, name: str, tables: Tables, *, notes: Sequence[str]) -> None:
    """Write ``tables`` as the only preset of the file ``path``, below ``notes`` as comments; values of None are left out."""
    lines = [f"# {line}" for note in notes for line in note.splitlines()]
    for part, values in tables.items():
        fields = {field: value for field, value in values.items() if value is not None}
        lines += ["", f"[{name}.{part}]", *(f"{field} = {_toml(value)}" for field, value in fields.items())]
    atomic_write(path, ("\n".join(lines) + "\n").encode())


def _toml(value: Any) -> str:
    """A setting in TOML, which writes texts, numbers, booleans and lists as JSON does."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
