"""What a run knows of its training examples: labels, groups, uncertainty, weights, and the history of the first stage."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np

from umix.bench.runs.example_tables import read_examples, read_training_rows
from umix.bench.runs.record import RunRecord
from umix.core.forgetting import forgetting_events
from umix.reports.metrics import auroc
from umix.reports.predictions import members
from umix.run_folder import EXAMPLE_FEATURES, TRAJECTORY
from umix.store import read_arrays

#: Share of the window's epochs that counts as "nearly all".
NEARLY_ALL = 0.9
#: Share of the window's epochs from which on an example counts as wrong early.
OFTEN = 0.5
#: Forgetting events that a contradicted example may have: more mean that the net changed its mind.
FEW_EVENTS = 1
#: Epochs of the first stage below which there is no early and late.
FEWEST_EPOCHS = 3
#: Uncertainties at which the search for the minority is judged.
THRESHOLDS = (0.25, 0.5, 0.75)


@final
@dataclass(frozen=True)
class Window:
    """The epochs of the first stage that the uncertainty counts: ``start … start+length-1``, counted from 0."""

    start: int
    length: int

    def is_within(self, epochs: int) -> bool:
        """Whether all of it lies in the first ``epochs``."""
        return 0 <= self.start < self.start + self.length <= epochs

    def __str__(self) -> str:
        """The window for people, who count epochs from 1.

        >>> str(Window(0, 3)), str(Window(4, 1))
        ('epochs 1 to 3', 'epoch 5')
        """
        first, last = self.start + 1, self.start + self.length
        return f"epoch {first}" if first == last else f"epochs {first} to {last}"


@final
@dataclass(frozen=True, eq=False)
class Closer:
    """Some of the examples and what the net after its last epoch makes of them.

    ``index`` says which examples. ``features`` are the net's, ``correct`` says whether it is right, ``prediction`` which class it
    predicts, and ``x`` are the inputs where they were kept.
    """

    index: np.ndarray
    features: np.ndarray
    correct: np.ndarray
    x: np.ndarray | None
    prediction: np.ndarray | None = None


@final
@dataclass(frozen=True, eq=False)
class Training:
    """The ``n`` training examples of one run; ``member`` is bool [n, groups], None where the run has no groups.

    ``correct`` and ``visited`` are bool [epochs, n] and about the first stage. ``window`` are its epochs that the uncertainty
    counts. ``row`` and ``file`` say where an example came from.
    """

    label: np.ndarray
    uncertainty: np.ndarray
    weight: np.ndarray | None
    member: np.ndarray | None
    correct: np.ndarray | None
    visited: np.ndarray | None
    row: np.ndarray | None
    file: list[str] | None
    closer: Closer | None
    window: Window | None = None

    @property
    def of(self) -> str:
        """Whose mistakes the uncertainty counts: those of one fit's epochs, or of an ensemble's models."""
        return "models" if self.correct is None else "epochs"

    @property
    def n(self) -> int:
        return len(self.label)

    @cached_property
    def group(self) -> np.ndarray | None:
        """The one group of every example [n]; None where groups are unknown, overlap or leave some out."""
        if self.member is None or not self.member.shape[1] or not (self.member.sum(axis=1) == 1).all():
            return None
        return np.asarray(self.member.argmax(axis=1))

    @cached_property
    def forgetting(self) -> np.ndarray | None:
        """Forgetting events of every example: visits at which it was wrong after having been right, [n]."""
        if self.correct is None or self.visited is None:
            return None
        return forgetting_events(zip(self.correct, self.visited, strict=True), n=self.n)

    @cached_property
    def hints(self) -> np.ndarray | None:
        """A ``Hint`` of every example, [n]; None where the first stage was not recorded or is too short."""
        if self.correct is None or self.visited is None or self.window is None:
            return None
        return learning_hints(self.correct, self.visited, start=self.window.start, length=self.window.length)

    @cached_property
    def predictions(self) -> "TrainingPredictions":
        """What is known of the class predicted for every example: by the final net where it was looked at, else by ERM."""
        by_final = np.zeros(self.n, dtype=bool)
        correct = np.full(self.n, np.nan)
        prediction = np.full(self.n, -1, dtype=np.int64)
        if self.correct is not None and self.visited is not None:
            correct = np.where(self.visited[-1], self.correct[-1], np.nan)
        if self.closer is not None:
            by_final[self.closer.index] = True
            correct[self.closer.index] = self.closer.correct
            if self.closer.prediction is not None:
                prediction[self.closer.index] = self.closer.prediction
        return TrainingPredictions(prediction, correct, by_final)

    @cached_property
    def effective_size(self) -> float | None:
        """How many equally weighted examples estimate as well as these: (Σw)² / Σw²."""
        if self.weight is None:
            return None
        w = self.weight.astype(np.float64)
        return float(w.sum() ** 2 / (w**2).sum())

    def rates(self) -> np.ndarray | None:
        """Share of each group's visited examples that the first stage got right in each epoch, [epochs, groups]."""
        if self.member is None or self.correct is None or self.visited is None:
            return None
        member = self.member.astype(np.float32)
        hits = (self.correct & self.visited).astype(np.float32) @ member
        seen = self.visited.astype(np.float32) @ member
        with np.errstate(invalid="ignore"):
            return np.asarray(hits / seen)


@final
@dataclass(frozen=True, eq=False)
class TrainingPredictions:
    """The last known prediction of every training example.

    ``prediction`` is a class number, -1 where only ``correct`` is known; ``correct`` is 1, 0 or NaN (unknown); ``by_final`` says
    that the final net after its last epoch predicted it, and not the last epoch of the first stage.
    """

    prediction: np.ndarray
    correct: np.ndarray
    by_final: np.ndarray

    def name(self, index: int, label: int, classes: Sequence[str]) -> str:
        """The predicted class of one example in words."""
        if self.prediction[index] >= 0:
            return classes[int(self.prediction[index])]
        if np.isnan(self.correct[index]):
            return "–"
        if self.correct[index]:
            return classes[label]
        return classes[1 - label] if len(classes) == 2 else "another class"


def training_of(record: RunRecord) -> Training | None:
    """The training examples of this run; None where its method never measured their uncertainty."""
    folder, kept = record.directory, read_examples(record)
    if kept is None or "uncertainty" not in kept:
        return None
    n = len(kept["label"])
    rows = read_training_rows(record)
    correct, visited = _bits(folder / TRAJECTORY, n)
    window = window_of(record)
    return Training(
        label=kept["label"],
        uncertainty=kept["uncertainty"].astype(np.float64),
        weight=kept["weight"].astype(np.float64) if "weight" in kept else None,
        member=None if rows is None or not record.groups else members(rows, len(record.groups)),
        correct=correct,
        visited=visited,
        row=rows["row"].to_numpy() if rows is not None and "row" in rows else None,
        file=rows["file"].to_list() if rows is not None and "file" in rows else None,
        closer=_closer(folder / EXAMPLE_FEATURES),
        window=None if correct is None or window is None or not window.is_within(len(correct)) else window,
    )


def window_of(record: RunRecord) -> Window | None:
    """The epochs of the first stage that the run's method used; None where its settings name none."""
    method = record.plan.get("method", {})
    if "identification_epochs" in method:  # JTT looks at one epoch, the last
        epochs = record.choices.get("identification_epochs", method["identification_epochs"])
        return Window(epochs - 1, 1) if isinstance(epochs, int) else None
    decided, winner = record.choices, record.choices.get("method")  # best names the method whose settings it chose
    start = decided.get("start", decided.get(f"{winner}.start", method.get("start", 0)))
    length = decided.get("length", decided.get(f"{winner}.length", method.get("length")))
    return Window(start, length) if isinstance(start, int) and isinstance(length, int) else None


def _bits(path: Path, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Which examples were predicted correctly and which were visited in each epoch, both bool [epochs, n]."""
    if not path.exists():  # an ensemble has no epochs
        return None, None
    arrays, _ = read_arrays(path, kind="trajectory")
    correct, visited = (np.unpackbits(arrays[name], axis=1, count=n).astype(bool) for name in ("correct", "visited"))
    return correct, visited


def _closer(path: Path) -> Closer | None:
    """The examples that were looked at more closely; None in a run that looked at none."""
    if not path.exists():
        return None
    arrays, _ = read_arrays(path, kind="closer")
    return Closer(
        arrays["index"],
        arrays["features"].astype(np.float32),
        arrays["correct"].astype(bool),
        arrays.get("x"),
        arrays.get("prediction"),
    )


@final
class Hint(IntEnum):
    """Likely mislabelled (contradicted) or learned late: two kinds of uncertain training examples, told apart by their trajectory.

    Both kinds are often wrong, so uncertainty alone does not separate them. The trajectory of the first stage says whether the net
    gave in. This is a hint for people who look through examples; no method uses it. A group that the first stage never learns looks
    like wrong labels, and a net that memorises wrong labels makes them look learned late.
    """

    NONE = 0
    CONTRADICTED = 1
    LEARNED_LATE = 2


#: The hints in words, for columns and captions.
WORDS = {Hint.NONE: "–", Hint.CONTRADICTED: "consistently contradicted", Hint.LEARNED_LATE: "learned late"}


def last_epochs(epochs: int) -> int:
    """How many epochs count as the end of a first stage: the last quarter, at least one.

    >>> last_epochs(4), last_epochs(20)
    (1, 5)
    """
    return max(1, epochs // 4)


def learning_hints(correct: np.ndarray, visited: np.ndarray, *, start: int, length: int) -> np.ndarray | None:
    """A ``Hint`` for every example [n], from the bits of the first stage, bool [epochs, n].

    None below three epochs, and where the whole window lies in the last quarter of the stage: then nothing is early.

    *Contradicted* (likely mislabelled): wrong in at least 90 % of the visits in the window ``start … start+length-1``, wrong at
    every visit in the last quarter of the stage, and forgotten at most once. *Learned late* (likely a minority or hard): wrong in
    at least half of the window's visits and right at every visit in the last quarter.

    >>> right = np.array([[0, 0], [0, 0], [0, 1], [0, 1]], dtype=bool)
    >>> learning_hints(right, np.ones_like(right), start=0, length=2).tolist()
    [1, 2]
    """
    epochs, n = correct.shape
    if epochs < FEWEST_EPOCHS or start >= epochs - last_epochs(epochs):
        return None
    wrong = visited & ~correct
    window = slice(start, start + length)
    visits = visited[window].sum(axis=0)
    share = wrong[window].sum(axis=0) / np.maximum(visits, 1)
    end = slice(epochs - last_epochs(epochs), epochs)
    seen_last = visited[end].any(axis=0) & (visits > 0)
    still_wrong = seen_last & ~(visited & correct)[end].any(axis=0)
    right_last = seen_last & ~wrong[end].any(axis=0)
    events = forgetting_events(zip(correct, visited, strict=True), n=n)
    hints = np.full(n, Hint.NONE, dtype=np.int8)
    hints[still_wrong & (share >= NEARLY_ALL) & (events <= FEW_EVENTS)] = Hint.CONTRADICTED
    hints[right_last & (share >= OFTEN)] = Hint.LEARNED_LATE
    return hints


@final
@dataclass(frozen=True)
class Threshold:
    """Of the examples with uncertainty at least ``u``: how many there are, and which share is of the minority, and of it found."""

    u: float
    chosen: int
    precision: float | None
    recall: float


@final
@dataclass(frozen=True)
class MinorityRanking:
    """How well uncertainty ranks the ``n`` examples of the groups ``names`` above the others."""

    names: tuple[str, ...]
    n: int
    share: float
    auroc: float
    thresholds: tuple[Threshold, ...]


def minority_groups(sizes: np.ndarray) -> np.ndarray:
    """Which groups have fewer examples than groups have on average, bool [groups]; empty ones count as none.

    >>> minority_groups(np.array([800, 40, 40, 800])).tolist()
    [False, True, True, False]
    """
    there = sizes > 0
    return np.asarray(there & (sizes < sizes[there].mean())) if there.any() else there


def rank_minority(u: np.ndarray, member: np.ndarray | None, names: Sequence[str]) -> MinorityRanking | None:
    """How well ``u`` [n] finds the minority groups; None where groups are unknown or none is a minority."""
    if member is None:
        return None
    small = minority_groups(member.sum(axis=0))
    rare = np.asarray(member[:, small].any(axis=1))
    area = auroc(rare, u)
    if np.isnan(area):
        return None
    thresholds = tuple(_threshold(u, rare, at) for at in THRESHOLDS)
    chosen = tuple(name for name, is_small in zip(names, small, strict=True) if is_small)
    return MinorityRanking(chosen, int(rare.sum()), float(rare.mean()), area, thresholds)


def _threshold(u: np.ndarray, rare: np.ndarray, at: float) -> Threshold:
    chosen = u >= at
    hits, n = int((chosen & rare).sum()), int(chosen.sum())
    return Threshold(at, n, hits / n if n else None, hits / int(rare.sum()))
