"""One process per run: a lock that the operating system takes back when its holder dies, however it dies.

The lock files lie in ``.locks`` beside the runs and stay there, empty: a lock file that is removed while others wait for it no
longer keeps them apart. Whoever gets the lock looks for the finished record first, so a run is never executed twice.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from umix.errors import UserError
from umix.store import ensure_writable

#: The folder beside the runs that holds a lock file for each of them.
LOCKS = ".locks"


class Busy(Exception):  # noqa: N818 — not a failure: someone else is doing the work
    """Another process is executing this run."""


@contextlib.contextmanager
def run_lock(out: Path, name: str, *, wait: bool = True, note: Callable[[str], None] | None = None) -> Iterator[None]:
    """Inside the block no other process is in the block of the run ``name`` below ``out``.

    Where another one is, this waits for it to end or die and says so to ``note``, or raises Busy without ``wait``.
    """
    ensure_writable(out / LOCKS)
    lock = FileLock(_path(out, name))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not wait:
            raise Busy(name) from None
        if note is not None:
            note(f"Another process is executing {name}: waiting for it.")
        lock.acquire()
    try:
        yield
    except UserError:
        if not (out / name).exists():  # refused before anything was written: nothing is left behind
            with contextlib.suppress(OSError):
                _path(out, name).unlink()
                (out / LOCKS).rmdir()
                out.rmdir()
        raise
    finally:
        lock.release()


def is_locked(out: Path, name: str) -> bool:
    """Whether a living process is executing the run ``name`` below ``out``."""
    path = _path(out, name)
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False  # a folder that can only be read
    lock.release()
    return False


def _path(out: Path, name: str) -> Path:
    return out / LOCKS / f"{name}.lock"
