"""The JSON file of a fitted table: which column has which role, and how each input column becomes numbers."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, final

from pydantic_core import from_json

from umix.errors import UserError
from umix.files import write_whole

Column = TypeVar("Column")


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


def load_columns(path: Path, make: Callable[[dict[str, Any]], Column], *, format: str) -> ColumnFile[Column]:
    """What ``save_columns`` wrote, each column made by ``make``; nothing in the file is ever executed."""
    try:
        state = from_json(path.read_bytes())
        if state["format"] != format:
            raise UserError(f"{path} must be a preprocessing file of this version of umix; run again.")
        columns = tuple(make(one) for one in state["columns"])
        return ColumnFile(columns, state["label"], state["id"], tuple(state["others"]))
    except FileNotFoundError:
        raise UserError(f"{path.parent} must hold a run on a table, but it has no {path.name}.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"{path} must be a whole file that umix wrote, but it cannot be read ({' '.join(str(error).split())})."
        ) from None
