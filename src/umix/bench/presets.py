"""Settings per task that come with umix, as TOML tables: ``[preset.part]`` with the parts task, net, fit, a stage or a method.

A method may have fit settings of its own: ``[preset.METHOD.fit]``, and for a stage ``[preset.METHOD.STAGE]``.
"""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from umix.errors import unknown

Tables = dict[str, dict[str, Any]]
#: Taken instead of ``default`` where a net of another library is trained whole and the task has such a preset.
PRETRAINED = "pretrained"


@cache
def presets_of(task: str) -> dict[str, Tables]:
    """All presets of ``task`` by name; none where umix has no file for it."""
    file = resources.files("umix") / "presets" / f"{task}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def preset(task: str, name: str) -> Tables:
    """The tables of the preset ``name`` of ``task``."""
    known = presets_of(task)
    if name not in known:
        raise unknown(f"preset of {task}", name, known)
    return known[name]
