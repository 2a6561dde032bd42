"""General ways to spoil bytes and texts, which the makers of all kinds of files share."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

#: Texts that some reader takes for something else than a text, cannot show, or cannot store.
ODD_TEXTS = (
    *("", " ", "\t", "?", "nan", "NaN", "NA", "null", "None", "inf", "-inf", "Infinity", "true", "FALSE", "missing"),
    *("0", "-0", "1", "01", "1.0", "1e5", "1e400", "-1e400", "1e-400", "0x10", "1_000", "1,5", "9" * 40, "9" * 4000),
    *("9223372036854775808", "-9223372036854775809", "18446744073709551616", "3.4e39", "٣"),
    *(
        "2024-02-30",
        "0000-00-00",
        "9999-12-31",
        "292278994-08-17",
        "-262144-01-01",
        "2024-01-01T25:00",
        "12:00",
        "1970",
    ),
    *("a, b", "a", "b, c", '"', '""', "'", '"a', "\\", "\\n", "a\nb", "a\r\nb", "a\rb", "a\x00b", "\x00", "\x1b[31m"),
    *("\ufeff", "\u202egnp", "\u200b", "\u2028", "é", "e\u0301", "İ", "ß", "🙂", "\U0010ffff", "\ud7ff", "x" * 3000),
    *(
        "train",
        "TEST ",
        "val",
        "2",
        "label",
        "p_no",
        "path",
        "=1+1",
        "[red]x[/red]",
        "[/]",
        "{count}",
        "{",
        "%s",
        "<b>&amp;",
    ),
    *("../..", "/", "-", "--", "$(id)", "no, a", "g=a", "__index_level_0__", "class no", "all rows", "average"),
)
_FRAGMENTS = (
    *(
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xe9",
        b"\xed\xa0\x80",
        b'"',
        b'""',
        b"'",
        b",",
        b";",
        b"\t",
        b"|",
        b"\n",
    ),
    *(
        b"\r",
        b"\r\n",
        b"\n\n\n",
        b"\x1a",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"PK\x03\x04",
        b"PAR1",
        b"ARROW1",
        b"\x93NUMPY",
    ),
)
T = TypeVar("T")
Mutation = Callable[[bytes, np.random.Generator], bytes]


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of ``options``, unchanged: ``rng.choice`` would make NumPy's types of them."""
    return options[int(rng.integers(len(options)))]


def some(rng: np.random.Generator, options: Sequence[T], *, most: int = 3) -> list[T]:
    """Up to ``most`` different ones of ``options``, at least one."""
    n = int(rng.integers(1, min(most, len(options)) + 1))
    return [options[int(place)] for place in rng.permutation(len(options))[:n]]


def odd_text(rng: np.random.Generator) -> str:
    """An odd text, or a few characters from anywhere in Unicode."""
    if rng.random() < 0.85:
        return pick(rng, ODD_TEXTS)
    points = [int(point) for point in rng.integers(1, 0x110000, size=int(rng.integers(1, 5)))]
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)


def _place(data: bytes, rng: np.random.Generator) -> int:
    """Where something is changed: anywhere, or near the beginning or the end, where headers and footers are."""
    n = len(data) + 1
    near = min(n, 64)
    return int(pick(rng, [rng.integers(n), rng.integers(near), n - 1 - rng.integers(near)]))


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: _place(data, rng)]


def _behead(data: bytes, rng: np.random.Generator) -> bytes:
    return data[_place(data, rng) :]


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 9)) if changed else 0):
        changed[min(_place(data, rng), len(data) - 1)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    place, filler = _place(data, rng), pick(rng, (b"\x00", b"\xff", b"\x7f", rng.bytes(1)))
    width = int(pick(rng, (1, 2, 4, 8, 32)))
    return data[:place] + filler * width + data[place + width :]


def _insert(data: bytes, rng: np.random.Generator) -> bytes:
    for _ in range(int(rng.integers(1, 6))):
        place = _place(data, rng)
        data = data[:place] + pick(rng, (*_FRAGMENTS, rng.bytes(4))) + data[place:]
    return data


def _remove(data: bytes, rng: np.random.Generator) -> bytes:
    place = _place(data, rng)
    return data[:place] + data[place + int(rng.integers(1, 40)) :]


def _repeat(data: bytes, rng: np.random.Generator) -> bytes:
    begin, end = sorted((_place(data, rng), _place(data, rng)))
    return data[:end] + data[begin:end] * int(rng.integers(1, 4)) + data[end:]


def _line_ends(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.split(b"\n")
    return b"".join(line + pick(rng, (b"\n", b"\r\n", b"\r", b"\n\r")) for line in lines)


def _recode(data: bytes, rng: np.random.Generator) -> bytes:
    text = data.decode("utf-8", "replace") + pick(rng, ("", "é", "漢"))
    codec = pick(rng, ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "utf-7", "cp037"))
    return text.encode(codec, "replace")


def _nothing(data: bytes, rng: np.random.Generator) -> bytes:
    return pick(rng, (b"", b"\n", b"\x00" * 50, b"\xef\xbb\xbf"))


OF_ANY_FILE: tuple[Mutation, ...] = (_cut, _behead, _flip, _overwrite, _insert, _remove, _repeat)
OF_TEXT: tuple[Mutation, ...] = (*OF_ANY_FILE, _line_ends, _recode)


def spoiled(data: bytes, rng: np.random.Generator, mutations: Sequence[Mutation] = OF_ANY_FILE) -> tuple[bytes, str]:
    """``data`` after one to three mutations, and what they are called; seldom nothing is left."""
    chosen = [_nothing] if rng.random() < 0.03 else some(rng, mutations)
    for mutate in chosen:
        data = mutate(data, rng)
    return data, ", ".join(mutate.__name__.strip("_") for mutate in chosen)
