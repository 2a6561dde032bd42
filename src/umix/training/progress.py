"""What reports on a fit while it trains: a progress bar, observers after every epoch, and the log of its epochs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, final

import torch
from torch import Tensor

from umix.models.model import Model

_FOLD = 4096  # risks collected before they are summed: this bounds the memory without an addition per step

#: The measures of an epoch. ``lambda`` is NaN if the objective mixes nothing.
MEASURES = ("risk", "lambda", "learning_rate", "seconds")


class Progress(Protocol):
    """Is called when a stage begins, advances and ends; ``total``, ``done`` and ``steps`` count steps.

    ``began`` is when the run, or the command that makes it, began by ``time.perf_counter``: limits of time count from there.
    """

    @property
    def began(self) -> float: ...

    def start(self, stage: str, *, total: int, done: int) -> None: ...

    def advance(self, steps: int) -> None: ...

    def finish(self) -> None: ...

    def note(self, message: str) -> None: ...


@final
class Silent:
    """Shows nothing."""

    def __init__(self) -> None:
        self.began = time.perf_counter()

    def start(self, stage: str, *, total: int, done: int) -> None: ...

    def advance(self, steps: int) -> None: ...

    def finish(self) -> None: ...

    def note(self, message: str) -> None: ...


@final
@dataclass(frozen=True)
class PartOfStage:
    """Reports one of several fits that make a stage as a part of it.

    The fit has trained until epoch ``first`` before and now trains until epoch ``until``. Of the ``epochs`` of the stage, those of
    all its fits together, ``done`` come before.
    """

    whole: Progress
    first: int
    until: int
    done: int
    epochs: int

    @property
    def began(self) -> float:
        return self.whole.began

    def start(self, stage: str, *, total: int, done: int) -> None:
        steps = total // self.until
        self.whole.start(stage, total=steps * self.epochs, done=steps * (self.done - self.first) + done)

    def advance(self, steps: int) -> None:
        self.whole.advance(steps)

    def finish(self) -> None: ...

    def note(self, message: str) -> None:
        self.whole.note(message)


class Observer(Protocol):
    """Is called with the net after every epoch.

    There are History (final fits), Recorder (trajectories), ValidationCounter (candidates), Unobserved, and those of methods.
    """

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        """Restore the observer as it was after ``epochs`` epochs.

        ``kept`` is what ``tensors`` returned then.
        """

    def observe(self, net: Model, epoch: int) -> None:
        """Evaluate ``net`` at the end of ``epoch``."""

    def write(self) -> None:
        """Write the files that a checkpoint of the epochs so far needs beside it; it is written next."""

    def tensors(self) -> Mapping[str, Tensor]:
        """What a checkpoint must contain of this observer."""


@final
class Unobserved:
    """The observer that ignores every epoch."""

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None: ...

    def observe(self, net: Model, epoch: int) -> None: ...

    def write(self) -> None: ...

    def tensors(self) -> dict[str, Tensor]:
        return {}


@final
class EpochLog:
    """Risk, λ, learning rate and seconds of every finished epoch.

    Checkpoints contain it, so a resumed fit has every epoch exactly once. Within an epoch nothing waits for the device.
    """

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
        """``backward`` that also adds the risk to this log."""
        risks = self._risks

        def seen(risk: Tensor) -> None:
            risks.append(risk.detach())
            if len(risks) == _FOLD:
                self._fold()
            backward(risk)

        return seen

    def see_lambda(self, lam: float) -> None:
        """Add the λ of a batch: 1 if it was not mixed, the mean if every example has its own."""
        self._lambda += lam
        self._draws += 1

    def end_epoch(self, *, learning_rate: float, seconds: float) -> None:
        """Close the epoch: mean risk and mean λ of its steps, the last learning rate, and the seconds of training."""
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
        """What a checkpoint must contain of this log."""
        return {"epochs/measures": torch.tensor(self._rows, dtype=torch.float64)}

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        """Restore the log as it was after ``epochs``."""
        self._rows = kept["epochs/measures"].tolist()
