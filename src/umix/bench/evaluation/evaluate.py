"""A run on labelled new data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from umix.bench.evaluation.drift import drifts
from umix.bench.evaluation.evaluated import Evaluated
from umix.bench.evaluation.importance import importance
from umix.bench.evaluation.labelled import class_codes, labelled
from umix.bench.evaluation.rates import new_rates, units_in
from umix.bench.predict import PredictedBlocks
from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import Summary
from umix.core.thresholds import predicted_classes
from umix.data.rows.reader import Reader
from umix.data.tables.preprocessing import TablePreprocessing
from umix.errors import Setting, UserError
from umix.models.model import Model
from umix.training.progress import Progress

if TYPE_CHECKING:
    import polars

_AT_ONCE = 1024  # rows


@final
@dataclass(frozen=True, eq=False)
class ChosenModel:
    """A run and what is needed to use it: its reader, and its net and the biases of the classes under one choice.

    ``held_out`` are the run's predictions for val and test; ``same_choice`` says whether that choice made them.
    """

    record: RunRecord
    reader: Reader
    net: Model
    biases: NDArray[np.float64]
    test: Summary
    held_out: "polars.DataFrame"
    same_choice: bool

    def classes(self, x: torch.Tensor) -> NDArray[np.int64]:
        """The predicted class of each of the inputs ``x``."""
        with torch.inference_mode():
            logits = torch.cat([self.net(part) for part in x.split(_AT_ONCE)])
        predicted: NDArray[np.int64] = predicted_classes(logits, torch.from_numpy(self.biases)).numpy()
        return predicted


def evaluate(
    model: ChosenModel, new: Any, options: Mapping[str, Any], *, with_importance: bool, progress: Progress
) -> Evaluated:
    """The model on ``new`` (``labelled``); ``with_importance`` also which columns of a table matter."""
    record, reader = model.record, model.reader
    if with_importance and not isinstance(reader, TablePreprocessing):
        raise UserError(Setting("importance"), " must go with a run on a table, whose inputs are columns with names.")
    data = labelled(record, reader, new, options, model.held_out)
    units, notes = units_in(record, data.frame, data.y)
    blocks = PredictedBlocks(model.net, [data.inputs], record.classes, biases=model.biases, progress=progress)
    table = blocks.whole().table
    prediction = class_codes(table["label"], record.classes)
    probability = table.select(f"p_{name}" for name in record.classes).to_numpy()
    rates, worst = new_rates(record, units, prediction == data.y, model.test)
    moved = drifts(
        record,
        reader,
        data,
        units,
        prediction=prediction,
        confidence=probability[np.arange(len(prediction)), prediction],
        held_out=model.held_out if model.same_choice else None,
    )
    found = None
    if with_importance and isinstance(reader, TablePreprocessing):
        group = None if worst is None else (worst, units.of(worst))
        found = importance(reader, data, model.classes, worst=group, seed=record.seed, progress=progress)
    return Evaluated(
        run=record.directory.name if record.has_directory else record.title,
        data=data.title,
        rows=len(data.y),
        average=float((prediction == data.y).mean()),
        worst=None if worst is None else rates[worst].rate,
        worst_group=worst,
        rates=rates,
        test=model.test,
        drift=moved,
        importance=found,
        notes=[*data.notes, *blocks.notes, *notes],
    )
