"""What has moved between training and new data: classes, groups, predictions and the columns of a table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from umix.bench.evaluation.evaluated import ColumnDrift
from umix.bench.evaluation.labelled import Labelled
from umix.bench.evaluation.rates import Units, train_sizes
from umix.bench.runs.record import RunRecord
from umix.bench.runs.unit_titles import unit_titles
from umix.core.drift import drift
from umix.data.rows.reader import Reader
from umix.data.tables.bins import Bins
from umix.data.tables.columns import TableColumn
from umix.data.tables.preprocessing import TablePreprocessing

if TYPE_CHECKING:
    import polars

# Kind, column, names of its bins, and the rows in each before and now.
_Compared = tuple[str, str, Sequence[str], Sequence[int], Sequence[int]]
_CONFIDENCE = TableColumn("confidence", "number")


def drifts(
    record: RunRecord,
    reader: Reader,
    data: Labelled,
    units: Units,
    prediction: NDArray[np.int64],
    confidence: NDArray[np.float32],
    test: "polars.DataFrame | None",
) -> list[ColumnDrift]:
    """What has moved, the largest first; ``test`` are the predictions of the same choice for test, None if there are none."""
    compared = list[_Compared]()
    sizes = train_sizes(record)
    classes = np.bincount(data.y, minlength=len(record.classes)).tolist()
    compared.append(("label", data.label, record.classes, record.train_class_sizes, classes))
    if units.trained and units.groups:
        titles = unit_titles(record)
        family = dict.fromkeys([*units.trained, *units.groups])
        before, after = [sizes.get(name, 0) for name in family], [units.groups.get(name, 0) for name in family]
        compared.append(
            ("groups", " × ".join(record.group_columns), [titles.get(name, name) for name in family], before, after)
        )
    if test is not None:
        on_test = np.bincount(test["prediction"].to_numpy(), minlength=len(record.classes)).tolist()
        now = np.bincount(prediction, minlength=len(record.classes)).tolist()
        compared.append(("prediction", "prediction", record.classes, on_test, now))
        if (bins := Bins.of(_CONFIDENCE, test["confidence"].to_numpy())) is not None:
            counts = bins.count(_CONFIDENCE, confidence)
            compared.append(("confidence", "confidence", bins.names(_CONFIDENCE), bins.counts, counts))
    if isinstance(reader, TablePreprocessing):
        codes, columns = reader.codes(data.frame), {one.name: one for one in reader.input_columns}
        for name, bins in reader.bins.items():
            counts = bins.count(columns[name], codes[:, reader.places[name].start])
            compared.append(("input", name, bins.names(columns[name]), bins.counts, counts))
    return _measured([one for one in compared if np.sum(one[3]) and np.sum(one[4])])


def _measured(compared: Sequence[_Compared]) -> list[ColumnDrift]:
    made = []
    for kind, column, names, before, after in compared:
        one = drift(before, after)
        shares = {"moved": one.moved, "p_value": one.p_value, "before": one.before, "after": one.after}
        large = one.is_large(len(compared))
        made.append(ColumnDrift(column=column, kind=kind, large=large, where=names[one.bin], **shares))
    return sorted(made, key=lambda one: -one.moved)
