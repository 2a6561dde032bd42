"""A trained run as exports take it: its record, the net that validation chose, the reader of its data; and its description."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from umix.bench.predict import PredictedBlocks, Prediction
from umix.bench.predict import reader as reader_of
from umix.bench.runs.load_net import load_net
from umix.bench.runs.record import RunRecord
from umix.core.calibration import Calibration
from umix.core.selection import Choice, Threshold
from umix.data.arrays import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.data.memory_source import MemorySource
from umix.data.registry import READERS
from umix.data.rows.reader import NewInputs, Reader
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.texts.text_reader import TextReader
from umix.errors import UserError
from umix.exports.exported import MARK
from umix.exports.preprocessing import Preprocessing
from umix.models.model import Model
from umix.version import __version__

_SHOWN = 6  # classes


@final
@dataclass(frozen=True, eq=False)
class TrainedModel:
    """The net and the biases that the rule ``select`` chooses on validation, as in ``umix predict``."""

    record: RunRecord
    load: Callable[[int], Model]
    read: Callable[[], Reader]
    select: str | None = None
    threshold: Threshold | None = None

    @classmethod
    def in_folder(
        cls,
        record: RunRecord,
        *,
        select: str | None = None,
        threshold: Threshold | None = None,
        trust_code: bool = False,
    ) -> Self:
        """The model of a finished run that has a folder; its net may be code only with ``trust_code``."""
        return cls(
            record,
            lambda epoch: load_net(record, epoch=epoch, trust_code=trust_code),
            lambda: reader_of(record),
            select=select,
            threshold=threshold,
        )

    @cached_property
    def choice(self) -> Choice:
        """The epoch and the threshold."""
        return self.record.choice(self.select, self.threshold)

    @cached_property
    def biases(self) -> NDArray[np.float64]:
        """What is added to the logit of every class before the largest is predicted, [classes]."""
        return self.record.biases(self.choice)

    @cached_property
    def calibration(self) -> Calibration:
        """What makes probabilities of the logits."""
        return self.record.calibration(self.choice)

    @cached_property
    def net(self) -> Model:
        """The net of the epoch, in evaluation mode."""
        return self.load(self.choice.epoch)

    @cached_property
    def reader(self) -> Reader | None:
        """The reader of new data; None if the run was trained on a benchmark."""
        return self.read() if self.is_own else None

    def predict(self, inputs: NewInputs) -> Prediction:
        """What ``umix predict`` gives for ``inputs``."""
        return PredictedBlocks(self.net, [inputs], self.record, self.choice).whole()

    @property
    def is_own(self) -> bool:
        """Whether the run was trained on data of one's own, of which new ones can be read."""
        task = self.record.plan["task"]
        return (task["kind"] if task["name"] == MemorySource.name else task["name"]) in READERS

    def require_reader(self) -> Reader:
        """The reader of new data; raises where the run was trained on a benchmark."""
        if self.reader is None:
            raise UserError(
                f"A model of MLflow must be of a run on data of one's own ({', '.join(READERS)}), got a run on "
                f"{self.record.title}; export it as .onnx, .pt2 or .safetensors."
            )
        return self.reader

    @property
    def title(self) -> str:
        """The name of the net."""
        return self.record.net or str(self.record.plan["net"]["name"])

    @property
    def short_title(self) -> str:
        """The name of the net without the folder that it lies in on this machine."""
        kind, _, name = self.title.rpartition(":")
        return f"{kind}:{Path(name).name}" if Path(name).is_absolute() else self.title


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
        if not label and isinstance(reader, TablePreprocessing):
            label = reader.label
        return cls(
            kind=str(task["kind"] if in_memory else task["name"]),
            label=label,
            groups=tuple(record.group_columns[1:]),
            inputs=_inputs(record, reader),
            weight=given.get("weight"),
        )


def _inputs(record: RunRecord, reader: Reader | None) -> str:
    if isinstance(reader, TablePreprocessing):
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


def described(
    trained: TrainedModel, preprocessing: Preprocessing | None = None, *, outputs: Sequence[str] = ()
) -> dict[str, Any]:
    """The run, the classes and how they are decided, the inputs in order and what must be done before them."""
    record = trained.record
    given = (
        {}
        if preprocessing is None
        else {
            "inputs": [tensor.as_json() for tensor in preprocessing.tensors],
            "columns": [column.as_json() for column in preprocessing.columns],
            "not_included": list(preprocessing.left_out),
        }
    )
    return {
        "format": MARK,
        "umix": __version__,
        "about": about(trained, preprocessing),
        "data": record.title,
        "method": record.method,
        "net": trained.short_title,
        "seed": record.seed,
        "key": record.key,
        "epoch": trained.choice.epoch + 1,
        "selected_by": record.rule(trained.select),
        "classes": list(record.classes),
        "biases": trained.biases.tolist(),
        "calibration": {"scale": trained.calibration.scale, "biases": list(trained.calibration.biases)},
        "threshold": record.summary(trained.select, trained.threshold).threshold,
        **given,
        "outputs": list(outputs),
    }


def about(trained: TrainedModel, preprocessing: Preprocessing | None) -> str:
    """A sentence or two: what the model predicts, and what is not in it."""
    record, label = trained.record, Roles.of(trained.record, trained.reader).label or "the class"
    classes = ", ".join(record.classes[:_SHOWN]) + (", …" if len(record.classes) > _SHOWN else "")
    said = [f"Predicts {label} ({classes}), trained on {record.title} with umix (method {record.method})."]
    if preprocessing and preprocessing.left_out:
        said.append(f"Not included: {'; '.join(preprocessing.left_out)}.")
    return " ".join(said)
