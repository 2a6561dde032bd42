"""What is refused before anything is started: no processes or trials at all, and what is larger than all memory."""

import os
from pathlib import Path

from umix.errors import Part, Setting, UserError

_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # limits of a container


def require_count(name: str, value: int) -> None:
    """Raise UserError unless ``value``, the number that the setting ``name`` gives, is at least 1."""
    if value < 1:
        raise UserError(Setting(name), f" must be at least 1, got {value}.")


def require_memory(size: int, what: str, *fix: Part) -> None:
    """Raise UserError if ``size`` bytes are more than all memory; ``what`` begins the sentence and ``fix`` ends it."""
    available = memory()
    if available is not None and size > available:
        raise UserError(f"{what} {size / 1e9:,.1f} GB of memory, but there are {available / 1e9:,.1f} GB; ", *fix, ".")


def memory() -> int | None:
    """The bytes of memory of the machine, or of the container that this process runs in; None if unknown."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None
    for place in map(Path, _CGROUPS):
        try:
            limits.append(int(place.read_text()))
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
    return min(limits)
