"""Files of arrays: odd types, shapes and lengths, missing and superfluous arrays, and spoiled bytes."""

import atexit
import contextlib
import io
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars

from hostile_cases.case import Case, Maker
from hostile_cases.column_files import NO_SUCH_COLUMN, RETYPES, content_of
from hostile_cases.mutations import odd_text, pick, some, spoiled
from hostile_cases.people import QUICK, people, predicts, roles, train

Arrays = dict[str, Any]
_NUMBERS = ("?", "i1", "u1", "<i8", ">i4", "<u8", "<f2", ">f4", "<f8", "g", "F", "D")
_OTHERS = ("S5", "U5", "M8[us]", "m8[s]", "V8", "O")


def _arrays(rng: np.random.Generator) -> Arrays:
    """Arrays that can be trained on: inputs ``x`` and an array for every role."""
    columns = people(rng)
    n = len(columns["y"])
    shape = pick(rng, ((3,), (3,), (1,), (2, 5), (4, 4, 3)))
    return {"x": rng.normal(size=(n, *shape)).astype("f4"), **{name: np.array(columns[name]) for name in columns}}


def _content(arrays: Arrays, rng: np.random.Generator) -> bytes:
    out = io.BytesIO()
    save = np.savez_compressed if rng.random() < 0.3 else np.savez
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of odd names and types
        save(out, **arrays, allow_pickle=True)
    return out.getvalue()


def _retype(array: Any, rng: np.random.Generator) -> Any:
    """The values as another type."""
    kind = pick(rng, (*_NUMBERS, *_OTHERS))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return np.asarray(array).astype(kind)
        except (ValueError, TypeError):
            return np.zeros(np.shape(array), dtype=kind)


def _reshape(array: Any, rng: np.random.Generator) -> Any:
    """The values with other axes, or other rows."""
    n = len(array)
    shapes: Sequence[Any] = (
        array[:0],
        array[:1],
        array[: n - 1],
        np.concatenate([array, array]),
        array[None],
        array[..., None],
        array.reshape(-1),
        array.reshape(n, -1)[:, :0] if array.size else array,
        array.reshape(-1)[0] if array.size else array,
        np.broadcast_to(array.reshape(-1)[0], array.shape) if array.size else array,
    )
    return pick(rng, shapes)


def _odd_values(array: Any, rng: np.random.Generator) -> Any:
    """Some values that are not finite, at the ends of their type, or odd texts."""
    array = np.array(array)
    chosen = rng.random(array.shape) < pick(rng, (0.02, 0.5, 1.0))
    if array.dtype.kind == "f":
        array[chosen] = pick(rng, (np.nan, np.inf, -np.inf, np.finfo(array.dtype).max, 0))
    elif array.dtype.kind in "iu":
        array[chosen] = np.iinfo(array.dtype).max
    elif array.dtype.kind == "U":
        array = np.where(chosen, odd_text(rng)[:50], array)
    return array


def _structured(array: Any, rng: np.random.Generator) -> Any:
    """The values as a field of records, masked, or as objects."""
    fields = np.zeros(len(array), dtype=[("a", "f4"), ("b", "U3")])
    return pick(
        rng,
        (
            fields,
            np.array([{"a": 1}] * len(array)),
            np.array([None] * len(array)),
            np.array(["a", None, 1.5], dtype=object),
        ),
    )


_CHANGES = (_retype, _retype, _reshape, _odd_values, _odd_values, _structured)


@cache
def array_run() -> Path:
    """A finished run on arrays, made once in every process."""
    scratch = Path(tempfile.mkdtemp(prefix="hostile-run-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    rng = np.random.default_rng(0)
    n = 60
    np.savez(scratch / "a.npz", x=rng.normal(size=(n, 3)), y=np.arange(n) % 2, id=np.arange(n))
    return train(scratch, str(scratch / "a.npz"), "--label", "y", "--id", "id")


def _case(content: bytes, name: str, folder: Path, rng: np.random.Generator, what: str, *words: str) -> Case:
    (folder / name).write_bytes(content)
    if rng.random() < 0.35:
        return predicts(array_run(), name, rng, folder, what=f"predict {name}, {what}")
    flags = ["--label", "y"] if words else roles(rng)
    argv = ["doctor", name, *flags] if rng.random() < 0.4 else ["run", name, "erm", *flags, *QUICK]
    return Case(f"{argv[0]} {name}, {what}", [*argv, *words])


def odd_arrays(folder: Path, rng: np.random.Generator) -> Case:
    """Some arrays of other types, shapes or values, renamed or left out."""
    arrays, said = _arrays(rng), []
    for name in some(rng, ["x", "x", "y", "y", "g", "h", "w", "split", "id"]):
        change = pick(rng, _CHANGES)
        if rng.random() < 0.1:
            arrays.pop(name, None)
        elif name in arrays:
            arrays[name] = change(arrays[name], rng)
            said.append(f"{name} {np.asarray(arrays[name]).dtype} {np.shape(arrays[name])}")
    if rng.random() < 0.2:
        arrays[pick(rng, ("../x", "a/b", "é", " ", "x.npy", "x" * 300))] = np.zeros(2)
    return _case(_content(arrays, rng), "t.npz", folder, rng, ", ".join(said))


def one_array(folder: Path, rng: np.random.Generator) -> Case:
    """A file of one array, and a table of its rows that may be odd too."""
    x = _arrays(rng)["x"]
    for _ in range(int(rng.integers(0, 3))):
        x = pick(rng, _CHANGES)(x, rng) if np.ndim(x) else x
    out = io.BytesIO()
    np.save(out, x, allow_pickle=True)
    frame = polars.DataFrame(people(rng, len(x) if np.ndim(x) and rng.random() < 0.9 else 7))
    if rng.random() < 0.3 and len(frame):
        with contextlib.suppress(*NO_SUCH_COLUMN):
            frame = frame.with_columns(pick(rng, RETYPES)(frame[pick(rng, frame.columns)], rng))
    (folder / "rows.parquet").write_bytes(content_of(frame, ".parquet"))
    what = f"{np.asarray(x).dtype} {np.shape(x)}"
    rows = ("--rows", pick(rng, ("rows.parquet",) * 4 + ("t.npy", "nowhere.csv", ".")))
    return _case(out.getvalue(), "t.npy", folder, rng, what, *rows)


def odd_bytes(folder: Path, rng: np.random.Generator) -> Case:
    """A valid file whose bytes were changed."""
    arrays = _arrays(rng)
    if rng.random() < 0.5:
        content, what = spoiled(_content(arrays, rng), rng)
        return _case(content, "t.npz", folder, rng, f"bytes: {what}")
    out = io.BytesIO()
    np.save(out, arrays["x"])
    (folder / "rows.parquet").write_bytes(content_of(polars.DataFrame(people(rng, len(arrays["x"]))), ".parquet"))
    content, what = spoiled(out.getvalue(), rng)
    return _case(content, "t.npy", folder, rng, f"bytes: {what}", "--rows", "rows.parquet")


MAKERS: tuple[Maker, ...] = (odd_arrays, odd_arrays, one_array, odd_bytes)
