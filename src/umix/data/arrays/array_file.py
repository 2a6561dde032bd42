"""Arrays on disk: .npz with named arrays, or .npy with one; nothing is ever unpickled."""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from umix.data.rows.table_file import check_file
from umix.errors import UserError, unknown
from umix.limits import require_memory

if TYPE_CHECKING:
    import polars

#: The suffixes of array files.
SUFFIXES = (".npz", ".npy")
Array = NDArray[Any]


def array_names(path: Path) -> list[str]:
    """The names of the arrays in an .npz file, in order; the array of an .npy file has none."""
    check_file(path)
    if path.suffix.lower() == ".npy":
        return []
    with _opened(path) as file:
        return list(file.files)


def read_array(path: Path, name: str) -> Array:
    """The array called ``name`` in an .npz file, or the one of an .npy file, which is memory-mapped."""
    check_file(path)
    if path.suffix.lower() == ".npy":
        try:
            with open(path, "rb") as stored:
                _check_header(stored, path.stat().st_size, path.name)
            mapped: Array = np.lib.format.open_memmap(path, mode="c")
            return mapped
        except _BROKEN as error:
            raise error if isinstance(error, UserError) else _unreadable(path, error) from None
    with _opened(path, name) as file:
        if name not in file.files:
            raise unknown(f"array of {path.name}", name, file.files)
        entry = file.zip.getinfo(name if name in file.zip.namelist() else f"{name}.npy")  # as NumPy finds it
        with file.zip.open(entry) as stored:
            what = f"The array {name!r} of {path.name}"
            needed = _check_header(stored, entry.file_size, what)
            require_memory(needed, f"{what} takes", "save it as .npy, which is not read as a whole")
        array: Array = file[name]
        return array


def _check_header(stored: IO[bytes], size: int, what: str) -> int:
    """The bytes that an array takes by its header; raises where these are more than follow in a file of ``size`` bytes."""
    if stored.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
        return size  # no array, which NumPy says
    version = tuple(stored.read(2))
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stored)
    needed = math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and not 0 <= needed <= size - stored.tell():
        raise UserError(
            f"{what} must be whole, but its header claims {needed:,} bytes of shape {list(shape)}, and {size:,} are there; "
            "write it again."
        )
    return needed


@contextmanager
def _opened(path: Path, name: str = "") -> Iterator[Any]:
    """An open .npz file; errors in reading it, or its array ``name``, become user errors."""
    try:
        with open(path, "rb") as file:  # numpy leaves a broken file open
            begins = file.read(6)
            if begins == np.lib.format.MAGIC_PREFIX:
                raise UserError(f"{path} must be a file of named arrays, but it holds a single one; rename it to .npy.")
            if not begins.startswith(b"PK"):
                raise UserError(f"{path} must be a whole npz file, but it is none; write it with numpy.savez.")
            file.seek(0)
            yield np.load(file, allow_pickle=False)
    except _BROKEN as error:
        if isinstance(error, UserError):
            raise
        raise _unreadable(path, error, name) from None


def columns(arrays: dict[str, Any], *, n: int) -> "polars.DataFrame":
    """Arrays of one value for each of ``n`` rows (numbers, texts, true and false) as the columns of a table."""
    import polars

    return polars.DataFrame([_column(name, np.asarray(values), n) for name, values in arrays.items()])


def _column(name: str, values: Array, n: int) -> "polars.Series":
    import polars

    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise UserError(f"The array {name!r} must hold one value per row, [{n}], got {list(values.shape)}.")
    if len(values) != n:
        raise UserError(
            f"The array {name!r} must have a value for each of the {n} rows of the inputs, got {len(values)}."
        )
    if values.dtype.kind == "O" and all(value is None or isinstance(value, str) for value in values):
        return polars.Series(name, values.tolist(), dtype=polars.String)
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values, "utf-8")
        except UnicodeDecodeError:
            raise UserError(f"The texts of the array {name!r} must be UTF-8, but some are not.") from None
    if values.dtype.kind not in "biufU":
        raise UserError(f"The array {name!r} must hold numbers, texts, or true and false, got {values.dtype}.")
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
    return polars.Series(name, values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("=")))


_BROKEN = (
    *(OSError, ValueError, TypeError, EOFError, KeyError, OverflowError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError, RecursionError, MemoryError),  # of a header, which is a Python literal
)


def _unreadable(path: Path, error: Exception, name: str = "") -> UserError:
    reason = " ".join(str(error).split()).rstrip(".")
    if any(word in reason.lower() for word in ("pickle", "object array", "python objects")):
        what = f"The array {name!r} of {path.name}" if name and path.suffix.lower() == ".npz" else path.name
        return UserError(
            f"{what} must hold plain numbers or texts, but it holds Python objects, which are never read; save it again "
            "with a number or text type (astype)."
        )
    return UserError(f"{path} must be a whole {path.suffix[1:]} file, but it cannot be read ({reason}).")
