"""Ways to damage a file: general mutators that are drawn at random, chosen by what the file is."""

import copy
import csv
import io
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator
#: Damages the file at a path and says how.
Damage = Callable[[Path, Rng], str]

_DTYPES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "I16": 2,
    "I32": 4,
    "I64": 8,
    "F16": 2,
    "BF16": 2,
    "F32": 4,
    "F64": 8,
    "U64": 8,
    "NOPE": 4,
}
_TEXTS = (
    "",
    " ",
    "nope",
    "x" * 5000,
    "a\nb",
    "a\x00b",
    "\udc80",
    "../../x",
    "/",
    "0",
    "nan",
    "auto",
    "none",
    "\u202ex",
)
_NUMBERS = (0, -1, 1, 2, 0.5, -0.0, 1e300, -1e300, 2**31, 2**63, -(2**63) - 1, 10**4000, float("nan"), float("inf"))


def _pick(rng: Rng, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


# JSON


def mutated_json(value: Any, rng: Rng) -> tuple[Any, str]:
    """``value`` with one to three of its nodes changed, and what was changed."""
    whole, said = value, []
    value = copy.deepcopy(whole)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        value, what = _with_one_change(value, rng, whole)
        said.append(what)
    return value, "; ".join(said)


def _with_one_change(value: Any, rng: Rng, whole: Any) -> tuple[Any, str]:
    # Walk down a random way, so that nodes of small objects are met as often as those of long lists.
    way: list[tuple[Any, Any]] = []
    node = value
    while isinstance(node, dict | list) and node and (not way or rng.random() < 0.75):
        key = _pick(rng, list(node)) if isinstance(node, dict) else int(rng.integers(len(node)))
        way.append((node, key))
        node = node[key]
    if not way:
        return _other(node, rng, whole), "replaced the whole"
    parent, key = way[-1]
    name = ".".join(str(key) for _, key in way)
    kind = str(rng.choice(["delete", "duplicate", "retype", "tweak", "renest", "swap", "rename", "cut"]))
    if kind == "delete":
        del parent[key]
    elif kind == "duplicate" and isinstance(parent, list):
        parent.insert(key, node)
    elif kind == "duplicate":
        parent[str(_pick(rng, (*_TEXTS[:4], f"{key}2")))] = node
    elif kind == "rename" and isinstance(parent, dict):
        parent[str(_pick(rng, _TEXTS[:4]))] = parent.pop(key)
    elif kind == "cut" and isinstance(node, list | str | dict) and node:
        end = int(rng.integers(len(node)))
        parent[key] = dict(list(node.items())[:end]) if isinstance(node, dict) else node[:end]
    elif kind == "renest":
        for _ in range(int(_pick(rng, (1, 1, 2, 200, 1000, 3000)))):
            node = [node] if rng.random() < 0.5 else {"x": node}
        parent[key] = node
    elif kind == "swap":
        other, at = _pick(rng, way)
        (first, second), (there, place) = way[-1], (other, at)
        other_value = first[second]
        if there is not first:
            first[second] = _other(None, rng, whole)
            there[place] = other_value
        elif isinstance(there, list):
            there[int(rng.integers(len(there)))] = other_value
        else:
            there[_pick(rng, list(there))] = other_value
    elif kind == "tweak":
        parent[key] = _tweaked(node, rng, whole)
    else:
        parent[key] = _other(node, rng, whole)
    return value, f"{kind} {name[:80]}"


def _tweaked(node: Any, rng: Rng, whole: Any) -> Any:
    """A value of the same type."""
    if isinstance(node, bool):
        return not node
    if isinstance(node, int | float):
        return _pick(rng, (-node, node + 1, node * 10**9, node / 3, *_NUMBERS))
    if isinstance(node, str):
        return str(_pick(rng, (node[:-1], node + node, node.upper(), node + "\n", *_TEXTS)))
    return _other(node, rng, whole)


def _other(node: Any, rng: Rng, whole: Any) -> Any:
    """A value of any type."""
    several = [copy.deepcopy(whole), [], {}, [node], {"name": node}, [[]], [1, "a"], None, True, False]
    return _pick(rng, (*_NUMBERS, *_TEXTS, *several))


def written_json(value: Any) -> bytes:
    """``value`` as JSON; a nesting too deep for Python's writer is written by hand."""
    try:
        return json.dumps(value).encode("utf-8", "surrogatepass")
    except RecursionError:
        pieces: list[str] = []
        stack: list[Any] = [value]
        while stack:  # what stands for itself is a tuple of one text
            node = stack.pop()
            if isinstance(node, tuple):
                pieces.append(node[0])
            elif isinstance(node, list):
                parts = [part for one in node for part in ((", ",), one)][1:]
                stack += reversed([("[",), *parts, ("]",)])
            elif isinstance(node, dict):
                parts = [part for key, one in node.items() for part in ((f", {json.dumps(key)}: ",), one)]
                stack += reversed([("{",), *([(parts[0][0][2:],), *parts[1:]] if parts else []), ("}",)])
            else:
                pieces.append(json.dumps(node))
        return "".join(pieces).encode("utf-8", "surrogatepass")


def change_json(path: Path, rng: Rng) -> str:
    value, what = mutated_json(json.loads(path.read_bytes()), rng)
    content = written_json(value)
    if rng.random() < 0.05:
        content = content.replace(b"0", b"9" * 5000, 1)
        what += "; a number of 5,000 digits"
    path.write_bytes(content)
    return what


# bytes


def change_bytes(path: Path, rng: Rng) -> str:
    content = bytearray(path.read_bytes())
    n = max(1, len(content))
    at, length = int(rng.integers(n)), int(rng.integers(1, max(2, n // 4)))
    kind = str(rng.choice(["flip", "cut", "zero", "append", "empty", "random", "text", "head"]))
    if kind == "flip":
        for _ in range(int(rng.integers(1, 9))):
            if content:
                content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    elif kind == "head":  # formats say at their beginning what follows
        for _ in range(int(rng.integers(1, 4))):
            if content:
                content[int(rng.integers(min(64, len(content))))] = int(rng.integers(256))
    elif kind == "cut":
        del content[at:]
    elif kind == "zero":
        content[at : at + length] = bytes(len(content[at : at + length]))
    elif kind == "append":
        content += rng.bytes(length)
    elif kind == "empty":
        content.clear()
    elif kind == "random":
        content = bytearray(rng.bytes(int(rng.integers(1, 200))))
    else:
        content = bytearray(
            _pick(rng, (b"null", b"{}", b"[]", b"a,b\n1,2\n", b"[" * 100_000, b'{"kind": "umix run record"}'))
        )
    path.write_bytes(bytes(content))
    return f"bytes: {kind}"


# safetensors


def change_tensors(path: Path, rng: Rng) -> str:
    """Change tensors or metadata, and write a file whose header and length fit together again."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    metadata = header.pop("__metadata__", {})
    tensors = {name: (one["dtype"], one["shape"], data[slice(*one["data_offsets"])]) for name, one in header.items()}
    if not tensors or rng.random() < 0.35:
        what = _change_metadata(metadata, rng)
    else:
        what = "; ".join(_change_tensor(tensors, rng) for _ in range(int(rng.choice([1, 1, 2]))))
    header, parts, at = {"__metadata__": metadata} if metadata else {}, [], 0
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(values)]}
        parts.append(values)
        at += len(values)
    text = written_json(header)
    if rng.random() < 0.1:
        text, more = written_json(mutated_json(header, rng)[0]), "; the header too"
        what += more
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
    return what


def _change_metadata(metadata: dict[str, Any], rng: Rng) -> str:
    """Change what umix wrote: JSON in an entry, which may hold JSON in its entries."""
    if not metadata or rng.random() < 0.1:
        metadata.clear()
        return "no metadata"
    name = _pick(rng, list(metadata))
    facts = json.loads(metadata[name])
    inner = [key for key, value in facts.items() if isinstance(value, str) and value[:1] in ("{", "[")]
    if inner and rng.random() < 0.7:
        key = _pick(rng, inner)
        changed, what = mutated_json(json.loads(facts[key]), rng)
        facts[key] = written_json(changed).decode("utf-8", "surrogatepass")
        what = f"metadata {key}: {what}"
    else:
        facts, what = mutated_json(facts, rng)
        what = f"metadata: {what}"
    metadata[name] = written_json(facts).decode("utf-8", "surrogatepass")
    return what


def _change_tensor(tensors: dict[str, tuple[str, list[int], bytes]], rng: Rng) -> str:
    if not tensors:
        return "nothing"
    name = _pick(rng, list(tensors))
    dtype, shape, values = tensors[name]
    kinds = ["drop", "rename", "copy", "reshape", "retype", "fill", "fewer", "more", "swap", "cast"]
    kind = str(rng.choice(kinds))
    count = max(1, len(values) // _DTYPES[dtype])
    if kind == "drop":
        del tensors[name]
    elif kind == "rename":
        tensors[str(_pick(rng, (*_TEXTS[:5], f"{name}2", name.rpartition("/")[2])))] = tensors.pop(name)
    elif kind == "copy":
        tensors[str(_pick(rng, (*_TEXTS[:5], f"{name}2", f"val/{name}")))] = tensors[name]
    elif kind == "reshape":
        tensors[name] = (dtype, _pick(rng, ([*shape, 1], [1, *shape], shape[::-1], [count], [1, count, 1], [])), values)
        if tensors[name][1] == [] and count != 1:
            tensors[name] = (dtype, [], values[: _DTYPES[dtype]])
    elif kind == "retype":  # the same bytes, read as something else
        alike = [other for other, width in _DTYPES.items() if width == _DTYPES[dtype] and other != dtype]
        tensors[name] = (_pick(rng, alike or ["NOPE"]), shape, values)
    elif kind == "fill":
        tensors[name] = (dtype, shape, _filled(dtype, values, rng))
    elif kind in ("fewer", "more"):  # rows
        rows = (shape or [1])[0]
        row = len(values) // max(1, rows)
        other = int(_pick(rng, (0, 1, max(0, rows - 1)) if kind == "fewer" else (rows + 1, 2 * rows + 1)))
        tensors[name] = (dtype, [other, *shape[1:]], (values * (other // max(1, rows) + 1))[: other * row])
    elif kind == "swap":
        other_name = _pick(rng, list(tensors))
        tensors[name], tensors[other_name] = tensors[other_name], tensors[name]
    else:
        other = str(_pick(rng, [known for known in _DTYPES if known not in (dtype, "NOPE", "BF16")]))
        tensors[name] = (other, shape, _filled(other, bytes(count * _DTYPES[other]) if values else b"", rng))
    return f"{kind} {name[:80]}"


def _filled(dtype: str, values: bytes, rng: Rng) -> bytes:
    """So many bytes of numbers that are odd for their type."""
    kind = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
    if dtype not in kind:
        return rng.bytes(len(values))
    array = np.frombuffer(values, dtype=kind[dtype]).copy()
    odd = (np.nan, np.inf, -np.inf, 1e30, 0) if "f" in kind[dtype] else (0, -1, 1, 100, np.iinfo(array.dtype).max)
    with np.errstate(all="ignore"):
        value = np.array(_pick(rng, odd)).astype(array.dtype)
    array[int(rng.integers(max(1, len(array)))) if rng.random() < 0.3 else 0 :] = value
    return array.tobytes()


# tables


def change_parquet(path: Path, rng: Rng) -> str:
    import polars

    table = polars.read_parquet(path)
    name = _pick(rng, table.columns)
    kind = str(rng.choice(["drop", "rename", "cast", "null", "fewer", "more", "value", "none", "nested"]))
    column = table[name]
    if kind == "drop":
        table = table.drop(name)
    elif kind == "rename":
        table = table.rename({name: str(_pick(rng, (f"{name}2", "", "x")))})
    elif kind == "cast":
        other = _pick(rng, (polars.String, polars.Float64, polars.Int8, polars.UInt64))
        table = table.with_columns(column.cast(polars.String).cast(other, strict=False).alias(name))
    elif kind == "null":
        table = table.with_columns(
            polars.when(polars.int_range(len(table)) % 3 == 0).then(None).otherwise(column).alias(name)
        )
    elif kind == "fewer":
        table = table.head(int(rng.integers(len(table))))
    elif kind == "more":
        table = polars.concat([table, table.head(1)])
    elif kind == "value" and column.dtype.is_numeric():
        value = _pick(rng, (-1, 99, 0, 2**31 - 1))
        table = table.with_columns(polars.lit(value).cast(column.dtype, strict=False).alias(name))
    elif kind == "none":
        table = table.clear()
    else:
        table = table.with_columns(polars.Series(name, [[1]] * len(table)))
    table.write_parquet(path)
    return f"table: {kind} {name}"


def change_csv(path: Path, rng: Rng) -> str:
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    row = int(rng.integers(len(rows)))
    place = int(rng.integers(len(rows[row])))
    if rng.random() < 0.3:
        del rows[row][place]
    else:
        rows[row][place] = str(_pick(rng, ("", "x", "-1", "nan", "1e999", "9" * 5000, '"', "a\nb")))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    path.write_bytes(text.getvalue().encode("utf-8", "surrogatepass"))
    return f"cell {row}, {place}"


def change_archive(path: Path, rng: Rng) -> str:
    """Change one file of a zip archive, and write a whole archive again."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = _pick(rng, list(parts))
    if rng.random() < 0.2:
        del parts[name]
        what = "dropped"
    elif name.endswith(".json"):
        value, what = mutated_json(json.loads(parts[name]), rng)
        parts[name] = written_json(value)
    else:
        inner = path.with_name("inner")
        inner.write_bytes(parts[name])
        what = change_bytes(inner, rng)
        parts[name] = inner.read_bytes()
        inner.unlink()
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    return f"{name}: {what}"


# files


def change_file(path: Path, rng: Rng) -> str:
    """Put something else in the file's place."""
    kind = str(rng.choice(["delete", "folder", "loop", "dangling", "fifo", "link to a folder", "mode", "device"]))
    if kind == "mode":
        path.chmod(int(_pick(rng, (0o000, 0o111, 0o444))))
        return kind
    path.unlink()
    if kind == "folder":
        path.mkdir()
        if rng.random() < 0.5:
            (path / "x").write_text("x")
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "link to a folder":
        path.symlink_to(".")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    return kind


_BY_SUFFIX: dict[str, Damage] = {
    ".json": change_json,
    ".safetensors": change_tensors,
    ".parquet": change_parquet,
    ".csv": change_csv,
    ".skops": change_archive,
}


def damage(path: Path, rng: Rng) -> str:
    """Damage the file at ``path`` in a way that is drawn, mostly one that keeps its format; returns it in words."""
    draw = rng.random()
    change = _BY_SUFFIX.get(path.suffix, change_bytes) if draw < 0.7 else change_bytes if draw < 0.88 else change_file
    return f"{path.name}: {change(path, rng)}"
