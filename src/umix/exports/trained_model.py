"""A trained run as exports take it: its record, the net that a choice of validation means, and the reader of its data."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from umix.bench.predict import PredictedBlocks, Prediction
from umix.bench.predict import reader as reader_of
from umix.bench.runs.load_net import load_net
from umix.bench.runs.record import RunRecord
from umix.core.selection import Choice, Decide
from umix.data.memory_source import MemorySource
from umix.data.reader_registry import READERS
from umix.data.rows.reader import NewInputs, Reader
from umix.errors import Setting, UserError
from umix.nets.estimators.estimator import Fitted
from umix.nets.net import Net


@final
@dataclass(frozen=True, eq=False)
class TrainedModel:
    """The net and the biases that the rule ``select`` chooses on validation, as in ``umix predict``."""

    record: RunRecord
    load: Callable[[int], Net]
    read: Callable[[], Reader]
    select: str | None = None
    decide: Decide | None = None

    @classmethod
    def in_folder(
        cls,
        record: RunRecord,
        *,
        select: str | None = None,
        decide: Decide | None = None,
        trust_code: bool = False,
    ) -> Self:
        """The model of a finished run that has a folder; its net may be code only with ``trust_code``."""
        return cls(
            record,
            lambda epoch: load_net(record, epoch=epoch, trust_code=trust_code),
            lambda: reader_of(record),
            select=select,
            decide=decide,
        )

    @cached_property
    def choice(self) -> Choice:
        """The epoch and the decision."""
        return self.record.choice(self.select, self.decide)

    @cached_property
    def biases(self) -> NDArray[np.float64]:
        """What is added to the logit of every class before the largest is predicted, [classes]."""
        return self.record.biases(self.choice)

    @cached_property
    def net(self) -> Net:
        """The net of the epoch, in evaluation mode."""
        return self.load(self.choice.epoch)

    @cached_property
    def reader(self) -> Reader:
        """The reader of new data; a run on a benchmark has none, which raises UserError."""
        return self.read()

    def predict(self, inputs: NewInputs) -> Prediction:
        """What ``umix predict`` gives for ``inputs``."""
        return PredictedBlocks(self.net, [inputs], self.record.classes, biases=self.biases).whole()

    @property
    def is_own(self) -> bool:
        """Whether the run was trained on data of one's own, of which new ones can be read."""
        task = self.record.plan["task"]
        return (task["kind"] if task["name"] == MemorySource.name else task["name"]) in READERS

    def require_own(self) -> None:
        """Raise where the run was trained on a benchmark."""
        if not self.is_own:
            raise UserError(
                f"A model that is exported must be of a run on data of one's own ({', '.join(READERS)}), got a run on "
                f"{self.record.title}; its card can be written (README.md), and umix.load_net gives the net."
            )

    @property
    def title(self) -> str:
        """The name of the net."""
        return self.record.net or str(self.record.plan["net"]["name"])

    @property
    def short_title(self) -> str:
        """The name of the net without the folder that it lies in on this machine."""
        kind, _, name = self.title.rpartition(":")
        return f"{kind}:{Path(name).name}" if Path(name).is_absolute() else self.title

    def require_layers(self) -> None:
        """Raise where the model is no net but trees or another estimator, which is no graph of torch."""
        if isinstance(self.net.body, Fitted):
            raise UserError(
                f"A net that is exported must be made of layers, got {self.title}, which stays a model of its library; use umix "
                "predict, or export it with ",
                Setting("format", "mlflow"),
                ".",
            )
