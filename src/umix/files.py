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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from filelock import FileLock
from pydantic_core import from_json

from umix.errors import UserError, is_utf8

_ASIDE = ".aside"
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

    A link is followed: the file that it leads to is replaced, and the link stays.
    """
    target = writable_file(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(_aside_name(target.name))
        try:
            with open(aside, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise
    except OSError as error:
        raise _cannot_write(path, error) from error


def writable_file(path: Path) -> Path:
    """The file that is written for ``path``, which need not exist: where a link leads, else ``path`` itself.

    Raises UserError for a folder, a device, a pipe and a name that no file can have.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:
        raise _cannot_write(path, error) from error
    except ValueError:  # a NUL, or what is no text
        raise UserError(f"Cannot write {path}: no file can have this name; choose another.") from None
    if stat.S_ISDIR(mode):
        raise UserError(f"Cannot write {path}: it is a folder; name a file.")
    if not stat.S_ISREG(mode):
        raise UserError(f"Cannot write {path}: it is a device, a pipe or a socket; name a file.")
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _aside_name(name: str) -> str:
    """The name of the temporary file for ``name``, which itself may be as long as names can be."""
    end = f".{socket.gethostname()}.{os.getpid()}{_ASIDE}"
    if len(os.fsencode(name + end)) >= _LONGEST_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return f".{name}{end}"


def _cannot_write(path: Path, error: OSError) -> UserError:
    return UserError(f"Cannot write {path}: {_reason(path, error)} to write to.")


def _reason(path: Path, error: OSError) -> str:
    """The reason why ``path`` could not be written, and the fix."""
    if file := next((folder for folder in path.parents if os.path.isfile(folder)), None):
        return f"{file} is a file and no folder; choose another place"
    free = "free some space or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return f"{error.strerror or error}; {free}choose another place"


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically: to a temporary file, which is flushed to disk and renamed."""
    with whole(path) as file:
        file.write(content)


def require_space(directory: Path, size: int, *, what: str, fix: UserError) -> None:
    """Raise UserError if fewer than ``size`` bytes are free on the disk of ``directory``, which need not exist yet.

    ``what`` starts the message and ``fix`` ends it.
    """
    existing = next(folder for folder in (directory.resolve(), *directory.resolve().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if size > free:
        raise UserError(f"{what} {size / 1e6:,.1f} MB in {directory}, but {free / 1e6:,.1f} MB are free; ", fix, ".")


def ensure_writable(directory: Path) -> None:
    """Raise UserError if ``directory`` is not writable, before time is spent on training."""
    probe = directory / ".probe"
    write_whole(probe, b"umix")
    probe.unlink(missing_ok=True)


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


def sweep(directory: Path) -> None:
    """Remove the temporary files that killed processes of this machine left in ``directory``."""
    for aside in directory.glob(f".*{_ASIDE}"):
        name, _, pid = aside.name.removesuffix(_ASIDE).rpartition(".")
        ours = name.endswith(f".{socket.gethostname()}") and pid.isdecimal()
        if ours and (int(pid) == os.getpid() or not is_alive(int(pid))):
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

    write_whole(path, save(dict(tensors), metadata=_one_entry(metadata)))


def write_arrays(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Like ``write_tensors``, but NumPy arrays, without importing torch."""
    from safetensors.numpy import save

    write_whole(path, save(dict(arrays), metadata=_one_entry(metadata)))


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
    from safetensors import SafetensorError, safe_open

    if not is_utf8(str(path)):
        raise UserError(f"The path of a {kind} file must be text in UTF-8, got {str(path)!r}; rename its folder.")
    try:
        with safe_open(path, framework=framework) as file:
            stored = from_json((file.metadata() or {}).get("umix", "{}"))
            metadata: dict[str, str] = stored if isinstance(stored, dict) else {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 — not a dict
    except FileNotFoundError:
        raise UserError(f"There is no {kind} at {path}.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(
            f"{path} must be a whole {kind} file, but it cannot be read ({error}); delete it and run again."
        ) from None
    if metadata.get("kind") != kind:
        raise UserError(
            f"{path} must be a {kind} file written by umix, got kind {metadata.get('kind')!r}; delete or move it."
        )
    return tensors, metadata
