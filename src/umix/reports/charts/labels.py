"""Long names cut in the middle, so that they fit beside an axis and still differ."""

import json
from collections.abc import Sequence


def cut(name: str, longest: int) -> str:
    """The name, or its beginning and end where it has more than ``longest`` letters.

    >>> cut("no, Amer-Indian-Eskimo", 15)
    'no, Ame…-Eskimo'
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[len(name) - end :]}"


def cut_apart(names: Sequence[str], longest: int) -> dict[str, str]:
    """Every name cut to ``longest`` letters; names that would look the same get as many more letters as tell them apart.

    >>> cut_apart(["a big cat sleeps", "a big dog sleeps", "a fox"], 9)
    {'a big cat sleeps': 'a big c…sleeps', 'a big dog sleeps': 'a big d…sleeps', 'a fox': 'a fox'}
    """
    found = {name: cut(name, longest) for name in names}
    for length in range(longest + 1, max(map(len, names), default=0) + 1):
        texts = list(found.values())
        alike = [name for name, text in found.items() if texts.count(text) > 1]
        if not alike:
            break
        found |= {name: cut(name, length) for name in alike}
    return found


def lookup(texts: Sequence[object] | dict[str, str], index: str) -> str:
    """A Vega expression that looks ``index`` up in a list or a mapping of constants."""
    return f"({json.dumps(texts)})[{index}]"
