"""Two rings around each other, whose class and side of the plane mostly go together in training."""

from pathlib import Path
from typing import ClassVar, final

import numpy as np
import torch
from pydantic import Field

from umix.core.streams import stream
from umix.data.groups import Groups
from umix.data.task import Split, Task, TaskSource


@final
class TwoRings(TaskSource):
    """Two rings in the plane; in training most of the inner one lies on the left, most of the outer one on the right."""

    name: ClassVar[str] = "two_rings"
    preset_kind: ClassVar[str] = "table"  # it has no presets of its own: it is trained with those for tables
    default_net: ClassVar[str] = "mlp"

    size: int = Field(400, ge=1, description="training examples of each ring; a quarter of it in val and in test")
    agreement: float = Field(0.9, ge=0.5, le=1, description="share of a ring's training examples on its common side")
    data_seed: int = Field(0, ge=0, description="seed of the points, independent of the run's seed")

    def load(self, root: Path | None = None) -> Task:
        """The task; ``root`` is not needed."""
        splits = {"train": (self.size, self.agreement), "val": (self.size // 4, 0.5), "test": (self.size // 4, 0.5)}
        return Task(self.name, {name: self._draw(name, *of) for name, of in splits.items()}, ("inner", "outer"))

    def _draw(self, split: str, size: int, agreement: float) -> Split:
        rng = stream(self.data_seed, "data", f"{self.name}/{split}")
        y = np.repeat([0, 1], max(size, 1))
        side = np.where(rng.random(len(y)) < agreement, y, 1 - y)
        angle = rng.uniform(-np.pi / 2, np.pi / 2, len(y)) + np.pi * (side == 0)
        radius = 1 + y + 0.25 * rng.standard_normal(len(y))
        x = torch.from_numpy(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)).float()
        labels, sides = torch.from_numpy(y).long(), torch.from_numpy(side).long()
        groups = Groups.cells(labels, sides, labels=("inner", "outer"), attributes=("left", "right"))
        return Split(x, labels, groups)
