"""UMIX in one's own LightningModule: a callback records the trajectory, a mixin trains the second stage.

    recorder = TrajectoryCallback()
    Trainer(max_epochs=10, callbacks=[recorder]).fit(Classifier(), loader)

    class SecondStage(TrainsByUMIX, Classifier): ...

    model = SecondStage().with_weights(recorder.trajectory.weights(eta=3), sigma=0.5)
    Trainer(max_epochs=20).fit(model, loader)

The loader reads an ``IndexedDataset``, so that a batch is (x, y, index), or a dict with the entry "index".
"""

from collections.abc import Mapping
from typing import Any, Self, final

import lightning.pytorch as pl
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from umix.adapters.indexed_dataset import INDEX
from umix.adapters.weighted_mixup import WeightedMixup, named_part
from umix.errors import UserError
from umix.training.trajectory import Trajectory

__all__ = ["TrainsByUMIX", "TrajectoryCallback"]

_LABELS = ("y", "label", "labels", "target")


@final
class TrajectoryCallback(pl.Callback):
    """Records which examples are predicted correctly in which epoch of training.

    The trajectory is saved in Lightning's checkpoints. In several processes it is gathered at the end of an epoch.

    A fit that begins with the first batch begins a new trajectory; one that is resumed, or continued by the same Trainer, goes on
    with it. An epoch that ``max_steps`` or early stopping cuts off at the end of a fit is not counted.

    Args:
        module: name of the part of the LightningModule that gives the logits; by default the module itself, whose
            ``training_step`` calls ``self(x)``.
        n: number of training examples; by default that of the training loader's dataset.

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
        _, y, index = _batch_parts(batch)
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


class TrainsByUMIX:
    """A LightningModule whose training step is weighted mixup: ``class SecondStage(TrainsByUMIX, Classifier): ...``.

    Everything else, optimisers and validation and what is logged there, stays that of the module. ``with_weights`` sets what the
    step needs. The step calls ``self(x)`` for logits, and logs ``train_loss``. Modules that step their optimisers themselves
    (``automatic_optimization = False``) are refused: they call ``WeightedMixup`` in a training step of their own.
    """

    mixup: WeightedMixup | None = None
    mixed_before: str | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        order = cls.__mro__
        if pl.LightningModule in order and order.index(TrainsByUMIX) > order.index(pl.LightningModule):
            raise UserError(
                f"TrainsByUMIX must come first among the bases of {cls.__name__}, else its training step is not used; write "
                f"class {cls.__name__}(TrainsByUMIX, {cls.__bases__[0].__name__})."
            )

    def with_weights(self, weights: Tensor, *, before: str | None = None, **options: Any) -> Self:
        """This module, ready for the second stage.

        Args:
            weights: a weight for every training example, [n].
            before: name of the last layer, a part of this module, to mix features instead of inputs.
            options: other arguments of ``WeightedMixup``.

        """
        self.mixup, self.mixed_before = WeightedMixup(weights, **options), before
        return self

    def _mixup(self) -> WeightedMixup:
        if self.mixup is None:
            raise UserError(
                f"{type(self).__name__} must have weights before it is trained by UMIX; call with_weights(weights) first."
            )
        return self.mixup

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        module: Any = self
        if not module.automatic_optimization:
            raise UserError(
                f"{type(self).__name__} must leave the steps of its optimisers to Lightning to be trained by TrainsByUMIX, but its "
                "automatic_optimization is False; call umix.WeightedMixup in its own training_step instead."
            )
        x, y, index = _batch_parts(batch)
        layer = None if self.mixed_before is None else named_part(module, self.mixed_before)
        loss = self._mixup()(module, x, y, index, before=layer)
        module.log("train_loss", loss)
        return loss

    def on_train_epoch_start(self) -> None:
        above: Any = super()
        above.on_train_epoch_start()
        trained: Any = self
        self._mixup().set_epoch(trained.current_epoch)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        above: Any = super()
        above.on_save_checkpoint(checkpoint)
        if self.mixup is not None:
            checkpoint["umix"] = self.mixup.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        above: Any = super()
        above.on_load_checkpoint(checkpoint)
        if self.mixup is not None and "umix" in checkpoint:
            self.mixup.load_state_dict(checkpoint["umix"])


def _batch_parts(batch: Any) -> tuple[Any, Any, Any]:
    """The inputs, the labels and the indices of ``batch``: (x, y, index), or a dict with "index" and a label.

    The inputs of a dict are its entry "x", or all that is neither the index nor the label.
    """
    if isinstance(batch, tuple | list) and len(batch) == 3:
        return batch[0], batch[1], batch[2]
    if isinstance(batch, Mapping) and INDEX in batch:
        label = next((name for name in _LABELS if name in batch), None)
        if label is not None:
            rest = {name: value for name, value in batch.items() if name not in (INDEX, label)}
            return rest.get("x", rest), batch[label], batch[INDEX]
    shape = f"the entries {', '.join(map(str, batch))}" if isinstance(batch, Mapping) else f"{len(batch)} parts"
    raise UserError(
        f"A batch must be (x, y, index), or a dict with index and one of {', '.join(_LABELS)}, got {shape}; wrap the training set "
        "in umix.IndexedDataset."
    )
