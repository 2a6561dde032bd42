"""Settings per task that come with umix, as TOML tables: ``[preset.part]`` with the parts task, net, fit, a stage or a method.

A method may have fit settings of its own: ``[preset.METHOD.fit]``, and for a stage ``[preset.METHOD.STAGE]``.
A file of one's own has the same form: ``FILE.toml`` where it holds one preset, ``FILE.toml:NAME`` where it holds several.
"""

import json
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from umix.errors import UserError, unknown
from umix.files import write_whole
from umix.methods.registry import METHODS

Tables = dict[str, dict[str, Any]]
#: Taken instead of ``default`` where a net of another library is trained whole and the task has such a preset.
PRETRAINED = "pretrained"


@cache
def presets_of(task: str) -> dict[str, Tables]:
    """All presets of ``task`` by name; none where umix has no file for it."""
    file = resources.files("umix") / "presets" / f"{task}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def preset(task: str, name: str) -> Tables:
    """The tables of the preset ``name`` of ``task``, or of the file that ``name`` is the path of."""
    if is_preset_file(name):
        path, _, chosen = name.rpartition(":") if ".toml:" in name else (name, "", "")
        return _file_preset(Path(path), chosen)
    known = presets_of(task)
    if name not in known:
        raise unknown(f"preset of {task}", name, known)
    return known[name]


def is_preset_file(name: str) -> bool:
    """Whether ``name`` is ``FILE.toml`` or ``FILE.toml:NAME`` and not one of the presets that come with umix."""
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
    parts = {"task", "net", "fit", *METHODS, *(stage for method in METHODS.values() for stage in method.stages)}
    for part, values in found.items() if isinstance(found, dict) else [(str(found), None)]:
        if not isinstance(values, dict):
            raise UserError(f"The preset file {path} must hold tables [NAME.PART], got {part!r} outside of a part.")
        if part not in parts:
            raise unknown(f"part of the preset in {path}", part, parts)
    return dict(found)


def write_preset(path: Path, name: str, tables: Tables, *, notes: Sequence[str]) -> None:
    """Write ``tables`` as the one preset of the file ``path``, below ``notes`` as comments; None has no place in a preset."""
    lines = [f"# {line}" for note in notes for line in note.splitlines()]
    for part, values in tables.items():
        given = {field: value for field, value in values.items() if value is not None}
        lines += ["", f"[{name}.{part}]", *(f"{field} = {_toml(value)}" for field, value in given.items())]
    write_whole(path, ("\n".join(lines) + "\n").encode())


def _toml(value: Any) -> str:
    """A setting in TOML, which writes texts, numbers, truths and lists as JSON does."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
