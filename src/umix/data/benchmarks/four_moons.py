"""Four moons: the simulated data of the UMIX paper (appendix, uncertainty on a simulated data set).

Two pairs of interleaving half circles, a left and a right pair. Group 0 and group 2 share a label, 1 and 3 share the other. In
each pair one moon is common and the other rare, and which label is common differs between the pairs: so the side is a spurious
attribute, and a model that reads it fails on the two rare moons.
"""

from pathlib import Path
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field

from umix.core.streams import stream
from umix.data.groups import Groups
from umix.data.task import Split, Task, TaskSource

Size = Annotated[int, Field(ge=0)]


@final
class FourMoons(TaskSource):
    """Four moon-shaped groups in the plane, two common and two rare (embedded, simulated as in the paper)."""

    name: ClassVar[str] = "four_moons"

    sizes: tuple[Size, Size, Size, Size] = Field(
        (800, 40, 40, 800), description="training examples of groups 0, 1, 2, 3"
    )
    eval_size: int = Field(200, ge=1, description="examples of each group in val and in test")
    noise: float = Field(0.15, ge=0, description="standard deviation of the points around their moon")
    data_seed: int = Field(0, ge=0, lt=2**32, description="seed of the points, independent of the run's seed")

    def load(self, root: Path | None = None) -> Task:
        """The task; ``root`` is not needed."""
        sizes = {"train": self.sizes, "val": (self.eval_size,) * 4, "test": (self.eval_size,) * 4}
        splits = {
            name: self._draw(n, stream(self.data_seed, "data", f"four_moons/{name}")) for name, n in sizes.items()
        }
        return Task(self.name, splits, ("label 0", "label 1"))

    def _draw(self, sizes: tuple[int, ...], rng: np.random.Generator) -> Split:
        moon = np.repeat(np.arange(4), sizes)
        y, side = moon % 2, moon // 2
        angle = rng.uniform(0, np.pi, len(moon))
        # The upper moon is a half circle around (0, 0), the lower one around (1, 0.5) and turned; the right pair stands 3 further.
        upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
        x = np.where((y == 0)[:, None], upper, lower) + np.stack([3.0 * side - 2.0, np.zeros(len(moon))], axis=1)
        points = torch.from_numpy(x + self.noise * rng.standard_normal(x.shape)).float()
        groups = Groups.from_ids(
            torch.from_numpy(moon), [f"moon {g}" for g in range(4)], attribute=torch.from_numpy(side)
        )
        return Split(points, torch.from_numpy(y).long(), groups)
