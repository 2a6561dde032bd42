"""The finished run of a command that is given again, found by its record alone: nothing is planned, so torch is not imported."""

import contextlib
import glob
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from umix.bench.runs.record import RunRecord, load_run
from umix.data.rows.table_file import file_hash
from umix.run_folder import CHECKPOINT, FAILED, RECORD
from umix.store import name_part
from umix.version import __version__

_PACKAGE = Path(__file__).parents[2]
_FILES = ("table", "text", "arrays")  # kinds of data whose content is that of the files that the command names


def recorded_run(
    out: Path, *, task: str, method: str, settings: Mapping[str, Any], seed: int, preset: str
) -> RunRecord | None:
    """The finished run below ``out`` that was asked for in the same words and on the same files; None where that is not certain.

    ``execute`` then finds out. It is certain where the same umix would make the same plan of these words again: no part of the run
    comes from another package, a preset file or the files of a net, and no file of umix has changed since the run ended.
    """
    nets = [str(settings[key]) for key in ("net", "net.name", "net.among", "among") if key in settings]
    if preset.endswith(".toml") or ".toml:" in preset or ":" in "".join(nets) or _is_plug_in({method, *nets}):
        return None
    asked = from_json(to_json({"task": task, "method": method, "settings": settings, "seed": seed, "preset": preset}))
    for path in out.glob(f"{glob.escape(name_part(Path(task).stem))}-{glob.escape(method)}-*/{RECORD}"):
        with contextlib.suppress(ValueError):  # the record is damaged, or the data are missing: ``execute`` says so
            record = from_json(path.read_bytes())
            if asked.items() <= record.items() and _is_current(path, record):
                return load_run(path.parent)
    return None


def _is_plug_in(names: set[str]) -> bool:
    """Whether an installed package adds a method or net with one of these ``names``: then its own version decides its settings."""
    return any(entry.name in names for group in ("umix.methods", "umix.nets") for entry in entry_points(group=group))


def _is_current(path: Path, record: Mapping[str, Any]) -> bool:
    """Whether the ``record`` at ``path`` is that of a run which umix, as it is now, would make of its files, as they are now."""
    source, settings, written = record["plan"]["task"], record["settings"], path.stat().st_mtime
    if source["name"] not in _FILES or record["versions"]["umix"] != __version__:
        return False
    if any(path.with_name(name).exists() for name in (CHECKPOINT, FAILED)):
        return False  # a process was killed before it removed them
    if any(file.suffix in (".py", ".toml") and file.stat().st_mtime > written for file in _PACKAGE.rglob("*.*")):
        return False
    files = [record["task"], settings.get("task.rows", settings.get("rows"))]
    return bool(source["content"] == "-".join(file_hash(Path(file)) for file in files if file))
