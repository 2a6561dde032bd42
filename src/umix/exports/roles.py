"""What the columns of a run's data were used for, as far as the run knows it."""

from dataclasses import dataclass
from typing import Self, final

from umix.bench.runs.record import RunRecord
from umix.data.arrays.preprocessing import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.data.memory_source import MemorySource
from umix.data.rows.reader import Reader
from umix.data.tables.table_reader import TableReader
from umix.data.texts.text_reader import TextReader


@final
@dataclass(frozen=True)
class Roles:
    """The label, the group columns, and the inputs in words; ``kind`` is table, arrays, images, text or a benchmark's name."""

    kind: str
    label: str
    groups: tuple[str, ...]
    inputs: str
    weight: str | None

    @classmethod
    def of(cls, record: RunRecord, reader: Reader | None) -> Self:
        """The roles in the data of ``record``; ``reader`` is None for a benchmark."""
        task = record.plan["task"]
        in_memory = task["name"] == MemorySource.name
        given = {} if in_memory else task
        label = next(iter(record.group_columns), "") or str(given.get("label") or "")
        if not label and isinstance(reader, TableReader):
            label = reader.label
        return cls(
            kind=str(task["kind"] if in_memory else task["name"]),
            label=label,
            groups=tuple(record.group_columns[1:]),
            inputs=_inputs(record, reader),
            weight=given.get("weight"),
        )


def _inputs(record: RunRecord, reader: Reader | None) -> str:
    if isinstance(reader, TableReader):
        used = [name for name in reader.columns if name not in reader.dropped]
        return f"{len(used)} columns: {', '.join(used)}"
    if isinstance(reader, ImageReader):
        return f"images, {reader.size}×{reader.size} pixels"
    if isinstance(reader, TextReader):
        return f"texts, the column {reader.column}"
    shape = " × ".join(map(str, record.input_shape))
    if isinstance(reader, ArrayPreprocessing):
        return f"the array {reader.x}, {shape} numbers per row"
    return f"{shape} numbers per example"
