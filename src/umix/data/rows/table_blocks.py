"""Tables read block by block: CSV of any length, from a file or a pipe, in constant memory."""

import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, final

from umix.data.rows.table_file import (
    TEXT_SUFFIXES,
    TYPED_BY,
    as_frame,
    as_utf8,
    check_distinct,
    check_there,
    check_widths,
    first_row_end,
    header_names,
    opened,
    readable,
    table_suffix,
)
from umix.errors import UserError

if TYPE_CHECKING:
    import polars
    from polars._typing import PolarsDataType as PolarsType

_BYTES = 2**22  # of CSV in a block
_ROWS = 2**15  # in a block of a table that is in memory
_LONGEST = 2**26  # bytes of a row, after which a quote has been forgotten


def table_blocks(table: Any, *, texts: Collection[str] = (), copied: str | None = None) -> "Iterator[polars.DataFrame]":
    """The rows of a table, a block after the other; at least one block, which may be empty.

    ``table`` is a path, a polars or a pandas frame, or an open file with CSV. In CSV the columns ``texts`` are read as they are
    written. So is the column ``copied``, but where it holds nothing but whole numbers it is a column of these. Types of the others
    are those of the first rows; a block that contradicts them has types of its own.
    """
    if isinstance(table, str | Path) and table_suffix(Path(table)) in TEXT_SUFFIXES:
        check_there(Path(table))
        with readable(table):
            file = opened(Path(table))
        with file:
            tabs = table_suffix(Path(table)).startswith(".tsv")
            yield from _csv_blocks(file, str(table), texts, copied, tabs=tabs)
    elif hasattr(table, "read"):
        where = "standard input" if getattr(table, "name", "") == "<stdin>" else "the open file"
        yield from _csv_blocks(table, where, texts, copied)
    else:
        frame = as_frame(table)
        for begin in range(0, max(1, len(frame)), _ROWS):
            yield frame.slice(begin, _ROWS)


def _csv_blocks(
    file: IO[Any], where: str, texts: Collection[str], copied: str | None, *, tabs: bool = False
) -> "Iterator[polars.DataFrame]":
    pieces = (as_utf8(rows, where) for rows in _whole_rows(file, where))
    rows = next(pieces, b"").removeprefix(b"\xef\xbb\xbf")
    header = rows[: first_row_end(rows)]
    names, separator = header_names(header, where, tabs=tabs)
    check_distinct(where, names)
    csv = _Csv(where, names, separator, {*texts, copied})
    rows = rows[len(header) :]
    first, done = None, 0
    while True:
        first = first or csv.types(rows, n_rows=TYPED_BY)
        frame = csv.read(rows, first, after=done)
        done += len(frame)
        yield frame if copied not in names else frame.with_columns(_whole_numbers(frame[copied]))
        rows = next(pieces, b"")
        if not rows:
            return


@final
@dataclass(frozen=True)
class _Csv:
    """What the header of a CSV says, and which columns are ``texts``."""

    where: str
    names: Sequence[str]
    separator: str
    texts: Collection[str | None]

    def read(self, rows: bytes, types: "Sequence[PolarsType]", *, after: int) -> "polars.DataFrame":
        """The rows with columns of these types, ``after`` so many others; of types by all rows where a value does not fit."""
        import polars

        try:
            frame = self._frame(rows, schema=dict(zip(self._places, types, strict=True)))
        except polars.exceptions.PolarsError:
            types = self.types(rows, n_rows=None, after=after)
            with readable(self.where, "csv"):
                frame = self._frame(rows, schema=dict(zip(self._places, types, strict=True)))
        frame.columns = list(self.names)
        return frame

    def types(self, rows: bytes, *, n_rows: int | None, after: int = 0) -> "list[PolarsType]":
        """The type of each column by the first ``n_rows``, or by all."""
        import polars

        with readable(self.where, "csv"):
            try:
                kinds = self._frame(rows, infer_schema_length=n_rows, n_rows=n_rows).dtypes
            except polars.exceptions.PolarsError:
                lines = io.StringIO(rows.decode(errors="replace"), newline="")
                check_widths(lines, len(self.names), self.where, self.separator, first=after + 1)
                raise
        return [polars.String() if name in self.texts else kind for name, kind in zip(self.names, kinds, strict=True)]

    def _frame(self, rows: bytes, **options: Any) -> "polars.DataFrame":
        import polars

        header = self.separator.join(self._places).encode() + b"\n"  # names as they are could be quoted
        return polars.read_csv(header + rows, separator=self.separator, **options)

    @property
    def _places(self) -> list[str]:
        return [str(place) for place in range(len(self.names))]


def _whole_numbers(column: "polars.Series") -> "polars.Series":
    """The texts as whole numbers, if these are written in the same way."""
    import polars

    numbers = column.cast(polars.Int64, strict=False)
    return numbers if numbers.cast(polars.String).equals(column) else column


def _whole_rows(file: IO[Any], where: str) -> Iterator[bytes]:
    """The bytes of the file in pieces that end where a row ends."""
    rest = b""
    while piece := _read(file, where):
        rest += piece
        if len(rest) < _BYTES:  # the end of the file belongs to the last piece
            continue
        if end := _last_row_end(rest):
            yield rest[:end]
            rest = rest[end:]
        if len(rest) > _LONGEST:
            raise UserError(
                f"Every row of {where} must end, but one is longer than {_LONGEST // 2**20} MB; look for an open quote."
            )
    if rest:
        yield rest


def _read(file: IO[Any], where: str) -> bytes:
    """The next bytes of the file, none at its end."""
    with readable(where, "csv"):
        piece: bytes | str = file.read(_BYTES)
    return piece.encode() if isinstance(piece, str) else piece


def _last_row_end(data: bytes) -> int:
    """Where the last whole row ends, 0 if there is none."""
    end = data.rfind(b"\n") + 1
    if b'"' not in data:
        return end
    quotes = data.count(b'"', 0, end)
    while quotes % 2:  # inside quotes
        earlier = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', earlier, end)
        end = earlier
    return end
