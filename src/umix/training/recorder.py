"""Records the trajectory of a net while it trains; ``cross_fit`` makes that of an estimator."""

from collections.abc import Callable, Mapping
from functools import partial, singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Self, final

from torch import Tensor

from umix.data.samplers import Shuffled
from umix.data.task import Split
from umix.errors import UserError
from umix.models.estimators.estimator import EstimatorSettings
from umix.models.model import Model, ModelSettings
from umix.models.net import NetSettings
from umix.run_folder import TRAJECTORY
from umix.store import load_or_none, locked
from umix.training.cross_fit import cross_fitted_hits, cross_fitted_trajectory
from umix.training.engine import Engine
from umix.training.evaluate import correctness
from umix.training.objective import MeanRisk
from umix.training.stage import Record, Stage, recorded_splits
from umix.training.trajectory import Trajectory

if TYPE_CHECKING:
    from umix.training.context import Context


@final
class Recorder:
    """The observer that ends an epoch of ``trajectory``, and saves it before a checkpoint is written.

    So the file has at least as many epochs as the checkpoint. The predictions of val, and of test
    if it is given, are those of an evaluation pass after every epoch.
    """

    def __init__(
        self,
        trajectory: Trajectory,
        train: Split,
        val: Split,
        path: Path | None,
        *,
        clean_pass: bool,
        batch_size: int,
        test: Split | None = None,
    ) -> None:
        self.trajectory = trajectory
        trajectory.val = trajectory.val or Trajectory(len(val), fingerprint=val.fingerprint)
        self._others = [(trajectory.val, val)]
        if test is not None:
            trajectory.test = trajectory.test or Trajectory(len(test), fingerprint=test.fingerprint)
            self._others.append((trajectory.test, test))
        self._train = train
        self._path = path
        self._clean_pass = clean_pass
        self._batch_size = batch_size

    @classmethod
    def open(
        cls,
        stage: Stage,
        splits: Mapping[str, Split],
        *,
        record: Record,
        test: Split | None = None,
        engine: Engine | None = None,
        warn: Callable[[str], None] = lambda message: None,
    ) -> Self:
        """A recorder that continues the trajectory in the stage's directory, if there is one.

        If ``engine`` has several processes, all continue the trajectory of the first. One that is damaged is begun anew, and
        ``warn`` is told.
        """
        train, path = splits["train"], None if stage.directory is None else stage.directory / TRAJECTORY
        trajectory = Trajectory(len(train), fingerprint=train.fingerprint)
        if path is not None:
            stored = load_or_none(
                path,
                partial(Trajectory.load, path, fingerprint=train.fingerprint),
                again=f"the stage {stage.name} starts again",
                warn=warn,
            )
            trajectory = trajectory if stored is None else stored
        batch_size = stage.settings.batch_size
        if engine is not None:
            trajectory = engine.from_first(trajectory)
        clean = record == "epoch_end"
        return cls(trajectory, train, splits["val"], path, clean_pass=clean, batch_size=batch_size, test=test)

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        held = min(self.trajectory.epochs, *(other.epochs for other, _ in self._others))
        if held < epochs:
            raise UserError(
                f"{self._path} must hold the {epochs} epochs of the checkpoint beside it, got {held}; "
                "delete this folder to record the trajectory again."
            )
        self.trajectory.truncate(epochs)

    def observe(self, net: Model, epoch: int) -> None:
        self.trajectory.truncate(epoch)
        if self._clean_pass:
            self.trajectory.see_all(correctness(net, self._train, batch_size=self._batch_size))
        self.trajectory.end_epoch()
        for other, split in self._others:
            other.see_all(correctness(net, split, batch_size=self._batch_size))
            other.end_epoch()

    def write(self) -> None:
        if self._path is not None:
            self.trajectory.save(self._path)

    def tensors(self) -> dict[str, Tensor]:
        return {}


@singledispatch
def trajectory_of(settings: ModelSettings, context: "Context", stage: Stage, *, record: Record) -> Trajectory:
    """The trajectory of ``stage``, an ERM fit of the model of ``settings``, for the splits that are recorded."""
    raise TypeError(f"A kind of model must be registered with trajectory_of, got {type(settings).__name__}.")


@singledispatch
def reference_hits(
    settings: ModelSettings, context: "Context", stage: Stage, splits: tuple[str, ...]
) -> dict[str, Tensor]:
    """Whether the model of ``settings`` at the end of ``stage`` predicts each example correctly, bool [n] by split."""
    raise TypeError(f"A kind of model must be registered with reference_hits, got {type(settings).__name__}.")


trajectory_of.register(EstimatorSettings, cross_fitted_trajectory)
reference_hits.register(EstimatorSettings, cross_fitted_hits)


@trajectory_of.register(NetSettings)
def _(settings: NetSettings, context: "Context", stage: Stage, *, record: Record) -> Trajectory:
    net, test = context.fresh_net(stage.name), None
    if "test" in recorded_splits(context.task):
        test = context.splits["test"]
    with locked(stage.directory):
        recorder = Recorder.open(
            stage, context.splits, record=record, test=test, engine=context.engine, warn=context.progress.note
        )
        watch = recorder.trajectory.see if record == "online" else None
        context.run_fit(stage, net, MeanRisk(watch), Shuffled(), recorder)
    return recorder.trajectory


@reference_hits.register(NetSettings)
def _(settings: NetSettings, context: "Context", stage: Stage, splits: tuple[str, ...]) -> dict[str, Tensor]:
    net = context.engine.shared(context.fitted_reference(stage))
    size = context.settings.batch_size
    return {name: correctness(net, context.splits[name], batch_size=size) for name in splits}
