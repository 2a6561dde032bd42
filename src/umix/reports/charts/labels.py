"""Long names cut in the middle, so that they fit beside an axis and still differ."""

import json
from collections.abc import Sequence


def cut(name: str, longest: int, end: int | None = None) -> str:
    """The name, or its beginning and its last ``end`` letters where it has more than ``longest``; by default half of each.

    >>> cut("no, Amer-Indian-Eskimo", 15)
    'no, Ame…-Eskimo'
    """
    if len(name) <= longest:
        return name
    kept = (longest - 1) // 2 if end is None else end
    return f"{name[: longest - 1 - kept]}…{name[len(name) - kept :]}"


def cut_apart(names: Sequence[str], longest: int) -> dict[str, str]:
    """Every name cut to ``longest`` letters.

    Names that would look the same are cut at another place, or get as many more letters as tell them apart.

    >>> cut_apart(["a big cat sleeps", "a big dog sleeps", "a fox"], 9)
    {'a big cat sleeps': 'a big c…s', 'a big dog sleeps': 'a big d…s', 'a fox': 'a fox'}
    """
    for length in range(longest, max(map(len, names), default=0) + 1):
        half = (length - 1) // 2
        for end in sorted(range(1, length - 1), key=lambda end: abs(end - half)):
            found = {name: cut(name, length, end) for name in names}
            if len(set(found.values())) == len(found):
                return found
    return {name: name for name in names}


def lookup(texts: Sequence[object] | dict[str, str], index: str) -> str:
    """A Vega expression that looks ``index`` up in a list or a mapping of constants."""
    return f"({json.dumps(texts)})[{index}]"
