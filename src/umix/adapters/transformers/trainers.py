"""The two stages of UMIX as Trainers of transformers.

first = RecordingTrainer(model=model, args=args, train_dataset=train)  # records which examples it gets wrong
first.train()
weights = first.trajectory.weights(eta=3)

second = UMIXTrainer(model=new_model, args=args, train_dataset=train, weights=weights, sigma=0.5, alpha=0.5)
second.train()  # with the loss of weighted, mixed examples
"""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import Trainer

from umix.adapters.transformers.indexed_trainer import (
    IndexedTrainer,
    logits_in,
    logits_of,
    read_state,
    taken_apart,
    write_state,
)
from umix.adapters.weighted_mixup import MixedPairs, WeightedMixup, named_part
from umix.core.mixing import Loss
from umix.errors import UserError
from umix.training.trajectory import Trajectory

_TRAJECTORY = "umix_trajectory.safetensors"
_HEADS = ("classifier", "score", "classification_head", "logits_proj", "fc")


class RecordingTrainer(IndexedTrainer):
    """A ``transformers.Trainer`` that also fills ``trajectory``; it trains as ever, with the same loss and random numbers.

    The predictions are those of the training pass. All epochs must visit all examples, so ``dataloader_drop_last`` is refused.

    Args:
        args: positional arguments of ``Trainer``.
        options: named arguments of ``Trainer``.

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
            write_state(folder / _TRAJECTORY, self.trajectory.state_dict())

    def _load_state(self, folder: Path) -> None:
        self.trajectory.load_state_dict(read_state(folder / _TRAJECTORY))


class UMIXTrainer(IndexedTrainer):
    """A ``transformers.Trainer`` that trains with ``WeightedMixup(weights, sigma=…, alpha=…)``, seeded by ``args.seed``.

    Examples are mixed within a batch that goes through the model at once. With gradient accumulation and in several processes,
    the loss of a step is the mean over all its examples. ``eval_loss`` is the same loss without weights and mixing.

    Args:
        args: positional arguments of ``Trainer``.
        weights: a weight for every example of ``train_dataset`` in its order, [n]; ``RecordingTrainer.trajectory`` gives them.
        sigma: probability of mixing a batch.
        alpha: λ ~ Beta(alpha, alpha) is the share of an example in its mixture.
        mixing: ``features`` mixes what enters the head of the model; ``input`` and ``cutmix`` mix images.
        per_example: draw λ, and whether to mix, for every example instead of once per batch.
        head: the module that makes the logits, or its name; found by itself in transformers' models for classification.
        loss: ``loss(logits, labels)`` gives a loss per example, [batch]; by default the cross-entropy with
            ``args.label_smoothing_factor``.
        options: named arguments of ``Trainer``.

    """

    def __init__(
        self,
        *args: Any,
        weights: Tensor,
        sigma: float = 0.5,
        alpha: float = 0.5,
        mixing: Literal["features", "input", "cutmix"] = "features",
        per_example: bool = False,
        head: nn.Module | str | None = None,
        loss: Loss | None = None,
        **options: Any,
    ) -> None:
        if mixing not in ("features", "input", "cutmix"):
            raise UserError(f"mixing must be 'features', 'input' or 'cutmix', got {mixing!r}.")
        super().__init__(*args, **options)
        self._require_a_loss_of_examples(loss)
        self._require_whole_batches()
        smoothing = self.args.label_smoothing_factor
        self._loss: Loss = loss or partial(cross_entropy, reduction="none", label_smoothing=smoothing)
        self._find_head = partial(classification_head, given=head) if mixing == "features" else lambda model: None
        self._make_mixup = partial(
            WeightedMixup,
            weights,
            sigma=sigma,
            alpha=alpha,
            mixing="input" if mixing == "features" else mixing,
            per_example=per_example,
            loss=self._loss if loss is not None or smoothing else None,
            seed=self.args.seed,
        )
        self._pairs: MixedPairs | None = None
        self.compute_loss_func = self._loss_of_step
        self._begin()
        if self.train_dataset is not None and len(weights) != self._n_examples():
            raise UserError(
                f"weights must have a number for each of the {self._n_examples()} training examples, got {len(weights)}."
            )

    def _require_a_loss_of_examples(self, loss: Loss | None) -> None:
        fix = "pass loss=, which gives the loss of every example, [batch]"
        if self.compute_loss_func is not None:
            raise UserError(
                f"compute_loss_func must be left out, because weights need more than its one number; {fix}."
            )
        if getattr(super().compute_loss, "__func__", None) is not Trainer.compute_loss:
            raise UserError(
                f"The Trainer that UMIXTrainer is combined with must not have a compute_loss of its own, but "
                f"{type(self).__name__} does; {fix}."
            )
        if loss is not None and self.args.label_smoothing_factor:
            raise UserError("label_smoothing_factor must be 0 where loss= is given; smooth the labels in that loss.")

    def _require_whole_batches(self) -> None:
        if self.args.n_gpu > 1:
            raise UserError(
                f"UMIXTrainer must see a batch on one device, but {self.args.n_gpu} GPUs would share it; start a process for each "
                "with torchrun."
            )
        if self.args.torch_compile:
            raise UserError(
                "torch_compile must be False with UMIXTrainer, because a compiled model does not let it mix features."
            )

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor | tuple[Tensor, Any]:
        """The loss of ``WeightedMixup``; in evaluation that of the batch as it is."""
        if not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch=num_items_in_batch)
        given, y, index = taken_apart(inputs)
        self._pairs = pairs = self.mixup.pairs(y, index)
        if self._head is None:
            name = _input_to_mix(given)
            given[name] = pairs.inputs(given[name])
        with nullcontext() if self._head is None else pairs.before(self._head):
            return super().compute_loss(model, given, return_outputs, num_items_in_batch=num_items_in_batch)

    def _loss_of_step(self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """The share of a batch in the mean loss of the ``num_items_in_batch`` examples of a step."""
        logits = logits_of(outputs).float()
        pairs, self._pairs = self._pairs, None
        loss = self._loss(logits, labels).mean() if pairs is None else pairs.loss(logits)
        return loss if num_items_in_batch is None else loss * (len(labels) / num_items_in_batch)

    def _begin(self) -> None:
        self.mixup = self._make_mixup()
        self._head = self._find_head(cast(nn.Module, self.model))  # model_init may have made a new model

    def _end_epoch(self) -> None:
        self.mixup.end_epoch()

    def _ended_epochs(self) -> int:
        return self.mixup.epoch

    def _save_state(self, folder: Path) -> None:
        write_state(self._file(folder), self.mixup.state_dict())

    def _load_state(self, folder: Path) -> None:
        self.mixup.load_state_dict(read_state(self._file(folder)))

    def _file(self, folder: Path) -> Path:
        """Each process has random numbers of its own."""
        return folder / f"umix_mixup_{self.args.process_index}.safetensors"


def _input_to_mix(given: dict[str, Any]) -> str:
    names = [name for name, part in given.items() if isinstance(part, Tensor) and part.is_floating_point()]
    if len(names) != 1:
        raise UserError(
            f"The inputs to be mixed must be one tensor of numbers to average, such as pixel_values, got {len(names)} among "
            f"{', '.join(given)}; choose mixing='features'."
        )
    return names[0]


def classification_head(model: nn.Module, given: nn.Module | str | None) -> nn.Module:
    """The head of ``model``: ``given``, itself or by its name, else that of transformers' models for classification.

    A model with a second head, for distillation, has no head to be found: its logits are the mean of both.
    """
    if isinstance(given, nn.Module):
        return given
    if given is not None:
        return named_part(model, given)
    children: dict[str, nn.Module] = dict(model.named_children())
    heads = [children[name] for name in _HEADS if name in children]
    if not heads or any("distill" in name for name in children):
        raise UserError(
            f"The model must have one head called {', '.join(_HEADS[:-1])} or {_HEADS[-1]}, but {type(model).__name__} has the "
            f"modules {', '.join(children)}; pass head=, the name of the module that makes the logits."
        )
    return heads[0]
