"""Records a trajectory during a fit, and keeps its file consistent with the fit's checkpoint."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, Self, final

from torch import Tensor

from umix.data.task import Split
from umix.errors import UserError
from umix.files import unless_damaged
from umix.nets.net import Net
from umix.run_folder import TRAJECTORY
from umix.training.engine import Engine
from umix.training.evaluate import correctness
from umix.training.stage import Stage
from umix.training.trajectory import Trajectory


def stored_trajectory(path: Path, splits: Mapping[str, Split], *, epochs: int = 0) -> Trajectory:
    """The trajectory at ``path`` of these ``splits``: train, val and perhaps test; UserError where it is of other examples.

    It must have so many ``epochs`` at least, and every example must have been seen in each.
    """
    trajectory = Trajectory.load(path, fingerprint=splits["train"].fingerprint)
    parts = {"train": trajectory, "val": trajectory.val, "test": trajectory.test}
    for name, split in splits.items():
        part = parts[name]
        if part is None or part.n != len(split) or part.epochs < epochs or not part.is_whole:
            raise UserError(f"{path} must hold every epoch of the {len(split)} examples of {name}; delete it.")
    return trajectory


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
        record: Literal["online", "epoch_end"],
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
            recorded = {"train": train, "val": splits["val"]} | ({} if test is None else {"test": test})
            known = unless_damaged(
                path,
                partial(stored_trajectory, path, recorded),
                again=f"the stage {stage.name} starts again",
                warn=warn,
            )
            trajectory = trajectory if known is None else known
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

    def observe(self, net: Net, epoch: int) -> None:
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
