"""Numbers in sentences, and names that are made of several values."""

import json
from collections.abc import Sequence


def counted(number: int, thing: str) -> str:
    """The number with the noun ``thing`` in the singular or plural.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def group_name(parts: Sequence[str]) -> str:
    """The name of the group with these values; other values make another name.

    A value that could be read as several, or holds what cannot be shown, is quoted.

    >>> group_name(["no", "f"]), group_name(["a, b", "c"]), group_name(["a", "b, c"])
    ('no, f', '"a, b", c', 'a, "b, c"')
    """
    return ", ".join(map(quoted, parts))


def quoted(value: str) -> str:
    """``value``, between quotes if it has the comma of a list, a quote, or what a terminal cannot show."""
    plain = ", " not in value and '"' not in value and value.isprintable()
    return value if plain else json.dumps(value, ensure_ascii=not value.isprintable())
