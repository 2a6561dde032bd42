"""CSV and TSV files with spoiled bytes, cells, headers and rows."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hostile_cases.case import Case, Maker
from hostile_cases.mutations import OF_TEXT, odd_text, pick, some, spoiled
from hostile_cases.people import people, predicts, reads, roles, some_run

Rows = list[list[Any]]


def _rows(rng: np.random.Generator, n: int | None = None) -> Rows:
    """The header and the rows of a table that can be trained on."""
    columns = people(rng, n)
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def _text(rows: Rows, rng: np.random.Generator) -> bytes:
    out = io.StringIO(newline="")
    separator = pick(rng, (",", ",", ",", ";", "\t", "|"))
    style: dict[str, Any] = {"delimiter": separator, "lineterminator": pick(rng, ("\n", "\n", "\r\n"))}
    if rng.random() < 0.2:
        style["quoting"] = csv.QUOTE_ALL
    writer = csv.writer(out, **style)
    for row in rows:
        writer.writerow(row)
    return out.getvalue().encode("utf-8", "surrogatepass")


def _case(content: bytes, folder: Path, rng: np.random.Generator, what: str, flags: list[str] | None = None) -> Case:
    """A command on a file with this content: a run, the doctor, or a prediction from the file or standard input."""
    name = "t.tsv" if b"\t" in content.partition(b"\n")[0] else pick(rng, ("t.csv",) * 20 + ("t.txt", "t.tsv"))
    if rng.random() < 0.35:
        new = pick(rng, (name, "-"))
        (folder / name).write_bytes(content)
        return predicts(some_run(rng), new, rng, folder, stdin=content if new == "-" else b"", what=f"predict, {what}")
    (folder / name).write_bytes(content)
    argv = reads(name, rng, roles(rng) if flags is None else flags)
    if rng.random() < 0.1:
        argv = [*argv, "--text", pick(rng, ("city", "id", "age"))]
    return Case(f"{argv[0]} {name}, {what}", argv)


def odd_bytes(folder: Path, rng: np.random.Generator) -> Case:
    """A valid table whose bytes were changed."""
    content, what = spoiled(_text(_rows(rng), rng), rng, OF_TEXT)
    return _case(content, folder, rng, f"bytes: {what}")


def odd_cells(folder: Path, rng: np.random.Generator) -> Case:
    """A table with odd values: in a few cells, or in a whole column."""
    rows = _rows(rng)
    columns = some(rng, range(len(rows[0])), most=3)
    for column in columns:
        values = [odd_text(rng) for _ in range(int(rng.integers(1, 6)))]
        share = pick(rng, (0.05, 0.3, 1.0))
        for row in rows[1:]:
            if rng.random() < share:
                row[column] = pick(rng, values)
    return _case(_text(rows, rng), folder, rng, f"cells of {[rows[0][column] for column in columns]}")


def odd_header(folder: Path, rng: np.random.Generator) -> Case:
    """A table whose columns have odd names, the same name, none, or no header at all."""
    rows, flags = _rows(rng), roles(rng)
    header = rows[0]
    for change in some(rng, _HEADERS, most=2):
        change(rows, rng)
    for place, name in enumerate(people(rng, 1)):  # flags follow the names, so that some odd ones are found
        if rows and place < len(rows[0]) and rng.random() < 0.7:
            flags = [str(rows[0][place]) if word == name else word for word in flags]
    return _case(_text(rows, rng), folder, rng, f"header {str(header)[:60]}", flags)


def _rename(rows: Rows, rng: np.random.Generator) -> None:
    rows[0][int(rng.integers(len(rows[0])))] = odd_text(rng)


def _rename_all(rows: Rows, rng: np.random.Generator) -> None:
    rows[0] = [odd_text(rng) for _ in rows[0]]


def _same_name(rows: Rows, rng: np.random.Generator) -> None:
    rows[0][int(rng.integers(len(rows[0])))] = pick(rng, rows[0])


def _blank(rows: Rows, rng: np.random.Generator) -> None:
    rows[0] = [pick(rng, (name, "", " ", name)) for name in rows[0]]


def _no_header(rows: Rows, rng: np.random.Generator) -> None:
    del rows[0]


def _only_header(rows: Rows, rng: np.random.Generator) -> None:
    del rows[1 + int(rng.integers(0, 3)) :]


def _more_names(rows: Rows, rng: np.random.Generator) -> None:
    rows[0] += [f"more{i}" for i in range(int(pick(rng, (1, 3, 300))))]


def _fewer_names(rows: Rows, rng: np.random.Generator) -> None:
    del rows[0][int(rng.integers(1, len(rows[0]))) :]


_HEADERS: Sequence[Callable[[Rows, np.random.Generator], None]] = (
    _rename,
    _rename_all,
    _same_name,
    _blank,
    _no_header,
    _only_header,
    _more_names,
    _fewer_names,
)


def odd_rows(folder: Path, rng: np.random.Generator) -> Case:
    """A table with rows of other lengths, few rows, the same rows, or columns without a difference."""
    rows = _rows(rng, int(pick(rng, (0, 1, 2, 3, 4, 6, 10, 40))))
    what = pick(rng, ("as it is", "lengths", "repeated", "constant", "empty lines"))
    body = rows[1:]
    if what == "lengths":
        for row in body:
            if rng.random() < 0.2:
                row[:] = (row + ["more"] * 3)[: int(rng.integers(0, len(row) + 3))]
    elif what == "repeated" and body:
        body = [list(pick(rng, body)) for _ in range(40)]
    elif what == "constant" and body:
        for column in some(rng, range(len(rows[0])), most=6):
            for row in body:
                row[column] = body[0][column]
    elif what == "empty lines":
        body = [line for row in body for line in (row, *([[]] if rng.random() < 0.2 else []))]
    return _case(_text([rows[0], *body], rng), folder, rng, f"{len(body)} rows, {what}")


def very_wide(folder: Path, rng: np.random.Generator) -> Case:
    """A header of very many columns, or a single very long value."""
    if rng.random() < 0.5:
        n = int(pick(rng, (500, 200_000)))
        content = ",".join(f"c{i}" for i in range(n)).encode() + b"\n" + b"1,2\n3,4\n" * int(pick(rng, (1, 20)))
        return _case(content, folder, rng, f"{n} columns", ["--label", "c0"])
    rows = _rows(rng)
    pick(rng, rows)[int(rng.integers(len(rows[0])))] = pick(rng, ("x", "9", '"', "a,")) * 300_000
    return _case(_text(rows, rng), folder, rng, "a very long value")


MAKERS: tuple[Maker, ...] = (odd_bytes, odd_cells, odd_header, odd_rows, odd_bytes, odd_cells, odd_header, very_wide)
