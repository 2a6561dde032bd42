"""Mutations of documents, trees of tables and lists, and of their text."""

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

ODD: tuple[Any, ...] = (0, -1, 1, 0.5, 1.5, math.nan, math.inf, -math.inf, True, False)
TEXTS: tuple[str, ...] = (
    "",
    " ",
    "none",
    "auto",
    "nan",
    "1",
    "x" * 5000,
    "a\nb",
    "a\x00b",
    "\u202egnp.x",
    "ﬁt",
    "\ud7ff\U0010ffff",
    "../../etc/passwd",
    "{}",
    "%s%n",
    "[red]",
)
Place = tuple[str | int, ...]


def deep(levels: int, kind: str = "list") -> Any:
    """A list or table that holds one, that holds one, and so on."""
    value: Any = 1
    for _ in range(levels):
        value = [value] if kind == "list" else {"a": value}
    return value


def any_value(rng: np.random.Generator) -> Any:
    """A value that fits few places: odd, of another type, or nested."""
    kind = rng.integers(5)
    if kind == 0:
        return one_of(rng, ODD)
    if kind == 1:
        return one_of(rng, TEXTS)
    if kind == 2:
        return deep(int(rng.choice([1, 2])), str(rng.choice(["list", "table"])))
    if kind == 3:
        return one_of(rng, ([], {}, [0] * 1000, ["a", 1], [[1, 2], [3]], {"": 1}, {"name": "mlp"}, {"fit": {"lr": 1}}))
    return [one_of(rng, ODD) for _ in range(int(rng.integers(1, 5)))]


def one_of(rng: np.random.Generator, values: Any) -> Any:
    """One of ``values``, as it is: NumPy's choice would make all of them the same type."""
    return values[int(rng.integers(len(values)))]


def paths(tree: Any, at: Place = ()) -> Iterator[Place]:
    """Where the tree holds something."""
    if at:
        yield at
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield from paths(value, (*at, key))


def mutated(tree: Any, rng: np.random.Generator) -> tuple[Any, str]:
    """A copy of ``tree`` with one place changed, and what was changed in words."""
    tree = json.loads(json.dumps(tree))
    found = list(paths(tree))
    if not found:
        return any_value(rng), "everything"
    place = found[int(rng.integers(len(found)))]
    holder = tree
    for key in place[:-1]:
        holder = holder[key]
    last, where = place[-1], ".".join(map(str, place))
    kind = int(rng.integers(8))
    if kind <= 2:
        holder[last] = any_value(rng)
        return tree, f"{where} = {str(holder[last])[:30]}"
    if kind == 3:
        holder[last] = [holder[last]] if rng.integers(2) else {str(last): holder[last]}
        return tree, f"{where} wrapped"
    if kind == 3:
        del holder[last]
        return tree, f"{where} left out"
    if kind == 5 and isinstance(holder, dict):
        other = one_of(
            rng, (f"{last}s", "", "a.b", str(last).upper(), "é", "x" * 3000, f"{last} ", "fit", "net", "name")
        )
        holder[other] = holder.pop(last)
        return tree, f"{where} renamed to {other[:20]!r}"
    if kind == 6:
        source = holder_of(tree, found[int(rng.integers(len(found)))])
        holder[last] = json.loads(json.dumps(source, default=str))
        return tree, f"{where} replaced by another part"
    if isinstance(holder, dict):
        holder[one_of(rng, ("extra", "net", "fit", "task", "evaluation", "umix", "name", "settings"))] = any_value(rng)
        return tree, f"an extra key beside {where}"
    holder.append(holder[last])
    return tree, f"{where} twice"


def holder_of(tree: Any, place: Place) -> Any:
    for key in place:
        tree = tree[key]
    return tree


def toml(tree: dict[str, Any]) -> str:
    """``tree`` as TOML: a line for each key, tables within a line."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in tree.items())


def _key(key: str) -> str:
    return _text(key)


def _text(text: str) -> str:
    parts = []
    for character in text:
        code = ord(character)
        parts.append(f"\\u{code:04x}" if code < 32 or code == 127 or character in '"\\' else character)
    return f'"{"".join(parts)}"'


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf") if math.isinf(value) else repr(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return '"none"' if value is None else _text(str(value))


def damaged(text: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """The bytes of a text file with one damage, and what it is in words."""
    at = int(rng.integers(len(text) + 1))
    lines = text.splitlines(keepends=True)
    kind = int(rng.integers(7))
    if kind == 0:
        return text[:at], f"cut after {at} bytes"
    if kind == 1:
        bad = one_of(
            rng, (b"\xff", b"\x00", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1b[31m", b"\r", b'"""', b"#", b"]", b"{")
        )
        return text[:at] + bad + text[at:], f"{bad!r} at {at}"
    if kind == 2 and lines:
        return text + lines[int(rng.integers(len(lines)))], "a line twice"
    if kind == 3:
        return b"", "empty"
    if kind == 3:
        return bytes(rng.integers(0, 256, 400, dtype=np.uint8)), "random bytes"
    if kind == 5:
        return text.decode("utf-8", "replace").encode("utf-16"), "in UTF-16"
    flipped = bytearray(text)
    for place in rng.integers(0, max(1, len(text)), 3):
        if flipped:
            flipped[int(place)] ^= int(rng.integers(1, 256))
    return bytes(flipped), "three bytes flipped"
