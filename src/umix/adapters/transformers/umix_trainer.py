"""The second stage of UMIX: a Trainer whose loss is that of weighted, mixed examples.

trainer = UMIXTrainer(model=model, args=args, train_dataset=train, weights=weights, sigma=0.5, alpha=0.5)
trainer.train()
"""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import Trainer

from umix.adapters.loop.mixed_pairs import Loss, MixedPairs
from umix.adapters.loop.weighted_mixup import WeightedMixup
from umix.adapters.transformers.classification_head import classification_head
from umix.adapters.transformers.indexed_trainer import IndexedTrainer, logits_of, taken_apart
from umix.adapters.transformers.state_file import read_state, write_state
from umix.errors import UserError


class UMIXTrainer(IndexedTrainer):
    """A ``transformers.Trainer`` that trains with ``WeightedMixup(weights, sigma=…, alpha=…)``, seeded by ``args.seed``.

    ``weights`` [n] belong to the examples of ``train_dataset`` in its order; ``RecordingTrainer.trajectory`` gives them. By
    default the features are mixed: what enters the head of the model, which is found for transformers' models for classification,
    else is given as ``head``, a module or its name. ``mixing`` ``input`` or ``cutmix`` mixes images instead.
    ``loss(logits, labels)`` gives a loss per example, [batch]; by default the cross-entropy with ``args.label_smoothing_factor``.

    Examples are mixed within a batch that goes through the model at once. With gradient accumulation and in several processes,
    the loss of a step is the mean over all its examples. ``eval_loss`` is the same loss without weights and mixing.
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

    def _load(self, folder: Path) -> None:
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
