"""What fits on a machine and into a lifetime. What does not is refused by its size, before anything is allocated or started."""

import os
from pathlib import Path

from umix.errors import Part, Setting, UserError

#: The largest whole number of a setting that sets no bound of its own: epochs, widths, repeats, trees.
LARGEST_COUNT = 10**6
#: The largest number of a setting that sets no bound of its own, and the smallest one above 0: float32 can still compute with them.
LARGEST_NUMBER, SMALLEST_NUMBER = 1e12, 1e-12
MOST_RUNS = 10_000  # of a study
MOST_TRIALS = 100_000  # of a search
MOST_MACHINES = 10_000  # that train a run together
MOST_THREADS = 1024  # of a process
_PROCESS = 2**27  # bytes of memory of a process that has imported torch, beside what processes share
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # limits of a container


def require_count(name: str, value: int, *, most: int, where: str = "") -> None:
    """Raise UserError unless ``value``, the number that the setting ``name`` gives, lies between 1 and ``most``."""
    if value < 1:
        raise UserError(Setting(name), f" must be at least 1, got {value}.")
    if value > most:
        raise UserError(Setting(name), f" must be at most {most:,}{where}, got {value}.")


def require_processes(name: str, value: int) -> None:
    """Raise UserError unless this machine has the memory for ``value`` processes, a number that the setting ``name`` gives."""
    available = memory()
    most = max(os.cpu_count() or 1, 64 if available is None else available // _PROCESS)
    require_count(name, value, most=most, where=", for which this machine has the memory")


def require_memory(size: int, what: str, *fix: Part) -> None:
    """Raise UserError if ``size`` bytes are more than all memory; ``what`` begins the sentence and ``fix`` ends it."""
    available = memory()
    if available is not None and size > available:
        raise UserError(f"{what} {size / 1e9:,.1f} GB of memory, but there are {available / 1e9:,.1f} GB; ", *fix, ".")


def memory() -> int | None:
    """The bytes of memory that this process may use: of the machine, its container, and its limit; None if unknown."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits()]
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None
    return min(limit for limit in limits if limit > 0)


def _limits() -> list[int]:
    """The limits on the memory of this process that are set."""
    import resource

    found = [soft for soft, _ in [resource.getrlimit(resource.RLIMIT_AS)] if soft != resource.RLIM_INFINITY]
    for place in map(Path, _CGROUPS):
        try:
            found.append(int(place.read_text()))
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
    return found
