"""The most uncertain training examples, as rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.core.words import counted
from umix.reports.learning_hints import WORDS, Hint
from umix.reports.page.example_view import Shown, Viewer
from umix.reports.training_examples import Training

#: How many are shown: enough to look through, few enough for a page.
MOST = 200


@final
@dataclass(frozen=True)
class Example:
    """One training example; ``history`` has a letter per epoch of the first stage: 1 right, 0 wrong, - not visited.

    ``predicted`` is the class that the final net predicts after its last epoch if ``by_final``, else that of the last epoch of
    the first stage. ``hint`` says in words what the trajectory looks like.
    """

    index: int
    shown: Shown
    label: str
    predicted: str
    by_final: bool
    groups: tuple[str, ...]
    uncertainty: float
    weight: float | None
    forgetting: int | None
    history: str
    hint: str = WORDS[Hint.NONE]

    @property
    def told(self) -> str:
        """The history in words.

        >>> Example(0, Shown("a"), "b", "c", True, (), 0.5, None, None, "0101").told
        'wrong in 2 of 4 epochs: 1, 3'
        """
        wrong = [str(epoch) for epoch, bit in enumerate(self.history, start=1) if bit == "0"]
        seen = len(self.history) - self.history.count("-")
        return f"wrong in {len(wrong)} of {counted(seen, 'epoch')}" + (f": {', '.join(wrong[:40])}" if wrong else "")


def most_uncertain(
    training: Training, viewer: Viewer, *, classes: Sequence[str], groups: Sequence[str], most: int = MOST
) -> list[Example]:
    """The ``most`` examples with the highest uncertainty; of equals those that were forgotten more often come first.

    Of equals, those whose inputs were kept come before others: there is more to show of them.
    """
    u, forgetting = training.uncertainty, training.forgetting
    events = np.zeros(training.n) if forgetting is None else forgetting
    looked_at = np.zeros(training.n, dtype=bool)
    if training.closer is not None and training.closer.x is not None:
        looked_at[training.closer.index] = True
    predictions = training.predictions
    order = np.lexsort((np.arange(training.n), -events, ~looked_at, -u))[:most]
    return [
        Example(
            index=index,
            shown=viewer.show(index),
            label=classes[int(training.label[index])],
            predicted=predictions.name(index, int(training.label[index]), classes),
            by_final=bool(predictions.by_final[index]),
            groups=_groups_of(training, index, groups),
            uncertainty=float(u[index]),
            weight=None if training.weight is None else float(training.weight[index]),
            forgetting=None if forgetting is None else int(forgetting[index]),
            history=_history(training, index),
            hint=WORDS[Hint.NONE if training.hints is None else Hint(int(training.hints[index]))],
        )
        for index in order.tolist()
    ]


def _groups_of(training: Training, index: int, names: Sequence[str]) -> tuple[str, ...]:
    if training.member is None:
        return ()
    return tuple(names[g] for g in np.flatnonzero(training.member[index]).tolist())


def _history(training: Training, index: int) -> str:
    if training.correct is None or training.visited is None:
        return ""
    bits = zip(training.correct[:, index].tolist(), training.visited[:, index].tolist(), strict=True)
    return "".join("-" if not seen else "1" if hit else "0" for hit, seen in bits)
