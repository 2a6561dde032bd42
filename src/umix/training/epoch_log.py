"""What every epoch of a fit was like: risk, λ, learning rate, seconds. Nothing here waits for the device within an epoch."""

from collections.abc import Callable, Mapping
from typing import final

import torch
from torch import Tensor

_FOLD = 4096  # risks held back before they are added up: bounded memory, and no addition per step

#: What is known of every epoch. ``lambda`` is NaN where the objective mixes nothing.
MEASURES = ("risk", "lambda", "learning_rate", "seconds")


@final
class EpochLog:
    """One number per measure and finished epoch; travels with the checkpoint, so that a resumed fit has every epoch once."""

    def __init__(self) -> None:
        self._rows: list[list[float]] = []
        self._risks: list[Tensor] = []
        self._folded: Tensor | None = None
        self._steps = 0
        self._lambda = 0.0
        self._draws = 0

    @property
    def epochs(self) -> int:
        return len(self._rows)

    def watching(self, backward: Callable[[Tensor], None]) -> Callable[[Tensor], None]:
        """``backward`` that also shows the risk to this log."""
        risks = self._risks

        def seen(risk: Tensor) -> None:
            risks.append(risk.detach())
            if len(risks) == _FOLD:
                self._fold()
            backward(risk)

        return seen

    def see_lambda(self, lam: float) -> None:
        """Remember the λ of a batch: 1 where it was not mixed, the mean where every example has its own."""
        self._lambda += lam
        self._draws += 1

    def end_epoch(self, *, learning_rate: float, seconds: float) -> None:
        """Close the epoch: the mean over its steps of risk and λ, the learning rate it ended with, the seconds it trained."""
        self._fold()
        risk = float(self._folded) / self._steps if self._folded is not None else float("nan")
        lam = self._lambda / self._draws if self._draws else float("nan")
        self._rows.append([risk, lam, learning_rate, seconds])
        self._folded, self._steps, self._lambda, self._draws = None, 0, 0.0, 0

    def _fold(self) -> None:
        if self._risks:
            total = torch.stack(self._risks).sum(dtype=torch.float64 if self._risks[0].device.type != "mps" else None)
            self._folded = total if self._folded is None else self._folded + total
            self._steps += len(self._risks)
            self._risks.clear()

    def rows(self) -> list[dict[str, float]]:
        """The measures of every epoch."""
        return [dict(zip(MEASURES, row, strict=True)) for row in self._rows]

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must keep, beside what the observer keeps."""
        return {"epochs/measures": torch.tensor(self._rows, dtype=torch.float64)}

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        """Go back to where the fit was after ``epochs``; what an older checkpoint does not tell is NaN."""
        known = kept.get("epochs/measures")
        self._rows = known.tolist() if known is not None else [[float("nan")] * len(MEASURES)] * epochs
