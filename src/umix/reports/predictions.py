"""The held-out examples of a run under its selected net, read from ``predictions.parquet``."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from umix.bench.runs.example_tables import read_held_out
from umix.bench.runs.record import RunRecord
from umix.core.words import bare_columns, group_title
from umix.run_folder import PREDICTIONS

if TYPE_CHECKING:
    import polars


@final
@dataclass(frozen=True, eq=False)
class Predictions:
    """``n`` held-out examples and what the selected net predicts for them.

    ``label`` and ``prediction`` are class numbers [n]; ``confidence`` is the probability of the prediction [n]; ``probability``
    is that of every class [n, classes], None where there are too many classes to keep. ``member`` is bool [n, groups]. ``row`` is
    the row in the user's file and ``file`` the path of an image, None where unknown. ``split`` is "val" or "test" [n].
    """

    label: np.ndarray
    prediction: np.ndarray
    confidence: np.ndarray
    probability: np.ndarray | None
    member: np.ndarray
    row: np.ndarray | None
    file: np.ndarray | None
    split: np.ndarray

    @property
    def n(self) -> int:
        return len(self.label)

    @property
    def wrong(self) -> np.ndarray:
        """Which predictions differ from the label, bool [n]."""
        return np.asarray(self.label != self.prediction)

    @property
    def loss(self) -> np.ndarray:
        """Cross-entropy of every example [n].

        Without the probability of the label it is bounded from below: a wrong label has at most ``1 - confidence``.
        """
        if self.probability is not None:
            given = self.probability[np.arange(self.n), self.label]
        else:
            given = np.where(self.wrong, 1 - self.confidence, self.confidence)
        return np.asarray(-np.log(np.clip(given.astype(np.float64), 1e-12, 1)))

    def of(self, split: str) -> "Predictions":
        """The examples of one split, in the order of the file."""
        return self.rows(np.flatnonzero(self.split == split))

    def rows(self, index: np.ndarray) -> "Predictions":
        """The examples at ``index``."""
        return replace(
            self,
            label=self.label[index],
            prediction=self.prediction[index],
            confidence=self.confidence[index],
            probability=None if self.probability is None else self.probability[index],
            member=self.member[index],
            row=None if self.row is None else self.row[index],
            file=None if self.file is None else self.file[index],
            split=self.split[index],
        )

    def same_examples(self, other: "Predictions") -> bool:
        """Whether ``other`` is about the same examples in the same order, as far as the two files can tell."""
        return (
            np.array_equal(self.split, other.split)
            and np.array_equal(self.label, other.label)
            and _equal(self.row, other.row)
            and _equal(self.file, other.file)
        )


def load_predictions(record: RunRecord) -> Predictions | None:
    """The held-out predictions of this run; None where no epoch of it could be selected."""
    if not (record.directory / PREDICTIONS).exists():
        return None
    table = read_held_out(record)
    kept = range(len(record.classes)) if "p 0" in table.columns else []
    return Predictions(
        label=table["label"].to_numpy(),
        prediction=table["prediction"].to_numpy(),
        confidence=table["confidence"].to_numpy(),
        probability=np.stack([table[f"p {k}"].to_numpy() for k in kept], axis=1) if kept else None,
        member=members(table, len(record.groups)),
        row=table["row"].to_numpy() if "row" in table.columns else None,
        file=table["file"].to_numpy() if "file" in table.columns else None,
        split=table["split"].to_numpy(),
    )


def members(table: "polars.DataFrame", groups: int) -> np.ndarray:
    """Who is in which group, bool [n, groups]: a column names the one group of every row, or each group has a column."""
    if "group" in table.columns:
        return np.asarray(table["group"].to_numpy()[:, None] == np.arange(groups))
    columns = [table[f"group {number}"].to_numpy() for number in range(groups)]
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), bool)


def attribute_groups(record: RunRecord, examples: Predictions) -> dict[str, np.ndarray]:
    """Who is in each combination of group values, whatever the label, bool [n]; without such parts the groups themselves."""
    if not record.group_parts:
        return {name: examples.member[:, place] for place, name in enumerate(record.groups)}
    members: dict[str, np.ndarray] = {}
    columns = record.group_columns
    bare = bare_columns(columns, record.group_values)
    for place, parts in enumerate(record.group_parts):
        name = group_title(dict(zip(columns[1:], parts[1:], strict=True)), bare)
        members[name] = members.get(name, np.zeros(examples.n, dtype=bool)) | examples.member[:, place]
    return members


def _equal(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)
