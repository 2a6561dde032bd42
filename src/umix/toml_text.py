"""TOML that people write: presets, studies, values of ``--set``."""

import tomllib
from pathlib import Path
from typing import Any

from umix.errors import UserError


def read_toml(path: Path, *, what: str) -> dict[str, Any]:
    """The tables of the file at ``path``; errors say ``what`` it must be: a study, a preset file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"There is no {what} at {path}.") from None
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as error:  # also bytes that are no UTF-8, and a date that does not exist
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"The {what} {path} must be TOML, but it cannot be read: {reason}.") from None


def parse_value(text: str) -> Any:
    """The value that ``text`` is in TOML; ``text`` itself if it is none.

    >>> parse_value("[64, 64]"), parse_value("0.5"), parse_value("people.csv")
    ([64, 64], 0.5, 'people.csv')
    """
    try:
        tables = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text.strip()
    return tables["value"] if len(tables) == 1 else text.strip()  # a text of several lines may hold other keys
