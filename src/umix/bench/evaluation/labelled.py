"""Labelled new data of the kind that a run was trained on: inputs, classes, and the columns that have roles."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from umix.bench.runs.record import RunRecord
from umix.core.words import counted
from umix.data.memory_source import MemorySource
from umix.data.registry import OWN, OwnSource
from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.role_columns import texts
from umix.data.tables.preprocessing import TablePreprocessing
from umix.errors import UserError, unknown

if TYPE_CHECKING:
    import polars

_LISTED = 3  # classes in a sentence


@final
@dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs, their classes ``y`` [n] and their rows in ``frame``; ``title`` says which data they are, ``notes`` are for people."""

    inputs: NewInputs
    frame: "polars.DataFrame"
    label: str
    y: NDArray[np.int64]
    title: str
    notes: tuple[str, ...] = ()


def labelled(
    record: RunRecord, reader: Reader, new: Any, options: Mapping[str, Any], held_out: "polars.DataFrame"
) -> Labelled:
    """The labelled data ``new``; None are those that the run was trained on, of which only the test rows count.

    ``options`` are settings of the data that are not as in training: where the table of images or arrays is.
    """
    task = record.plan["task"]
    if new is None and (task["name"] == MemorySource.name or not os.path.exists(record.task)):
        raise UserError("The data that the run was trained on are not there any more; name labelled data to evaluate.")
    data = Path(record.task) if new is None else new
    if new is None:
        asked = {name: record.settings.get(f"task.{name}") for name in ("metadata", "rows")}
        options = {name: value or asked.get(name) for name, value in options.items()}
    source = _source(record, reader, data, options)
    inputs, frame = source.labelled(reader, data)
    title = "standard input" if getattr(data, "name", "") == "<stdin>" else source.title
    notes: tuple[str, ...] = ()
    if task.get("content") and isinstance(data, str | Path) and str(task["content"]).startswith(source.content or "-"):
        rows = held_out.filter(held_out["split"] == "test")["row"].to_numpy(writable=True)
        index = torch.from_numpy(rows)
        x = inputs.x[index] if isinstance(inputs.x, torch.Tensor) else inputs.x.rows(index)
        inputs = replace(inputs, x=x, ids={name: column[rows] for name, column in inputs.ids.items()})
        frame, number = frame[rows], counted(len(rows), "test row")
        notes = (f"The run was trained on a part of these rows: only its {number} are evaluated.",)
        title = f"test rows of {title}"
    elif new is None:
        raise UserError(f"{data} has changed since the run: which of its rows are test rows is not known any more.")
    return Labelled(inputs, frame, source.label, _classes(frame, source.label, record.classes, title), title, notes)


def _source(record: RunRecord, reader: Reader, data: Any, options: Mapping[str, Any]) -> OwnSource:
    """How ``data`` say label and groups: as the data of training did, but for the ``options``."""
    task = record.plan["task"]
    if task["name"] == MemorySource.name:
        kind, label = OWN[task["kind"]], reader.label if isinstance(reader, TablePreprocessing) else "y"
        known: dict[str, Any] = {"label": label, "groups": tuple(record.group_columns[1:])}
    else:
        kind = OWN[task["name"]]
        known = {name: value for name, value in task.items() if name in kind.model_fields and name != "path"}
    path = Path(data) if isinstance(data, str | Path) else Path("the new data")
    for name, folder in (("metadata", path), ("rows", path.parent)):
        if known.get(name):  # the run knows its name, not where it is
            known[name] = folder / known[name] if (folder / known[name]).exists() else None
    known |= {name: value for name, value in options.items() if value is not None}
    if known.get("label_from") and known.get("metadata") is None:
        known["groups"] = ()
    return kind(**known, path=path)


def class_codes(names: "polars.Series", classes: Sequence[str]) -> NDArray[np.int64]:
    """The number of each class name, [n]."""
    import polars

    return names.cast(polars.Enum(list(classes))).to_physical().to_numpy().astype(np.int64)


def _classes(frame: "polars.DataFrame", label: str, classes: Sequence[str], title: str) -> NDArray[np.int64]:
    """The class of every row, [n]; raises where the label is not there, missing, or not one of the run's classes."""
    if label not in frame.columns:
        raise unknown(f"label column of {title}", label, frame.columns)
    text = texts(frame[label])
    if missing := text.null_count():
        raise UserError(
            f"The label {label!r} must be known in every row to be evaluated, but it is missing in {missing} of {len(text)}; "
            "remove those rows."
        )
    odd = text.filter(~text.is_in(list(classes)))
    if len(odd):
        more = ", …" if len(classes) > _LISTED else ""
        raise UserError(
            f"The label {label!r} must be one of the classes that the run was trained with "
            f"({', '.join(classes[:_LISTED])}{more}), but it is another in {len(odd)} of {len(text)} rows, as in {odd[0]!r}."
        )
    return class_codes(text, classes)
