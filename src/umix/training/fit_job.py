"""What a fit is given, for every kind of model."""

from dataclasses import dataclass
from typing import final

from umix.checkpoint_pace import CheckpointPace
from umix.data.samplers import Sampler
from umix.data.task import Split
from umix.training.engine import Engine
from umix.training.loop import Step
from umix.training.objective import Objective
from umix.training.progress import EpochLog, Observer, Progress
from umix.training.stage import Stage


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FitJob:
    """The ``stage``, the examples ``train`` and the ``objective`` of a fit, how its rows are drawn and who watches it.

    With ``until`` only so many epochs are trained now; a later fit of the same stage goes on from the checkpoint.
    """

    stage: Stage
    train: Split
    objective: Objective
    n_groups: int
    sampler: Sampler
    step: Step
    observer: Observer
    log: EpochLog
    engine: Engine
    progress: Progress
    pace: CheckpointPace
    until: int | None = None

    @property
    def last(self) -> int:
        """How many epochs the model has when this fit is done."""
        epochs = self.stage.settings.epochs
        return epochs if self.until is None else min(self.until, epochs)
