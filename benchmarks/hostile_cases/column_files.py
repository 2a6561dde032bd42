"""Parquet, Arrow and JSON lines with columns of odd types, odd values, and spoiled bytes."""

import io
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars

from hostile_cases.case import Case, Maker
from hostile_cases.mutations import OF_ANY_FILE, OF_TEXT, odd_text, pick, some, spoiled
from hostile_cases.people import people, predicts, reads, roles, some_run

SUFFIXES = (".parquet", ".arrow", ".feather", ".jsonl", ".ndjson")
#: What polars raises where a column cannot be made, or cannot be written in a format.
NO_SUCH_COLUMN = (
    polars.exceptions.PolarsError,
    polars.exceptions.PanicException,
    OverflowError,
    TypeError,
    ValueError,
)
Retype = Callable[[polars.Series, np.random.Generator], polars.Series]
_EXTREMES: Sequence[tuple[Any, Sequence[Any]]] = (
    (polars.Int8, (-128, 127)),
    (polars.Int64, (-(2**63), 2**63 - 1, 0, 2**53 + 1)),
    (polars.UInt64, (2**64 - 1, 2**64 - 2, 0)),
    (polars.Int128, (2**126, -(2**126), 0)),
    (polars.Float32, (float("inf"), float("-inf"), float("nan"), 3.4e38, 1e-45, 0.0)),
    (polars.Float64, (float("inf"), float("nan"), 1.7e308, -1.7e308, 5e-324, -0.0)),
    (polars.Date, (date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1))),
    (polars.Datetime("ns"), (datetime(1678, 1, 1), datetime(2262, 1, 1))),
    (polars.Datetime("ms", "Asia/Tokyo"), (datetime(1, 1, 2), datetime(9999, 12, 30))),
    (polars.Duration("us"), (timedelta(days=10**6), timedelta(days=-(10**6)), timedelta(0))),
    (polars.Time, (time(0), time(23, 59, 59, 999999))),
    (polars.Decimal(38, 10), (Decimal("1e20"), Decimal("-0.0000000001"))),
    (polars.Boolean, (True, False)),
    (polars.Binary, (b"", b"\xff\x00", b"abc")),
    (polars.List(polars.Int64), ([], [1], [1, 2])),
    (polars.List(polars.List(polars.String)), ([["a"]], [])),
    (polars.Array(polars.Float32, 2), ([1.0, 2.0], [float("nan"), 0.0])),
    (polars.Struct({"a": polars.Int64, "b": polars.String}), ({"a": 1, "b": "x"}, {"a": None, "b": None})),
    (polars.String, ("", "a", "\x00")),
    (polars.Null, (None,)),
)


def _extreme(column: polars.Series, rng: np.random.Generator) -> polars.Series:
    """Values at the ends of a type."""
    kind, values = pick(rng, _EXTREMES)
    drawn = [pick(rng, values) if rng.random() < 0.9 else None for _ in range(len(column))]
    return polars.Series(column.name, drawn, dtype=kind, strict=False)


def _physical(column: polars.Series, rng: np.random.Generator) -> polars.Series:
    """Numbers taken for moments, durations or decimals, also those that no calendar has."""
    numbers = rng.integers(-(2**62), 2**62, len(column)) >> int(rng.integers(0, 62))
    kinds = (
        polars.Datetime("us"),
        polars.Datetime("ns"),
        polars.Datetime("ms"),
        polars.Duration("ns"),
        polars.Date,
        polars.Time,
    )
    kind = pick(rng, kinds)
    whole = polars.Series(column.name, numbers)
    return whole.cast(polars.Int32, strict=False).cast(kind) if kind == polars.Date else whole.cast(kind, strict=False)


def _nested(column: polars.Series, rng: np.random.Generator) -> polars.Series:
    """The same values, each in a list or a structure."""
    return column.reshape((-1, 1)).arr.to_list() if rng.random() < 0.5 else column.to_frame().to_struct(column.name)


def _category(column: polars.Series, rng: np.random.Generator) -> polars.Series:
    """The same values, encoded by a dictionary."""
    text = column.cast(polars.String)
    return (
        text.cast(polars.Categorical)
        if rng.random() < 0.5
        else text.cast(polars.Enum(text.unique().drop_nulls().sort()))
    )


def _bytes(column: polars.Series, rng: np.random.Generator) -> polars.Series:
    return column.cast(polars.String).cast(polars.Binary)


def _texts(column: polars.Series, rng: np.random.Generator) -> polars.Series:
    """Odd texts in some or all rows."""
    values, share = [odd_text(rng) for _ in range(int(rng.integers(1, 6)))], pick(rng, (0.05, 0.3, 1.0))
    texts = column.cast(polars.String).to_list()
    return polars.Series(column.name, [pick(rng, values) if rng.random() < share else text for text in texts])


def _gaps(column: polars.Series, rng: np.random.Generator) -> polars.Series:
    """The same values with gaps, or nothing but gaps."""
    share = pick(rng, (0.1, 0.9, 1.0))
    return column.set(polars.Series(rng.random(len(column)) < share), None)


def _many(column: polars.Series, rng: np.random.Generator) -> polars.Series:
    """As many different values as rows, as texts or numbers."""
    numbers = polars.Series(column.name, rng.permutation(len(column)))
    return pick(
        rng, (numbers, numbers.cast(polars.String), numbers.cast(polars.Float64) + 0.5, numbers.cast(polars.Boolean))
    )


RETYPES: tuple[Retype, ...] = (
    _extreme,
    _extreme,
    _extreme,
    _physical,
    _nested,
    _category,
    _bytes,
    _texts,
    _gaps,
    _many,
)


def content_of(frame: polars.DataFrame, suffix: str) -> bytes:
    """The bytes of ``frame`` in the format of this suffix."""
    out = io.BytesIO()
    if suffix == ".parquet":
        frame.write_parquet(out)
    elif suffix in (".arrow", ".feather"):
        frame.write_ipc(out)
    else:
        frame.write_ndjson(out)
    return out.getvalue()


def _case(content: bytes, suffix: str, folder: Path, rng: np.random.Generator, what: str) -> Case:
    """A command on a file with this content: a run, the doctor, or a prediction."""
    name = f"t{suffix}"
    (folder / name).write_bytes(content)
    if rng.random() < 0.35:
        return predicts(some_run(rng), name, rng, folder, what=f"predict {name}, {what}")
    argv = reads(name, rng, roles(rng))
    if rng.random() < 0.1:
        argv = [*argv, "--text", pick(rng, ("city", "id", "age"))]
    return Case(f"{argv[0]} {name}, {what}", argv)


def odd_types(folder: Path, rng: np.random.Generator) -> Case:
    """A table in which some columns have another type."""
    frame, suffix, said = polars.DataFrame(people(rng)), pick(rng, SUFFIXES), []
    for name in some(rng, frame.columns):
        for _ in range(10):
            try:
                column = pick(rng, RETYPES)(frame[name], rng)
                content = content_of(frame.with_columns(column), suffix)
            except NO_SUCH_COLUMN:
                continue
            frame = frame.with_columns(column)
            said.append(f"{name}: {column.dtype}")
            break
    content = content_of(frame, suffix)
    return _case(content, suffix, folder, rng, ", ".join(said)[:120])


def odd_shape(folder: Path, rng: np.random.Generator) -> Case:
    """A table with few rows or columns, or with columns of odd names."""
    frame, suffix = polars.DataFrame(people(rng)), pick(rng, SUFFIXES)
    what = pick(rng, ("rows", "columns", "names", "names"))
    if what == "rows":
        frame = frame.head(int(pick(rng, (0, 1, 2, 5))))
    elif what == "columns":
        frame = frame.select(some(rng, frame.columns)) if rng.random() < 0.7 else polars.DataFrame()
    else:
        for name in some(rng, frame.columns):
            if (new := odd_text(rng)) not in frame.columns:
                frame = frame.rename({name: new})
    return _case(content_of(frame, suffix), suffix, folder, rng, f"{what}: {frame.shape}")


def odd_bytes(folder: Path, rng: np.random.Generator) -> Case:
    """A valid file whose bytes were changed, or that has the suffix of another format."""
    suffix = pick(rng, SUFFIXES)
    written = pick(rng, SUFFIXES) if rng.random() < 0.1 else suffix
    content = content_of(polars.DataFrame(people(rng)), written)
    content, what = spoiled(content, rng, OF_TEXT if written.endswith(("jsonl", "ndjson")) else OF_ANY_FILE)
    return _case(content, suffix, folder, rng, f"{written} bytes: {what}")


def odd_json(folder: Path, rng: np.random.Generator) -> Case:
    """JSON lines with values of mixed types, keys that are missing or repeated, and lines that are no objects."""
    columns = people(rng)
    lines = []
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        if rng.random() < 0.1:
            row[pick(rng, (*columns, odd_text(rng)))] = _json_value(rng, depth=3)
        if rng.random() < 0.03:
            row.pop(pick(rng, list(row)))
        lines.append(json.dumps(row, ensure_ascii=bool(rng.random() < 0.5)))
    if rng.random() < 0.3:
        odd = ("", "[]", "1", "null", "{}", '{"y": 1, "y": 2}', '{"y": NaN}', "[" * 60 + "]" * 60, '{"y": "\\ud800"}')
        lines.insert(int(rng.integers(len(lines))), pick(rng, odd))
    return _case("\n".join(lines).encode("utf-8", "surrogatepass"), ".jsonl", folder, rng, "mixed")


def _json_value(rng: np.random.Generator, *, depth: int) -> Any:
    plain = (None, True, 0, -1, 1.5, 1e300, 10**30, odd_text(rng), "a", [], {})
    if depth == 0 or rng.random() < 0.6:
        return pick(rng, plain)
    inner = _json_value(rng, depth=depth - 1)
    return pick(rng, ([inner], [inner, 1], {"a": inner}, {odd_text(rng): inner}))


MAKERS: tuple[Maker, ...] = (odd_types, odd_types, odd_shape, odd_bytes, odd_json)
