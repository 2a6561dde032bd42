"""Recognises errors whose cause lies with the machine, and says them in one sentence: no memory, a full or broken disk."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from umix.errors import MachineError, UserError

_AGAIN = "and run it again: what is finished is kept."
_SPACE, _DISK = "free some space", "check the disk"
#: What to do about an error of the operating system that is the machine's. Windows does not have all of them.
_FIXES = {
    getattr(errno, name): fix
    for name, fix in {
        "ENOSPC": _SPACE,
        "EDQUOT": _SPACE,
        "EFBIG": "allow larger files (ulimit -f)",
        "EMFILE": "allow more open files (ulimit -n)",
        "ENFILE": "close other programs",
        "EIO": _DISK,
        "ENODEV": _DISK,
        "ENXIO": _DISK,
        "ESTALE": _DISK,
        "ETIMEDOUT": _DISK,
    }.items()
    if hasattr(errno, name)
}
#: How libraries say it that do not raise MemoryError or OSError.
_NO_MEMORY = (
    "can't allocate memory",
    "annot allocate memory",
    "out of memory",
    "bad_alloc",
    "bad_malloc",
    "new thread",
)
_NO_DISK = {
    "No space left on device": _SPACE,
    "database or disk is full": _SPACE,
    "Disk quota exceeded": _SPACE,
    "disk I/O error": _DISK,
    "readonly database": _DISK,
    "database is locked": "end the process that holds it",
}
_PATH, _REASON = 110, 90  # characters at most in a sentence


@contextmanager
def machine_faults() -> Iterator[None]:
    """Inside the block, an error whose cause lies with the machine is raised as MachineError."""
    try:
        yield
    except MachineError:
        raise
    except Exception as error:
        fault = machine_error(error)
        if fault is None:
            raise
        raise fault from error


def machine_error(error: BaseException) -> MachineError | None:
    """``error`` in one sentence if its cause lies with the machine, None if not.

    An error that was raised because of another, such as one of a database because of a full disk, is looked behind.
    """
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, MachineError):
            return behind
        if (sentence := _about_memory(behind) or _about_disk(behind)) is not None:
            return MachineError(sentence)
        behind = behind.__cause__ or behind.__context__
    return None


def is_of_machine(error: OSError) -> bool:
    """Whether the cause of ``error`` lies with the machine, and not with a path that the user chose."""
    return error.errno in _FIXES


def cannot_write(path: Path, error: OSError) -> MachineError:
    """The sentence for a file that the machine cannot write."""
    reason = error.strerror or str(error)
    return MachineError(f"Cannot write {shown(path)}: {_line(reason)}; {_FIXES.get(error.errno or 0, _DISK)} {_AGAIN}")


def removed(folder: Path) -> MachineError:
    """The sentence for a folder that has gone while a run was writing to it."""
    return MachineError(f"The folder {shown(folder)} was removed while a run was in it; run it again to start anew.")


def shown(path: Path) -> str:
    """``path`` on one line and not too long for a sentence: its end.

    >>> shown(Path("runs/record.json"))
    'runs/record.json'
    """
    text = " ".join(str(path).split())
    return text if len(text) <= _PATH else f"…{text[-_PATH:]}"


def _about_memory(error: BaseException) -> str | None:
    is_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    is_memory = is_memory or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    if not is_memory and not (_is_foreign(error) and any(words in str(error) for words in _NO_MEMORY)):
        return None
    reason = _line(str(error).rpartition("DefaultCPUAllocator: ")[2])
    return (
        f"There is not enough memory{f' ({reason})' if reason else ''}; take a smaller fit.batch_size, fewer workers or a larger "
        f"machine, {_AGAIN}"
    )


def _about_disk(error: BaseException) -> str | None:
    if isinstance(error, OSError):
        if error.errno not in _FIXES:
            return None
        named = f" ({shown(Path(str(error.filename)))})" if error.filename else ""
        return f"The machine cannot go on: {_line(error.strerror or str(error))}{named}; {_FIXES[error.errno]} {_AGAIN}"
    said = next((words for words in _NO_DISK if words in str(error)), None)
    if said is None or not _is_foreign(error):
        return None
    return f"The machine cannot go on: {_line(said)}; {_NO_DISK[said]} {_AGAIN}"


def _is_foreign(error: BaseException) -> bool:
    """Whether a library has raised ``error``, whose words are then its own and nothing that a user has written."""
    return not isinstance(error, UserError) and (
        isinstance(error, RuntimeError) or type(error).__module__ != "builtins"
    )


def _line(text: str) -> str:
    """The first line of ``text``, cut where it is long."""
    first = " ".join((text.strip().splitlines() or [""])[0].split()).rstrip(".")
    return first if len(first) <= _REASON else f"{first[:_REASON]}…"
