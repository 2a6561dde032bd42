"""The second stage of UMIX as a mixin for one's own LightningModule."""

from typing import Any, Self

import lightning.pytorch as pl
from torch import Tensor

from umix.adapters.lightning.batch_parts import batch_parts
from umix.adapters.loop.weighted_mixup import WeightedMixup
from umix.adapters.named_part import named_part
from umix.errors import UserError


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
        """This module, ready for the second stage; ``options`` are those of ``WeightedMixup``.

        ``before`` names the last layer, a part of this module, where features are to be mixed instead of inputs.
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
        x, y, index = batch_parts(batch)
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
