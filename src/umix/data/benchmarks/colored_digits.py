"""Handwritten digits drawn in a colour that agrees with the label most of the time: the smallest real spurious correlation.

The digits are the 1,797 real 8×8 images that come with scikit-learn. The label is "five or more"; the digit is drawn in the first
or the second of two colour channels. In training the colour agrees with the label in ``agreement`` of the examples. In validation
and test every digit is drawn in both colours, so it agrees in half of the examples: a model that reads the colour fails on two of
the four label×colour groups.
"""

from pathlib import Path
from typing import ClassVar, final

import numpy as np
import torch
from pydantic import Field

from umix.core.streams import stream
from umix.data.groups import Groups
from umix.data.task import Split, Task, TaskSource

LABELS = ("below five", "five or more")
COLORS = ("red", "green")


@final
class ColoredDigits(TaskSource):
    """Real handwritten digits, label = digit >= 5, colour as the spurious attribute (embedded)."""

    name: ClassVar[str] = "colored_digits"

    agreement: float = Field(
        0.95, ge=0, le=1, description="share of training examples whose colour agrees with the label"
    )
    train_share: float = Field(
        0.6, gt=0, lt=1, description="share of the digits in train; the others are halved into val and test"
    )
    data_seed: int = Field(
        0, ge=0, lt=2**32, description="seed of the split and the colours, independent of the run's seed"
    )

    def load(self, root: Path | None = None) -> Task:
        """The task; ``root`` is not needed."""
        from sklearn.datasets import load_digits

        digits = load_digits()  # pixels are 0 to 16
        images = torch.from_numpy(digits.data / 16).float().view(-1, 8, 8)
        y = torch.from_numpy(digits.target >= 5).long()
        rng = stream(self.data_seed, "data", "colored_digits")
        order = torch.from_numpy(rng.permutation(len(y)))
        first = round(self.train_share * len(y))
        second = first + (len(y) - first) // 2
        rows = {"train": order[:first], "val": order[first:second], "test": order[second:]}
        train = rows["train"]
        splits = {"train": paint(images[train], y[train], self._colors(y[train], rng))}
        for name in ("val", "test"):
            twice = rows[name].repeat(2)  # every digit in both colours, so that groups differ in nothing but the colour
            splits[name] = paint(images[twice], y[twice], torch.arange(len(twice)) // len(rows[name]))
        return Task(self.name, splits, LABELS)

    def _colors(self, y: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        """A colour for every example: exactly the share ``agreement`` of each label has the label's own."""
        color = y.clone()
        for label in range(len(LABELS)):
            rows = torch.from_numpy(rng.permutation(np.flatnonzero(y == label)))
            color[rows[round(self.agreement * len(rows)) :]] = 1 - label
        return color


def paint(images: torch.Tensor, y: torch.Tensor, color: torch.Tensor) -> Split:
    """The images drawn in the channel of their colour, in groups label×colour."""
    x = torch.zeros(len(y), len(COLORS), *images.shape[1:])
    x[torch.arange(len(y)), color] = images
    return Split(x, y, Groups.cells(y, color, labels=LABELS, attributes=COLORS))
