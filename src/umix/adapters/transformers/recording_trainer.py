"""The first stage of UMIX: a Trainer that records which examples it gets wrong.

trainer = RecordingTrainer(model=model, args=args, train_dataset=train)
trainer.train()
weights = trainer.trajectory.weights(eta=3)
"""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from umix.adapters.transformers.indexed_trainer import IndexedTrainer, logits_in, logits_of, taken_apart
from umix.adapters.transformers.state_file import read_state, write_state
from umix.errors import UserError
from umix.training.trajectory import Trajectory

_FILE = "umix_trajectory.safetensors"


class RecordingTrainer(IndexedTrainer):
    """A ``transformers.Trainer`` that also fills ``trajectory``; it trains as ever, with the same loss and random numbers.

    The predictions are those of the training pass. All epochs must visit all examples, so ``dataloader_drop_last`` is refused.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self.trajectory = Trajectory(0)
        super().__init__(*args, **options)
        if self.args.dataloader_drop_last:
            raise UserError(
                "dataloader_drop_last must be False to record the trajectory, because the last examples of an epoch would have "
                "no prediction, got True."
            )
        self._begin()

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor | tuple[Tensor, Any]:
        """The loss of ``Trainer``; in training its logits are recorded, as they were before a loss adjusts them in place."""
        if not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch=num_items_in_batch)
        given, y, index = taken_apart(inputs)
        copies: list[tuple[Tensor, Tensor]] = []

        def copy(module: nn.Module, args: Any, outputs: Any) -> None:
            if isinstance(logits := logits_in(outputs), Tensor):
                copies.append((logits, logits.detach().clone()))

        hook = model.register_forward_hook(copy)
        try:
            loss, outputs = super().compute_loss(model, given, True, num_items_in_batch=num_items_in_batch)
        finally:
            hook.remove()
        made = logits_of(outputs)
        self.trajectory.see(index, next((copied for logits, copied in copies if logits is made), made), y)
        return (loss, outputs) if return_outputs else loss

    def _begin(self) -> None:
        self.trajectory = Trajectory(self._n_examples())

    def _end_epoch(self) -> None:
        self.trajectory.gather()
        self.trajectory.end_epoch()

    def _ended_epochs(self) -> int:
        return self.trajectory.epochs

    def _save_state(self, folder: Path) -> None:
        self.trajectory.gather()  # one file for all processes, also for another number of them
        if self.args.should_save:
            write_state(folder / _FILE, self.trajectory.state_dict())

    def _load(self, folder: Path) -> None:
        self.trajectory.load_state_dict(read_state(folder / _FILE))
