"""Errors whose cause lies with the machine, in one sentence: no memory, a full or broken disk."""

import errno

from umix.errors import MachineError, one_line

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
        "EIO": _DISK,
        "ESTALE": _DISK,
    }.items()
    if hasattr(errno, name)
}


def machine_error(error: BaseException) -> MachineError | None:
    """``error``, or an error that it was raised because of, in one sentence if its cause lies with the machine; None if not."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, MachineError):
            return behind
        if _is_about_memory(behind):
            return MachineError(
                f"There is not enough memory; take a smaller fit.batch_size, fewer workers or a larger machine, {_AGAIN}"
            )
        if isinstance(behind, OSError) and behind.errno in _FIXES:
            place = "" if behind.filename is None else f" ({one_line(str(behind.filename), longest=110)})"
            return MachineError(f"The machine cannot go on: {behind.strerror}{place}; {_FIXES[behind.errno]} {_AGAIN}")
        behind = behind.__cause__ or behind.__context__
    return None


def _is_about_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # torch's, on a GPU
        return True
    # torch raises RuntimeError where the CPU has no memory left
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)
