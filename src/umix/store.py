"""The files that umix writes: atomic writes, locks, and JSON, tensors, arrays and tables of runs, stages and caches.

What umix wrote is trusted when it is read: whatever goes wrong there is one sentence that names the file, or, for a checkpoint or
a cache, a warning, and the work is done again (``load_or_none``). Nothing is unpickled.
"""

import contextlib
import glob
import io
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from umix.errors import MachineError, UserError, cause
from umix.run_folder import RECORD
from umix.settings import first_fault

if TYPE_CHECKING:
    import polars

_Value = TypeVar("_Value")
_Model = TypeVar("_Model", bound="Stored")
_ASIDE = ".aside"
_LONGEST_PART = 160  # bytes of a part of a name, which leaves room for the other parts


class Stored(BaseModel):
    """What a JSON file holds, or a part of it: frozen and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


@contextlib.contextmanager
def reading(path: Path, kind: str, *, fix: str = "") -> Iterator[None]:
    """Inside the block the file at ``path`` is read; whatever is raised there becomes one sentence that names it and the ``fix``.

    By default that is to delete the file and run again, or the whole run if it is a file of a finished one.
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"There is no {kind} at {path}.") from None
    except Exception as error:
        reason = str(first_fault(error)) if isinstance(error, ValidationError) else cause(error)
        raise UserError(f"{path} is damaged ({reason}); {fix or _fix(path)}.") from error


def _fix(path: Path) -> str:
    run = next((folder for folder in list(path.parents)[:2] if (folder / RECORD).exists()), None)
    return "delete it and run again" if run is None or path.name == RECORD else "delete the run and run it again"


def load_or_none(path: Path, read: Callable[[], _Value], *, again: str, warn: Callable[[str], None]) -> _Value | None:
    """What ``read`` makes of the file at ``path``; None where there is none, or where it is damaged.

    In the second case ``warn`` is told why, and what is done ``again``.
    """
    if not path.exists():
        return None
    try:
        return read()
    except UserError as error:
        reason, _, fix = str(error).rpartition("; ")  # what people would have to do is done here
        warn(f"warning: {reason or fix}; {again}.")
        return None


def parsed(content: str | bytes) -> Any:
    """The value of the JSON ``content``."""
    return from_json(content)


def write_json(path: Path, content: BaseModel) -> None:
    """Write ``content`` to a JSON file, atomically."""
    atomic_write(path, (content.model_dump_json(indent=1) + "\n").encode())


def read_json(path: Path, model: type[_Model], *, kind: str) -> _Model:
    """What ``write_json`` wrote; ``kind`` says in words what it is."""
    with reading(path, kind):
        return model.model_validate_json(path.read_bytes())


def write_table(path: Path, table: "polars.DataFrame") -> None:
    """Write ``table`` to a parquet file, atomically."""
    content = io.BytesIO()
    table.write_parquet(content)
    atomic_write(path, content.getvalue())


def read_table(path: Path) -> "polars.DataFrame":
    """What ``write_table`` wrote."""
    import polars

    with reading(path, "table"):
        try:
            return polars.read_parquet(path, glob=False)
        except polars.exceptions.PanicException as error:  # no Exception, and raised for some bytes that are no table
            raise ValueError(str(error)) from None


def write_tensors(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write torch ``tensors`` and text ``metadata`` to one safetensors file, atomically."""
    from safetensors.torch import save

    atomic_write(path, save(dict(tensors), metadata=_one_entry(metadata)))


def write_arrays(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Like ``write_tensors``, but NumPy arrays, without importing torch."""
    from safetensors.numpy import save

    atomic_write(path, save(dict(arrays), metadata=_one_entry(metadata)))


def _one_entry(metadata: Mapping[str, str]) -> dict[str, str]:
    """All metadata as one entry: safetensors writes several in random order, but equal content must give equal files."""
    return {"umix": json.dumps(dict(metadata), sort_keys=True)}


def read_tensors(path: Path, *, kind: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The torch tensors and the metadata of a safetensors file of this ``kind``."""
    return _read(path, kind=kind, framework="pt")


def read_arrays(path: Path, *, kind: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Like ``read_tensors``, but NumPy arrays, without importing torch."""
    return _read(path, kind=kind, framework="np")


def _read(path: Path, *, kind: str, framework: str) -> tuple[dict[str, Any], dict[str, str]]:
    from safetensors import safe_open

    with reading(path, kind), safe_open(path, framework=framework) as file:
        metadata = parsed((file.metadata() or {}).get("umix", "{}"))
        if metadata.get("kind") != kind:
            raise ValueError(f"its kind is {metadata.get('kind')!r} and not {kind!r}")
        return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118 — not a dict


@contextlib.contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that replaces ``path`` when the block ends; if the block raises, ``path`` is not changed.

    A link is followed: the file that it leads to is replaced, and the link stays. A process that is killed here leaves the
    temporary file, see ``sweep``.
    """
    target = writable_file(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}{_ASIDE}")
    try:
        with open(aside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        if isinstance(error, OSError) and error.filename in (None, str(aside), aside):
            error.filename = str(path)  # what people have named, for the sentence
        raise


def atomic_write(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically: to a temporary file, which is flushed to disk and renamed."""
    with whole(path) as file:
        file.write(content)


def writable_file(path: Path) -> Path:
    """The file that is written for ``path``, which need not exist: where a link leads, else ``path`` itself.

    Raises UserError for a folder, a device and a pipe.
    """
    if path.is_dir():
        raise UserError(f"Cannot write {path}: it is a folder; name a file.")
    if path.exists() and not path.is_file():
        raise UserError(f"Cannot write {path}: it is a device, a pipe or a socket; name a file.")
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def ensure_writable(directory: Path) -> None:
    """Make ``directory``, and raise UserError before time is spent on training if nothing can be written there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:  # it has no name, so a killed process leaves nothing
            file.write(b"umix")
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        reason = "it is a file and no folder" if isinstance(error, FileExistsError) else error.strerror
        raise UserError(f"Cannot write to the folder {directory}: {reason}; choose another place.") from error


def remove(path: Path) -> None:
    """Remove the file at ``path``, which is not needed any more, if it is there."""
    path.unlink(missing_ok=True)


def require_space(directory: Path, size: int, *, what: str, fix: UserError) -> None:
    """Raise MachineError if fewer than ``size`` bytes are free on the disk of ``directory``, which need not exist yet.

    ``what`` starts the message and ``fix`` ends it.
    """
    existing = next(folder for folder in (directory.resolve(), *directory.resolve().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if size > free:
        needed = f"{what} {size / 1e6:,.1f} MB in {directory}, but {free / 1e6:,.1f} MB are free; "
        raise MachineError(needed, fix, ".")


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
    """Remove what killed processes left in ``directory`` and below it; this process holds its lock, so no other writes there."""
    for aside in directory.rglob(f".*{_ASIDE}"):
        aside.unlink(missing_ok=True)


def name_part(text: str) -> str:
    r"""``text`` as a part of a file's name: what a path or a terminal reads as something else is ``_``, at most 160 bytes.

    >>> name_part("my people"), name_part("a/b\n"), len(name_part(300 * "x"))
    ('my people', 'a_b_', 160)
    """
    shown = "".join(letter if letter.isprintable() and letter not in "/\\" else "_" for letter in text)
    return shown.encode()[:_LONGEST_PART].decode(errors="ignore")


def escape_glob(path: Path) -> str:
    """``path`` for polars, which takes ``a[1].csv`` for a pattern and would read ``a1.csv``.

    >>> escape_glob(Path("a[1].csv"))
    'a[[]1].csv'
    """
    return glob.escape(str(path))
