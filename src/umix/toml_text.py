"""TOML that people write: presets, studies, values of ``--set``. What cannot be read raises one sentence, however it is wrong."""

import re
import tomllib
from pathlib import Path
from typing import Any

from umix.errors import UserError

_DEEPEST = 32  # tables and lists within each other
_TOO_DEEP = f"tables and lists must lie at most {_DEEPEST} deep in each other"
_MANY_DOTS, _DOTS, _KEYS = 1000, re.compile(r"[ \t]*\.[ \t]*"), re.compile(r"[\s,=\[\]{}]+")
_LARGEST_FILE = 2**20  # bytes
_INTEGERS = range(-(2**63), 2**63)  # those of TOML, which Python reads without a limit


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of ``text``; raises ValueError with a short reason if they cannot be read, and for what no setting can be.

    >>> parse_toml("fit = {lr = 0.1}")
    {'fit': {'lr': 0.1}}
    >>> parse_toml("eta = " + 5000 * "9")
    Traceback (most recent call last):
    ValueError: a whole number must lie within 64 bits
    """
    if text.count(".") > _MANY_DOTS and any(key.count(".") > _DEEPEST for key in _KEYS.split(_DOTS.sub(".", text))):
        raise ValueError(_TOO_DEEP)  # the time that tomllib needs for a key grows with the square of its parts
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError as error:  # Python refuses more than 4,300 digits, or a date that does not exist
        digits = "digits" in str(error)
        raise ValueError("a whole number must lie within 64 bits" if digits else str(error)) from None
    _check(tables, _DEEPEST)
    return tables


def _check(value: Any, deeper: int) -> None:
    """Raise ValueError for what TOML allows, or tomllib, but no setting can be."""
    if isinstance(value, dict | list):
        if not deeper:
            raise ValueError(_TOO_DEEP)
        for inner in value.values() if isinstance(value, dict) else value:
            _check(inner, deeper - 1)
    elif isinstance(value, int) and value not in _INTEGERS:
        raise ValueError("a whole number must lie within 64 bits")
    elif not isinstance(value, str | int | float):
        raise ValueError(f"no setting is a date or a time, got {value}")


def read_toml(path: Path, *, what: str) -> dict[str, Any]:
    """The tables of the file at ``path``; errors say ``what`` it must be: a study, a preset file."""
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise ValueError(f"it must be smaller than {_LARGEST_FILE // 2**20} MB")
        return parse_toml(content.decode("utf-8"))
    except FileNotFoundError:
        raise UserError(f"There is no {what} at {path}.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"The {what} {path} must be TOML, but it cannot be read: {reason}.") from None


def parse_value(text: str) -> Any:
    """The value that ``text`` is in TOML; ``text`` itself if it is none. Raises ValueError for what no setting can be.

    >>> parse_value("[64, 64]"), parse_value("0.5"), parse_value("people.csv")
    ([64, 64], 0.5, 'people.csv')
    """
    try:
        tables = parse_toml(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text.strip()
    return tables["value"] if len(tables) == 1 else text.strip()  # a text of several lines may hold other keys
