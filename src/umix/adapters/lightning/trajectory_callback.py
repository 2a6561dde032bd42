"""Records the trajectory of a fit by Lightning, from the logits that the training step computes anyway."""

from typing import Any, final

import lightning.pytorch as pl
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from umix.adapters.lightning.batch_parts import batch_parts
from umix.adapters.named_part import named_part
from umix.errors import UserError
from umix.training.trajectory import Trajectory


@final
class TrajectoryCallback(pl.Callback):
    """Records which examples are predicted correctly in which epoch of training.

    ``module`` names the part of the LightningModule whose output are the logits; by default the module itself, whose
    ``training_step`` calls ``self(x)``. ``n`` is the number of training examples, by default that of the training loader's dataset.
    The trajectory is saved in Lightning's checkpoints. In several processes it is gathered at the end of an epoch.

    A fit that begins with the first batch begins a new trajectory; one that is resumed, or continued by the same Trainer, goes on
    with it. An epoch that ``max_steps`` or early stopping cuts off at the end of a fit is not counted.
    """

    def __init__(self, *, module: str = "", n: int | None = None) -> None:
        self._module, self._n = module, n
        self._trajectory: Trajectory | None = None
        self._logits: Tensor | None = None
        self._hook: RemovableHandle | None = None
        self._finished = 0

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory of the epochs that have ended; raises before the first fit."""
        if self._trajectory is None:
            raise UserError(
                "A TrajectoryCallback must have seen a fit before its trajectory is asked for; call fit first."
            )
        return self._trajectory

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        n = _length(trainer) if self._n is None else self._n
        if self._trajectory is None or trainer.fit_loop.total_batch_idx < 0:
            self._trajectory, self._finished = Trajectory(n), 0
        elif self._trajectory.n != n:
            raise UserError(
                f"A fit that goes on must have the {self._trajectory.n} training examples that were recorded before, got {n}; "
                "train from the start."
            )
        self._hook = named_part(pl_module, self._module).register_forward_hook(self._see)

    def _see(self, module: nn.Module, given: Any, logits: Any) -> None:
        # On several devices Lightning wraps the whole step in a call of the module, which gives the loss, a scalar.
        if module.training and isinstance(logits, Tensor) and logits.dim() > 0:
            # The labels come with the end of the batch, and the training step may adjust its logits in place before.
            self._logits = logits.detach().clone() if logits.dim() == 2 else logits.detach()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._end_epochs(trainer.current_epoch)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        _, y, index = batch_parts(batch)
        logits, self._logits = self._logits, None
        if logits is None or logits.dim() != 2 or len(logits) != len(y):
            name = f"its part {self._module!r}" if self._module else f"{type(pl_module).__name__} itself"
            got = "no call" if logits is None else f"an output of shape {list(logits.shape)}"
            raise UserError(
                f"A training step must compute the logits [batch, classes] by calling {name}, got {got} for {len(y)} labels; name "
                "the part that does: TrajectoryCallback(module=...)."
            )
        self.trajectory.see(index, logits, y)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_last_batch:
            self._finished = trainer.current_epoch + 1

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._end_epochs(self._finished)
        if self._hook is not None:
            self._hook.remove()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        if self._hook is not None:
            self._hook.remove()

    def _end_epochs(self, finished: int) -> None:
        """End the epoch that was open when ``finished`` epochs had been trained.

        A checkpoint may be written before Lightning ends an epoch, so the epoch ends here when the next one begins.
        """
        if self.trajectory.epochs < finished:
            self.trajectory.gather()
            self.trajectory.end_epoch()

    def state_dict(self) -> dict[str, Any]:
        if self._trajectory is None:
            return {}
        self._trajectory.gather()  # every process is asked for its state, and that of the first is written
        return self._trajectory.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if state_dict:
            self._trajectory = Trajectory.from_state_dict(state_dict)


def _length(trainer: pl.Trainer) -> int:
    dataset = getattr(trainer.train_dataloader, "dataset", None)
    if dataset is None or not hasattr(dataset, "__len__"):
        raise UserError(
            "The number of training examples must be known, but the training loader has no dataset with a length; say it: "
            "TrajectoryCallback(n=...)."
        )
    return len(dataset)
