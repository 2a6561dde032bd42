"""Records a trajectory during a fit and keeps its file in step with the fit's checkpoint."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self, final

from torch import Tensor

from umix.data.task import Split
from umix.errors import UserError
from umix.nets.net import Net
from umix.train.engine import Engine
from umix.train.evaluate import correctness
from umix.train.fit import Stage
from umix.train.trajectory import Trajectory


@final
class Recorder:
    """The observer that closes an epoch of ``trajectory``; written before the checkpoint, so it is never behind it.

    Validation examples are not trained on: of them every epoch keeps the predictions of a clean pass after it.
    """

    def __init__(
        self, trajectory: Trajectory, train: Split, val: Split, path: Path | None, *, clean_pass: bool, batch_size: int
    ) -> None:
        self.trajectory = trajectory
        self._val_trajectory = trajectory.val or Trajectory(len(val), fingerprint=val.fingerprint)
        trajectory.val = self._val_trajectory
        self._train = train
        self._val = val
        self._path = path
        self._clean_pass = clean_pass
        self._batch_size = batch_size

    @classmethod
    def open(
        cls, stage: Stage, train: Split, val: Split, *, record: Literal["online", "epoch_end"], engine: Engine
    ) -> Self:
        """A recorder for these splits that goes on with what the stage's directory already holds of them."""
        path = None if stage.directory is None else stage.directory / "trajectory.safetensors"
        trajectory = Trajectory(len(train), fingerprint=train.fingerprint)
        if path is not None and path.exists():
            trajectory = Trajectory.load(path, fingerprint=train.fingerprint)
        batch_size = stage.settings.batch_size
        return cls(engine.from_first(trajectory), train, val, path, clean_pass=record == "epoch_end", batch_size=batch_size)

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        held = min(self.trajectory.epochs, self._val_trajectory.epochs)
        if held < epochs:
            raise UserError(
                f"{self._path} must hold the {epochs} epochs of the checkpoint beside it, got {held}; "
                "delete this folder to record the trajectory again."
            )
        self.trajectory.truncate(epochs)

    def observe(self, net: Net, epoch: int) -> None:
        self.trajectory.truncate(epoch)
        if self._clean_pass:
            self.trajectory.see_all(correctness(net, self._train, batch_size=self._batch_size))
        self.trajectory.end_epoch()
        self._val_trajectory.see_all(correctness(net, self._val, batch_size=self._batch_size))
        self._val_trajectory.end_epoch()
        if self._path is not None:
            self.trajectory.save(self._path)

    def tensors(self) -> dict[str, Tensor]:
        return {}
