"""Tables on disk or in memory, read as polars frames; a table that cannot be read raises one sentence."""

import csv
import gzip
import hashlib
import io
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from umix.errors import Setting, UmixWarning, UserError
from umix.run_folder import is_run_file
from umix.store import atomic_write, escape_glob, writable_file

if TYPE_CHECKING:
    import polars

#: The suffixes of array files.
ARRAYS = (".npz", ".npy")
#: The suffixes of table files.
SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".jsonl", ".ndjson", ".arrow", ".feather", ".xlsx")
#: The suffixes of tables that are written, and the method of polars that writes them.
WRITERS = {".parquet": "write_parquet", ".csv": "write_csv", ".jsonl": "write_ndjson", ".arrow": "write_ipc"}
TEXT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
#: How files begin that people take for CSV by mistake, what they are, and what to do.
_NO_TEXT = {
    b"\x1f\x8b": ("compressed by gzip", "unpack it first (gunzip -c), or name the file so that it ends in .csv.gz"),
    b"PK\x03\x04": (
        "a zip archive or a spreadsheet",
        "unpack it first, or name a spreadsheet so that it ends in .xlsx",
    ),
    b"PAR1": ("a Parquet file", "name the file so that it ends in .parquet"),
}
_LONGEST_HEADER = 2**20  # bytes in which the row of column names ends
TYPED_BY = 10_000  # rows that decide the columns' types, unless a later row contradicts them


def table_suffix(path: Path) -> str:
    """The end of a file's name that says what it holds, in small letters.

    >>> table_suffix(Path("people.CSV")), table_suffix(Path("my.people.csv.gz"))
    ('.csv', '.csv.gz')
    """
    return "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else [path.suffix]).lower()


def table_title(path: Path) -> str:
    """What people call the table: the name of its file without that end.

    >>> table_title(Path("data/people.csv.gz"))
    'people'
    """
    return path.name[: len(path.name) - len(table_suffix(path))]


def content_hash(path: Path) -> str:
    """The hash of a table's file."""
    check_there(path)
    return file_hash(path)


def file_hash(path: Path) -> str:
    """A hash of the file's bytes, cached by path, size and modification time."""
    check_file(path)
    state = path.stat()
    return _hash(path.resolve(), state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _hash(path: Path, size: int, changed: int) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError as error:
        raise UserError(f"{path} must be a file that can be read, but it cannot: {error.strerror}.") from None


def column_names(path: Path) -> list[str]:
    """The columns of the table at ``path``, in order, without reading its rows."""
    import polars

    check_there(path)
    with readable(path):
        match table_suffix(path):
            case ".csv" | ".tsv" | ".csv.gz" | ".tsv.gz":
                return _header(path)[0]
            case ".xlsx":
                return _read_sheet(path).columns
            case ".parquet":
                scan = polars.scan_parquet(escape_glob(path))
            case ".jsonl" | ".ndjson":
                scan = polars.scan_ndjson(escape_glob(path))
            case _:
                scan = polars.scan_ipc(escape_glob(path))
        return scan.collect_schema().names()


def read_table(path: Path) -> "polars.DataFrame":
    """The table at ``path``, whose suffix decides the format."""
    import polars

    check_there(path)
    with readable(path):
        match table_suffix(path):
            case ".csv" | ".tsv" | ".csv.gz" | ".tsv.gz":
                return _read_text(path)
            case ".xlsx":
                return _read_sheet(path)
            case ".parquet":
                return polars.read_parquet(escape_glob(path))
            case ".jsonl" | ".ndjson":
                return polars.read_ndjson(escape_glob(path), infer_schema_length=None)
            case _:
                return polars.read_ipc(escape_glob(path))


def check_output(path: Path) -> None:
    """Raise where the suffix is not one of a format that tables are written in, or where no file can be written."""
    if path.suffix.lower() not in WRITERS:
        raise UserError(Setting("output"), f" must end in one of {', '.join(WRITERS)}, got {str(path)!r}.")
    if is_run_file(path):
        raise UserError(Setting("output"), f" must be no file of a run, got {str(path)!r}; choose another name.")
    writable_file(path)


def write_table(frame: "polars.DataFrame", path: Path) -> None:
    """Write ``frame`` to ``path`` atomically; the suffix decides the format."""
    check_output(path)
    content = io.BytesIO()
    getattr(frame, WRITERS[path.suffix.lower()])(content)
    atomic_write(path, content.getvalue())


def as_frame(table: Any) -> "polars.DataFrame":
    """A path, a polars frame or a pandas frame as a polars frame."""
    import polars

    if isinstance(table, str | Path):
        return read_table(Path(table))
    if isinstance(table, polars.LazyFrame):
        table = table.collect()
    if isinstance(table, polars.DataFrame):
        return table
    if is_pandas(table):
        return _from_pandas(table)
    raise UserError(f"A table must be a path, a polars or a pandas frame, got {type(table).__name__}.")


def is_frame(x: Any) -> bool:
    """Whether ``x`` is a frame of pandas or polars."""
    return _library(x) in ("pandas", "polars") and type(x).__name__ == "DataFrame"


def is_series(x: Any) -> bool:
    """Whether ``x`` is a column of pandas or polars."""
    return _library(x) in ("pandas", "polars") and type(x).__name__ == "Series"


def is_pandas(x: Any) -> bool:
    """Whether ``x`` is an object of pandas, which is not imported for the question."""
    return _library(x) == "pandas"


def _library(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def category_columns(table: Any) -> list[str]:
    """The columns of a pandas frame that are of type category; none of other tables, whose columns keep their type."""
    if not is_pandas(table):
        return []
    return [str(name) for name, kind in table.dtypes.items() if str(kind) == "category"]


def _read_text(path: Path) -> "polars.DataFrame":
    import polars

    names, separator = _header(path)
    check_distinct(path.name, names)
    try:
        frame = _read_csv(escape_glob(path), path, len(names), separator)
    except polars.exceptions.ComputeError as error:
        if not _is_about_utf8(error):
            raise
        with opened(path) as file:
            frame = _read_csv(as_utf8(file.read(), str(path)), path, len(names), separator)
    if frame.width == len(names):
        frame.columns = names  # polars keeps the doubled quotes of a quoted name
    return frame


def _read_csv(source: str | bytes, path: Path, width: int, separator: str) -> "polars.DataFrame":
    """The rows of ``source``, the file at ``path`` or its content."""
    import polars

    try:
        return polars.read_csv(source, separator=separator, infer_schema_length=TYPED_BY)
    except polars.exceptions.ComputeError as error:
        if _is_about_utf8(error):
            raise
        # A later row does not fit the types of the first ones: infer from all rows, which takes longer.
        with io.TextIOWrapper(opened(path), "utf-8", "replace", newline="") as file:
            check_widths(file, width, str(path), separator)
        return polars.read_csv(source, separator=separator, infer_schema_length=None)


def _read_sheet(path: Path) -> "polars.DataFrame":
    """The first sheet of a spreadsheet."""
    import polars

    try:
        import fastexcel
    except ImportError:
        raise UserError(
            f"{path} is read by fastexcel, which is not installed: pip install 'umix[excel]', or save the sheet as CSV."
        ) from None
    try:
        return polars.read_excel(path, infer_schema_length=None)
    except fastexcel.FastExcelError as error:
        raise _unreadable(str(path), "xlsx", error) from None


def opened(path: Path) -> IO[bytes]:
    """The file of a text table, open to be read; one that is compressed by gzip is unpacked meanwhile."""
    if path.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return open(path, "rb")


def as_utf8(content: bytes, where: str) -> bytes:
    """``content`` in UTF-8; what is not so already is taken for Windows-1252, which has the letters of Latin-1, with a warning.

    Raises UserError where it is no such text either: UTF-16, or no text at all.
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        _check_text(content, where)
        if b"\0" in content:
            raise _no_utf8(where) from None
        text = content.decode("cp1252", errors="replace")
        read_as = "was read as Windows-1252 (Latin-1); if its letters look wrong, save it again as UTF-8."
        # Always said from this line, so that Python shows it once however often the file is read.
        warnings.warn(f"{_capital(where)} is no text in UTF-8 and {read_as}", UmixWarning, stacklevel=1)
        return text.encode()
    return content


def _check_text(begin: bytes, where: str) -> None:
    """Raise where a file begins like one of another format."""
    for begins, (kind, fix) in _NO_TEXT.items():
        if begin.startswith(begins):
            raise UserError(f"{_capital(where)} must be a table in plain text, but it is {kind}; {fix}.")


def _header(path: Path) -> tuple[list[str], str]:
    """The column names of a text table and what separates them."""
    with opened(path) as file:
        begin = file.read(_LONGEST_HEADER)
    return header_names(begin[: first_row_end(begin)], str(path), tabs=table_suffix(path).startswith(".tsv"))


def first_row_end(data: bytes) -> int:
    """Where the first row ends: at a line end that is not inside quotes."""
    begin, quotes = 0, 0
    while end := data.find(b"\n", begin) + 1:
        quotes += data.count(b'"', begin, end)
        if not quotes % 2:
            return end
        begin = end
    return len(data)


def header_names(header: bytes, where: str, *, tabs: bool = False) -> tuple[list[str], str]:
    """The column names in the first row of a text table and what separates them."""
    _check_text(header, where)
    text = as_utf8(header, where).decode("utf-8-sig")
    if "\0" in text:  # UTF-16 without a mark
        raise _no_utf8(where)
    separator = "\t" if tabs else max(",;\t|", key=text.partition("\n")[0].count)
    names = row_values(text, separator, where)
    if not names:
        raise UserError(f"{_capital(where)} must have a row of column names and rows below it, but it is empty.")
    return names, separator


def row_values(row: str, separator: str, where: str) -> list[str]:
    """The values in the first row of a text table; empty if there is none."""
    try:
        return next(csv.reader(io.StringIO(row, newline=""), delimiter=separator), [])
    except csv.Error as error:  # a value of more than 131,072 characters: most often a quote that is not closed
        raise UserError(
            f"{_capital(where)} must be a table, but one of its rows cannot be read ({error}); is a quote open?"
        ) from None


def check_widths(lines: Iterable[str], width: int, where: str, separator: str, *, first: int = 0) -> None:
    """Raise where a row of a text table has more than ``width`` values; polars does not say which.

    ``first`` is the number of the first row, 0 that of the header.
    """
    try:
        for number, values in enumerate(csv.reader(lines, delimiter=separator), start=first):
            if len(values) > width:
                raise UserError(
                    f"Every row of {where} must have {width} values, but row {number} below the header has {len(values)}; look "
                    "for a separator or a quote too many."
                )
    except csv.Error:
        return  # polars has read more than this reader can


@contextmanager
def readable(where: Path | str, kind: str = "") -> Iterator[None]:
    """Inside the block, what polars cannot read is the user's error: ``where`` must be a table of this ``kind``."""
    import polars

    try:
        yield
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError, EOFError, zlib.error) as error:
        raise _unreadable(str(where), kind or table_suffix(Path(where))[1:], error) from None


def check_there(path: Path) -> None:
    if table_suffix(path) not in SUFFIXES:
        raise UserError(f"A table must end in one of {', '.join(SUFFIXES)}, got {str(path)!r}.")
    check_file(path)


def check_file(path: Path) -> None:
    """Raise where there is no file at ``path``: a pipe or a device is none, opening one may take forever."""
    if not os.path.isfile(path):  # unlike pathlib's it knows names that no file can have
        raise UserError(f"There is no file {path}.")


def check_data_file(name: str) -> None:
    """Raise where ``name`` ends like a table or an array file and there is none, before anything is imported to read it."""
    if table_suffix(Path(name)) in (*SUFFIXES, *ARRAYS):
        check_file(Path(name))


def check_distinct(where: str, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UserError(
            f"The columns of {where} must have different names, but {twice[0]!r} is there twice; rename one."
        )


def _unreadable(where: str, kind: str, error: BaseException) -> UserError:
    reason = " ".join(str(error).split("\n")[0].split())
    if _is_about_utf8(error):
        return _no_utf8(where)
    return UserError(f"{_capital(where)} must be a whole {kind} table, but it cannot be read ({reason.rstrip('.')}).")


def _is_about_utf8(error: BaseException) -> bool:
    return any(name in str(error).lower() for name in ("utf-8", "utf8"))


def _no_utf8(where: str) -> UserError:
    return UserError(
        f"{_capital(where)} must be text in UTF-8, but it is not; save it again as UTF-8 (iconv -t utf-8)."
    )


def _capital(where: str) -> str:
    """``where`` at the beginning of a sentence: a path stays as it is."""
    return where[0].upper() + where[1:] if where.startswith(("standard ", "the ")) else where


def _from_pandas(table: Any) -> "polars.DataFrame":
    """The same columns in polars, whose own conversion needs pyarrow for texts."""
    import polars

    names = [str(name) for name in table.columns]
    check_distinct("the table", names)
    columns = {}
    for place, name in enumerate(names):
        column = table.iloc[:, place]
        if getattr(column.dtype, "tz", None) is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        if getattr(column.dtype, "kind", "O") in "biufmM" and type(column.dtype).__module__.startswith("numpy"):
            values = column.to_numpy()
            unit = {"M": "datetime64[us]", "m": "timedelta64[us]"}.get(
                values.dtype.kind
            )  # polars has no type of seconds
            columns[name] = polars.Series(values.astype(unit) if unit else values)
        else:
            texts = [
                None if gone else value for value, gone in zip(column.to_list(), column.isna().tolist(), strict=True)
            ]
            columns[name] = polars.Series(texts, strict=False)
    return polars.DataFrame(columns)
