"""The comparison of an exported model with ``umix predict``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.data.rows.reader import NewInputs
from umix.errors import UserError
from umix.exports.trained_model import TrainedModel

#: The largest difference of a probability that an exported model may have.
TOLERANCE = 1e-5
_LEVEL = 1e-4  # of logits: two classes that are nearer are decided by rounding


@final
@dataclass(frozen=True)
class Agreement:
    """The largest ``difference`` between a probability of the exported model, run ``by`` a library, and that of predict.

    ``rows`` is how many rows were compared, and ``words`` says which.
    """

    by: str
    difference: float
    rows: int
    words: str

    @property
    def sentence(self) -> str:
        close = f"to {self.difference:.0e}" if self.difference else "exactly"
        return f"{self.by} agrees with umix predict {close} on {self.words}."


@final
@dataclass(frozen=True, eq=False)
class Expected:
    """What ``umix predict`` gives: labels as places among the classes, [n], and probabilities [n, classes]."""

    label: Tensor
    probabilities: Tensor
    biases: Tensor

    @classmethod
    def of(cls, trained: TrainedModel, inputs: NewInputs) -> "Expected":
        """The predictions for ``inputs``."""
        table, classes = trained.predict(inputs).table, trained.record.classes
        probabilities = np.stack([table[f"p_{name}"].to_numpy() for name in classes], axis=1)
        label = places(table["label"].to_list(), classes)
        return cls(label, torch.from_numpy(probabilities), torch.from_numpy(trained.biases))


def compare(expected: Expected, label: Tensor, probabilities: Tensor, *, by: str, words: str, output: str) -> Agreement:
    """How far the model's ``label`` [n] and ``probabilities`` [n, classes] are from ``expected``; raises where it is too far."""
    gap = (probabilities - expected.probabilities).abs().nan_to_num(torch.inf)
    difference = float(gap.max())
    if difference > TOLERANCE or _wrong(expected, label).any():
        rows = int(((gap.amax(dim=1) > TOLERANCE) | _wrong(expected, label)).sum())
        raise UserError(
            f"The exported model must give what umix predict gives to {TOLERANCE:.0e}, but it differs by {difference:.1e} in "
            f"{rows} of {len(gap)} rows; {output} was not written."
        )
    return Agreement(by, difference, len(gap), words)


def _wrong(expected: Expected, label: Tensor) -> Tensor:
    """Which labels are others than expected, and not because two classes are level, bool [n]."""
    scores = expected.probabilities.double().clamp(min=1e-45).log() + expected.biases
    behind = scores.gather(1, expected.label[:, None]) - scores.gather(1, label[:, None])
    return (label != expected.label) & (behind[:, 0] > _LEVEL)


def places(labels: Sequence[str], classes: Sequence[str]) -> Tensor:
    """The place of every label among the ``classes``, int64 [n]."""
    known = {name: place for place, name in enumerate(classes)}
    return torch.tensor([known[label] for label in labels], dtype=torch.int64)
