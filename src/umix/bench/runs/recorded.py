"""The finished run of a command that is given again, found by its record alone: nothing is planned, so torch is not imported."""

import contextlib
import glob
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from umix.bench.runs.record import RunRecord, load_run
from umix.data.images.folder_listing import images_hash, table_in
from umix.data.rows.table_file import file_hash, table_title
from umix.run_folder import CHECKPOINT, FAILED, ORDINARY, RECORD
from umix.store import name_part
from umix.version import __version__

_PACKAGE = Path(__file__).parents[2]
_KINDS = ("table", "text", "arrays", "images")  # of data that the command names by their path


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
    data = Path(task)
    title = data.resolve().name if data.is_dir() else table_title(data)
    with contextlib.suppress(ValueError):  # what is no text in UTF-8 is refused in the words of ``RunSpec``
        asked = from_json(
            to_json({"task": task, "method": method, "settings": settings, "seed": seed, "preset": preset})
        )
        for path in out.glob(f"{glob.escape(name_part(title))}-{glob.escape(method)}-*/{RECORD}"):
            with contextlib.suppress(
                ValueError, OSError
            ):  # a record or data that cannot be read, in those of ``execute``
                record = from_json(path.read_bytes())
                if isinstance(record, dict) and asked.items() <= record.items() and _is_current(path, record):
                    return load_run(path.parent)
    return None


def ordinary_of(record: RunRecord) -> RunRecord | None:
    """The finished run of ERM that ``record`` was shown beside; None where that is not known."""
    with contextlib.suppress(ValueError, OSError):
        folder = record.directory.parent / (record.directory / ORDINARY).read_text(encoding="utf-8")
        return load_run(folder) if (folder / RECORD).exists() else None
    return None


def _is_plug_in(names: set[str]) -> bool:
    """Whether an installed package adds a method or net with one of these ``names``: then its own version decides its settings."""
    return any(entry.name in names for group in ("umix.methods", "umix.nets") for entry in entry_points(group=group))


def _is_current(path: Path, record: Mapping[str, Any]) -> bool:
    """Whether the ``record`` at ``path`` is that of a run which umix, as it is now, would make of its files, as they are now."""
    source, written = record["plan"]["task"], path.stat().st_mtime
    if source["name"] not in _KINDS or record["versions"]["umix"] != __version__:
        return False
    if any(path.with_name(name).exists() for name in (CHECKPOINT, FAILED)):
        return False  # a process was killed before it removed them
    if any(file.suffix in (".py", ".toml") and file.stat().st_mtime > written for file in _PACKAGE.rglob("*.*")):
        return False
    return bool(source["content"] == _content(Path(record["task"]), source, record["settings"]))


def _content(data: Path, source: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """What ``TaskSource.content`` of the ``source`` is now, for all that has neither a tokenizer nor another file."""
    if source["name"] == "images":
        table = settings.get("task.metadata", settings.get("metadata"))
        if table is None and source["label_from"] is None and source["folders"] is None:
            table = table_in(data)
        return images_hash(data, None if table is None else Path(table))
    files = [data, settings.get("task.rows", settings.get("rows"))]
    return "-".join(file_hash(Path(file)) for file in files if file is not None)
