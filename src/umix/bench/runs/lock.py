"""One process per run: a lock that the operating system takes back when its holder dies, however it dies.

The lock files lie in ``.locks`` beside the runs and stay there, empty: a lock file that is removed while others wait for it no
longer keeps them apart. Whoever gets the lock looks for the finished record first, so a run is never executed twice.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from umix.errors import Setting, UserError
from umix.machine_faults import cannot_write, is_of_machine, shown

#: The folder beside the runs that holds a lock file for each of them.
LOCKS = ".locks"
_PAUSE = 0.1  # seconds between two tries


class Busy(Exception):  # noqa: N818 — not a failure: someone else is doing the work
    """Another process is executing this run."""


@contextlib.contextmanager
def run_lock(out: Path, name: str, *, wait: bool = True, note: Callable[[str], None] | None = None) -> Iterator[None]:
    """Inside the block no other process is in the block of the run ``name`` below ``out``.

    Where another one is, this waits for it to end or die and says so to ``note``, or raises Busy without ``wait``.
    """
    lock = FileLock(_path(out, name))
    try:
        _acquire(lock, name, wait=wait, note=note)
    except OSError as error:
        if is_of_machine(error):
            raise cannot_write(_path(out, name), error) from error
        raise UserError(
            f"Cannot write the lock {shown(_path(out, name))}: {error.strerror or error}; choose another folder with ",
            Setting("out"),
            ".",
        ) from error
    try:
        yield
    except UserError:
        _leave_nothing(out, name)
        raise
    finally:
        lock.release()


def _acquire(lock: FileLock, name: str, *, wait: bool, note: Callable[[str], None] | None) -> None:
    folder, told = Path(lock.lock_file).parent, False
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except FileNotFoundError:
            continue  # a process that was refused has just removed the empty folder
        except Timeout:
            if not wait:
                raise Busy(name) from None
            if note is not None and not told:
                note(f"Another process is executing {name}: waiting for it.")
                told = True
            time.sleep(_PAUSE)
        else:
            return


def _leave_nothing(out: Path, name: str) -> None:
    """Where a run was refused before it wrote anything, remove its lock and the folders that were made for it.

    Those who wait for the removed lock no longer wait for each other, but they will be refused for the same reason.
    """
    if (out / name).exists():
        return
    with contextlib.suppress(OSError):
        _path(out, name).unlink()
        (out / LOCKS).rmdir()
        out.rmdir()


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
