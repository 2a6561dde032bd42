"""A run on labelled new data."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
from umix.core.selection import Choice
from umix.core.thresholds import predicted_classes
from umix.data.rows.reader import Reader
from umix.data.tables.preprocessing import TablePreprocessing
from umix.errors import Setting, UserError
from umix.models.model import Model
from umix.training.progress import Progress

if TYPE_CHECKING:
    import polars

_AT_ONCE = 1024  # rows


def evaluate(
    record: RunRecord,
    reader: Reader,
    net: Model,
    choice: Choice,
    test: Summary,
    held_out: "polars.DataFrame",
    new: Any,
    options: Mapping[str, Any],
    *,
    with_importance: bool,
    progress: Progress,
) -> Evaluated:
    """The run on ``new`` (``labelled``) by ``choice``, which had the rates ``test``; ``held_out`` are the run's own predictions.

    ``with_importance`` also says which columns of a table matter.
    """
    if with_importance and not isinstance(reader, TablePreprocessing):
        raise UserError(Setting("importance"), " must go with a run on a table, whose inputs are columns with names.")
    data, biases = labelled(record, reader, new, options, held_out), record.biases(choice)
    units, notes = units_in(record, data.frame, data.y)
    blocks = PredictedBlocks(net, [data.inputs], record, choice, progress=progress)
    table = blocks.whole().table
    prediction = class_codes(table["label"], record.classes)
    probability = table.select(f"p_{name}" for name in record.classes).to_numpy()
    rates, worst = new_rates(record, units, prediction == data.y, test)
    confidence = probability[np.arange(len(prediction)), prediction]
    on_test = held_out.filter(held_out["split"] == "test") if choice == record.choice() else None
    found = None
    if with_importance and isinstance(reader, TablePreprocessing):

        def predict(x: torch.Tensor) -> NDArray[np.int64]:
            with torch.inference_mode():
                logits = torch.cat([net(part) for part in x.split(_AT_ONCE)])
            decided: NDArray[np.int64] = predicted_classes(logits, torch.from_numpy(biases)).numpy()
            return decided

        group = None if worst is None else (worst, units.of(worst))
        found = importance(reader, data, predict, worst=group, seed=record.seed, progress=progress)
    return Evaluated(
        run=record.directory.name if record.has_directory else record.title,
        data=data.title,
        rows=len(data.y),
        average=float((prediction == data.y).mean()),
        worst=None if worst is None else rates[worst].rate,
        worst_group=worst,
        rates=rates,
        test=test,
        drift=drifts(record, reader, data, units, prediction, confidence, on_test),
        importance=found,
        notes=[*data.notes, *blocks.notes, *notes],
    )
