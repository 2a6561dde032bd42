"""The JSON file of a fitted table: which column has which role, and how each input column becomes numbers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, final

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from umix.errors import UserError
from umix.files import parsed, reading, write_whole
from umix.settings import checked


class Checked(Protocol):
    """A column that can be wrong in itself."""

    @property
    def fault(self) -> str:
        """What is wrong with it, in words; empty if nothing is."""


Column = TypeVar("Column", bound=Checked)


@final
@with_config(ConfigDict(strict=True))
class _Content(TypedDict):
    """What the file holds."""

    label: str
    id: str | None
    others: list[str]
    columns: list[dict[str, Any]]


_CONTENT = TypeAdapter(_Content)


@final
@dataclass(frozen=True)
class ColumnFile(Generic[Column]):
    """The content of the file; ``others`` are columns of the training table that are neither inputs, label nor id."""

    columns: tuple[Column, ...]
    label: str
    id: str | None
    others: tuple[str, ...]


def save_columns(
    path: Path, columns: Sequence[dict[str, Any]], *, format: str, label: str, id: str | None, others: Sequence[str]
) -> None:
    """Write ``columns``, one JSON object each, and the roles of the others to ``path``."""
    state = {"format": format, "label": label, "id": id, "others": list(others), "columns": list(columns)}
    write_whole(path, json.dumps(state, ensure_ascii=False).encode())


def load_columns(path: Path, kind: type[Column], *, format: str) -> ColumnFile[Column]:
    """What ``save_columns`` wrote of columns of this ``kind``, a dataclass; nothing in the file is ever executed."""
    if not path.exists():
        raise UserError(f"{path.parent} must hold a run on a table, but it has no {path.name}.")
    with reading(path, "preprocessing", fix="run again"):
        stored = parsed(path.read_bytes())
    if isinstance(stored, dict) and stored.get("format") != format:
        raise UserError(f"{path} must be a preprocessing file of this version of umix; run again.")
    state = checked(_CONTENT, stored, path)
    adapter = TypeAdapter(kind)
    columns = tuple(checked(adapter, one, path) for one in state["columns"])
    names = [one["name"] for one in state["columns"]]
    for one in columns:
        if one.fault:
            raise UserError(f"{path} must say how each column becomes numbers, but {one.fault}; run again.")
    if len(set(names)) < len(names):
        raise UserError(f"{path} must name every column once; run again.")
    return ColumnFile(columns, state["label"], state["id"], tuple(state["others"]))
