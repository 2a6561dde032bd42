"""Atomic file writes, locks, disk space, and safetensors files."""

import contextlib
import errno
import glob
import hashlib
import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from filelock import FileLock
from pydantic_core import from_json

from umix.errors import MachineError, UserError, cause, is_utf8
from umix.machine_faults import cannot_write, is_of_machine, removed, shown

_Value = TypeVar("_Value")
_ASIDE = ".aside"
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # no file, or a link that leads to none
_LONGEST_NAME = 255  # bytes of a file's name
_LONGEST_PART = 160  # bytes of a part of a name, which leaves room for the other parts


def name_part(text: str) -> str:
    r"""``text`` as a part of a file's name: what a path or a terminal reads as something else is ``_``, at most 160 bytes.

    >>> name_part("my people"), name_part("a/b\n"), len(name_part(300 * "x"))
    ('my people', 'a_b_', 160)
    """
    shown = "".join(letter if letter.isprintable() and letter not in "/\\" else "_" for letter in text)
    return shown.encode()[:_LONGEST_PART].decode(errors="ignore")


def as_written(path: Path) -> str:
    """``path`` for polars, which takes ``a[1].csv`` for a pattern and would read ``a1.csv``.

    >>> as_written(Path("a[1].csv"))
    'a[[]1].csv'
    """
    return glob.escape(str(path))


@contextlib.contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that replaces ``path`` when the block ends; if the block raises, ``path`` is not changed.

    A link is followed: the file that it leads to is replaced, and the link stays. What killed processes left of earlier tries to
    write ``path`` is removed.
    """
    target = writable_file(path)
    with _naming(path):
        _require_kept(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent, name=target.name)
        aside = target.with_name(temporary_name(target.name))
        try:
            with open(aside, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, target)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            if isinstance(error, FileNotFoundError) and not path.parent.exists():
                raise removed(path.parent) from error
            raise


def writable_file(path: Path) -> Path:
    """The file that is written for ``path``, which need not exist: where a link leads, else ``path`` itself.

    Raises UserError for a folder, a device, a pipe and a name that no file can have.
    """
    with _naming(path):
        mode = _mode(path)
    if stat.S_ISDIR(mode):
        raise UserError(f"Cannot write {path}: it is a folder; name a file.")
    if not stat.S_ISREG(mode):
        raise UserError(f"Cannot write {path}: it is a device, a pipe or a socket; name a file.")
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _mode(path: Path) -> int:
    """The kind of thing at ``path``; that of a file where there is nothing yet."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return stat.S_IFREG
    except ValueError:  # a NUL, or what is no text
        raise UserError(f"Cannot write {path}: no file can have this name; choose another.") from None


def temporary_name(name: str) -> str:
    """A name that holds ``name`` for a file of this process, which ``sweep`` removes if the process is killed.

    A name that is as long as names can be is held as its hash.
    """
    return f".{_held(name)}{_end()}"


def _held(name: str) -> str:
    if len(os.fsencode(name + _end())) < _LONGEST_NAME:
        return name
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


def _end() -> str:
    return f".{socket.gethostname()}.{os.getpid()}{_ASIDE}"


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Inside the block ``path`` is written: what fails there is said in one sentence that names it.

    It is a UserError if a place was chosen where nothing can be written, and a MachineError if the machine has failed: its disk is
    full or broken, or nothing can be written any more in a folder that was fine when the run began.
    """
    try:
        yield
    except IsADirectoryError:
        raise UserError(f"Cannot write {shown(path)}: it is a folder; name a file.") from None
    except OSError as error:
        _require_kept(path)
        in_run = (
            any(folder in _kept for folder in path.parents) and error.errno != errno.ELOOP
        )  # a link that leads in a circle
        if is_of_machine(error) or in_run:
            raise cannot_write(path, error) from error
        file = next((folder for folder in path.parents if os.path.isfile(folder)), None)
        reason = error.strerror or error if file is None else f"{shown(file)} is a file and no folder"
        raise UserError(f"Cannot write {shown(path)}: {reason}; choose another place to write to.") from error


#: Folders that must stay, each with an open descriptor of it: a new folder of this name is another one.
_kept: dict[Path, int] = {}


@contextlib.contextmanager
def kept(directory: Path) -> Iterator[None]:
    """Inside the block ``directory`` is there; if it is removed, the next write into it raises MachineError.

    Without this a write would make the folder again, without what was in it. A folder that is still empty in the end is removed.
    """
    ensure_writable(directory)
    if os.name != "posix" or directory in _kept:  # elsewhere folders cannot be opened
        yield
        return
    _kept[directory] = os.open(directory, os.O_RDONLY)
    try:
        yield
    except (OSError, UserError):
        _require_kept(directory / "*")  # what is missing in a folder that was removed is no error of the user
        raise
    finally:
        os.close(_kept.pop(directory))
        with contextlib.suppress(OSError):
            directory.rmdir()


def _require_kept(path: Path) -> None:
    """Raise MachineError if a folder above ``path`` that must stay was removed or replaced."""
    for folder in path.parents:
        if folder in _kept and not _is_open(folder, _kept[folder]):
            raise removed(folder)


def _is_open(folder: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except OSError:
        return False


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically: to a temporary file, which is flushed to disk and renamed."""
    with whole(path) as file:
        file.write(content)


def remove(path: Path) -> None:
    """Remove the file at ``path``, which is not needed any more; a folder in its place stays."""
    with contextlib.suppress(FileNotFoundError, IsADirectoryError, PermissionError):
        path.unlink()


def require_space(directory: Path, size: int, *, what: str, fix: UserError) -> None:
    """Raise MachineError if fewer than ``size`` bytes are free on the disk of ``directory``, which need not exist yet.

    ``what`` starts the message and ``fix`` ends it.
    """
    existing = next(folder for folder in (directory.resolve(), *directory.resolve().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if size > free:
        needed = f"{what} {size / 1e6:,.1f} MB in {shown(directory)}, but {free / 1e6:,.1f} MB are free; "
        raise MachineError(needed, fix, ".")


def ensure_writable(directory: Path) -> None:
    """Make ``directory``, and raise UserError or MachineError before time is spent on training if nothing can be written there."""
    with _naming(directory / "*"):
        _require_kept(directory / "*")
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:  # it has no name, so a killed process leaves nothing
            file.write(b"umix")


@contextlib.contextmanager
def locked(directory: Path | None) -> Iterator[None]:
    """Inside the block, this process holds the lock of ``directory``; without a directory there is no lock.

    The operating system releases the lock of a killed process.
    """
    if directory is None:
        yield
        return
    ensure_writable(directory)
    with FileLock(directory / ".lock"):
        yield


def sweep(directory: Path, *, name: str | None = None) -> None:
    """Remove what killed processes of this machine left in ``directory``: all temporary files and folders, or those of ``name``."""
    for aside in directory.glob(f".*{_ASIDE}" if name is None else f".{glob.escape(_held(name))}.*{_ASIDE}"):
        before, _, pid = aside.name.removesuffix(_ASIDE).rpartition(".")
        ours = before.endswith(f".{socket.gethostname()}") and pid.isdecimal()
        if ours and (int(pid) == os.getpid() or not is_alive(int(pid))):
            if aside.is_dir():
                shutil.rmtree(aside, ignore_errors=True)
            else:
                aside.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether a process with this id runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_tensors(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write torch ``tensors`` and text ``metadata`` to one safetensors file, atomically."""
    from safetensors.torch import save

    _require_memory(sum(tensor.nbytes for tensor in tensors.values()))
    write_whole(path, save(dict(tensors), metadata=_one_entry(metadata)))


def write_arrays(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Like ``write_tensors``, but NumPy arrays, without importing torch."""
    from safetensors.numpy import save

    _require_memory(sum(array.nbytes for array in arrays.values()))
    write_whole(path, save(dict(arrays), metadata=_one_entry(metadata)))


def _require_memory(size: int) -> None:
    """Raise MemoryError if tensors of ``size`` bytes cannot be serialised: safetensors would end the process instead.

    It makes two copies. What is asked for here is given back at once, and no byte of it is touched.
    """
    import numpy as np

    np.empty(2 * size, dtype=np.uint8)


def _one_entry(metadata: Mapping[str, str]) -> dict[str, str]:
    """All metadata as one entry: safetensors writes several in random order, but equal content must give equal files."""
    return {"umix": json.dumps(dict(metadata), sort_keys=True)}


def read_tensors(path: Path, *, kind: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The torch tensors and the metadata of a safetensors file of this ``kind``.

    Raises UserError if the file is truncated or is not a file of this kind that umix wrote. Nothing is unpickled.
    """
    return _read(path, kind=kind, framework="pt")


def read_arrays(path: Path, *, kind: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Like ``read_tensors``, but NumPy arrays, without importing torch."""
    return _read(path, kind=kind, framework="np")


def _read(path: Path, *, kind: str, framework: str) -> tuple[dict[str, Any], dict[str, str]]:
    from safetensors import safe_open

    if not is_utf8(str(path)):
        raise UserError(f"The path of a {kind} file must be text in UTF-8, got {str(path)!r}; rename its folder.")
    with reading(path, kind), safe_open(path, framework=framework) as file:
        stored = parsed((file.metadata() or {}).get("umix", "{}"))
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 — not a dict
    written = stored.get("kind") if isinstance(stored, dict) else None
    if written != kind:
        raise UserError(f"{path} must be a {kind} file written by umix, got kind {written!r}; delete or move it.")
    if odd := next((name for name, fact in stored.items() if not isinstance(fact, str)), None):
        raise UserError(f"{path} must say its {odd!r} as a text, got {stored[odd]!r}; delete it and run again.")
    return tensors, stored


@contextlib.contextmanager
def reading(path: Path, kind: str, *, fix: str = "delete it and run again") -> Iterator[None]:
    """Inside the block the file at ``path`` is read, whose content was written by umix but may be anything by now.

    What is no file, such as a folder or a pipe that would never end, is refused before. Whatever a library raises of the content
    becomes one sentence that names the file and the ``fix``.
    """
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            other = "a folder" if stat.S_ISDIR(mode) else "neither a file nor a folder"
            raise UserError(f"{path} must be a {kind} file, but it is {other}; delete or move it.")
        yield
    except UserError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _ABSENT:
            raise UserError(f"There is no {kind} at {path}.") from None
        raise UserError(f"{path} must be a whole {kind} file, but it cannot be read ({cause(error)}); {fix}.") from None


def unless_damaged(path: Path, read: Callable[[], _Value], *, again: str, warn: Callable[[str], None]) -> _Value | None:
    """What ``read`` makes of the file at ``path``, which can be made again; None where there is none, or where it is damaged.

    In the second case ``warn`` is told why, and what is done ``again``. Only a folder in the place of the file raises UserError,
    because no file can be written there.
    """
    if not path.exists():
        return None
    try:
        return read()
    except UserError as error:
        if path.is_dir():
            raise
        reason, _, fix = str(error).rpartition("; ")  # what people would have to do is done here
        warn(f"warning: {reason or fix}; {again}.")
        return None


def parsed(content: str | bytes) -> Any:
    """The value of the JSON ``content``; what is nested too deeply and numbers of thousands of digits are a ValueError."""
    return from_json(content)
