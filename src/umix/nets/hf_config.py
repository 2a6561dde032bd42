"""The JSON files of a Hugging Face folder, read before transformers reads them: it would loop over whatever numbers they hold."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from umix.errors import UserError

_LARGEST_FILE = 2**26  # bytes; an index of shards may have a million names
#: The largest whole number of a configuration by the end of its name: a layer is built for each, a name for each label.
_LARGEST = (
    (re.compile(r"(layers?|depths?|num_.*blocks)$"), 1000),
    (re.compile(r"labels$"), 10**6),
    (re.compile(""), 2 * 10**7),
)


def read_json(path: Path) -> dict[str, Any]:
    """The table in a JSON file; raises UserError if it is none."""
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise ValueError(f"it is larger than {_LARGEST_FILE // 2**20} MB")
        table = from_json(content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"{path} must be JSON, but it cannot be read ({reason}); download the model again.") from None
    if not isinstance(table, dict):
        raise UserError(f"{path} must hold a table of JSON, got {type(table).__name__}; download the model again.")
    return table


def check_config(path: Path) -> None:
    """Raise UserError if ``path`` is no configuration, or claims more layers or labels than a net can have."""
    for name, number in _numbers(read_json(path)):
        most = next(most for pattern, most in _LARGEST if pattern.search(name))
        if abs(number) > most:
            raise UserError(f"{name} in {path} must be at most {most:,}, got {number}; download the model again.")


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number in ``value`` and the name it stands under."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, name)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield name, value
