"""How to make the runs of a report again: the exact commands, and the versions they ran with."""

import shlex
from collections.abc import Sequence
from typing import Any

from umix.bench.runs.record import RunRecord


def command(record: RunRecord) -> str:
    """The ``umix run`` that makes this record."""
    words = ["umix", "run", record.task, record.method, "--seed", str(record.seed)]
    words += [] if record.preset == "default" else ["--preset", record.preset]
    for key, value in record.settings.items():
        words += ["--set", f"{key}={_toml(value)}"]
    return shlex.join(words)


def versions(records: Sequence[RunRecord]) -> dict[str, list[str]]:
    """Every version that some record names, by program."""
    found: dict[str, list[str]] = {}
    for record in records:
        for name, version in record.versions.items():
            if version not in found.setdefault(name, []):
                found[name].append(version)
    return found


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(_quoted(item) for item in value)}]"
    return str(value)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else _toml(value)
