"""A Trainer whose training batches know their examples, and whose checkpoints hold what was learnt of them."""

import abc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from umix.adapters.loop.indexed_dataset import INDEX, IndexedDataset
from umix.adapters.transformers.group_metrics import GroupMetrics
from umix.errors import UserError


class IndexedTrainer(Trainer, abc.ABC):
    """What both stages share. A Trainer of one's own is combined with one: ``class Mine(RecordingTrainer, MyTrainer)``.

    The training set is read through ``IndexedDataset``. The data collator is called as ever: the index is taken out of the
    examples before and put into the batch after it, and taken out of the batch before the model sees it.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._n_examples()  # a stream is refused before anything is trained
        by_length = "group_by_length"  # the name of a strategy in transformers 5, of a switch before
        sampled_by_length = getattr(self.args, "train_sampling_strategy", "") == by_length
        if isinstance(self.compute_metrics, GroupMetrics) and (
            sampled_by_length or getattr(self.args, by_length, False)
        ):
            raise UserError(
                f"GroupMetrics must be used with an evaluation in the order of its set, but {by_length} evaluates by length; "
                "choose another train_sampling_strategy."
            )
        self.add_callback(_Epochs(self._end_epoch, self._ended_epochs))

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The loader of ``Trainer``, whose batches have the entry ``"index"``."""
        if self.train_dataset is None:
            return super().get_train_dataloader()
        self._set_signature_columns_if_needed()
        given: tuple[Any, ...] = (self.train_dataset, self.data_collator, self._signature_columns)
        self.train_dataset, self.data_collator = _indexed(given[0]), _Collate(given[1])
        # Without it in this list, remove_unused_columns would remove the index.
        self._signature_columns = [*given[2], INDEX]  # type: ignore[assignment]  # None until it is first asked for
        try:
            return super().get_train_dataloader()
        finally:
            self.train_dataset, self.data_collator, self._signature_columns = given

    def _n_examples(self) -> int:
        return 0 if self.train_dataset is None else len(_indexed(self.train_dataset))

    def _inner_training_loop(self, *args: Any, **options: Any) -> Any:
        checkpoint = options.get("resume_from_checkpoint")
        self._begin()
        if checkpoint is not None:
            self._load(Path(checkpoint))
        return super()._inner_training_loop(*args, **options)

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        self._save_state(Path(output_dir))

    @abc.abstractmethod
    def _begin(self) -> None:
        """Forget what was learnt in an earlier training."""

    @abc.abstractmethod
    def _end_epoch(self) -> None: ...

    @abc.abstractmethod
    def _ended_epochs(self) -> int: ...

    @abc.abstractmethod
    def _save_state(self, folder: Path) -> None:
        """Write what was learnt so far to the ``folder`` of a checkpoint; called in every process."""

    @abc.abstractmethod
    def _load(self, folder: Path) -> None:
        """Go on from the checkpoint in ``folder``."""


def taken_apart(inputs: Mapping[str, Any]) -> tuple[dict[str, Any], Tensor, Tensor]:
    """What the model is called with, the classes [batch] and the index [batch] of a training batch."""
    known = dict(inputs)
    index, y = known.pop(INDEX, None), known.get("labels")
    if index is None:
        raise UserError(
            'A training batch must have the entry "index", but it has only '
            f"{', '.join(map(str, inputs))}; let get_train_dataloader return the loader of Trainer."
        )
    if not isinstance(y, Tensor) or y.dim() != 1 or y.is_floating_point():
        got = f"{list(y.shape)} of {y.dtype}" if isinstance(y, Tensor) else "none"
        raise UserError(f"The labels of a batch must be one class per example, whole numbers [batch], got {got}.")
    return known, y, index


def logits_of(outputs: Any) -> Tensor:
    """The logits [batch, classes] among the outputs of a model: the entry of this name, or the first of two dimensions."""
    found = logits_in(outputs)
    if not isinstance(found, Tensor) or found.dim() != 2:
        raise UserError(
            "The model must give logits [batch, classes] as transformers' models for classification do, got "
            f"{list(found.shape) if isinstance(found, Tensor) else 'none'}."
        )
    return found


def logits_in(outputs: Any) -> Any:
    """What ``logits_of`` takes for logits, whatever it is; None where there are none."""
    if isinstance(outputs, Mapping):
        return outputs.get("logits")
    several = (outputs,) if isinstance(outputs, Tensor) else outputs
    return next((part for part in several if isinstance(part, Tensor) and part.dim() == 2), None)


def _indexed(dataset: Any) -> IndexedDataset:
    return dataset if isinstance(dataset, IndexedDataset) else IndexedDataset(dataset)


@final
class _Collate:
    """``collate`` on the examples without their index, which the batch then gets; a class, so that workers can be started."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, examples: Sequence[Any]) -> dict[str, Any]:
        if isinstance(examples[0], Mapping):
            index = [example[INDEX] for example in examples]
            given: list[Any] = [
                {name: value for name, value in example.items() if name != INDEX} for example in examples
            ]
        else:
            index, given = [example[-1] for example in examples], [example[:-1] for example in examples]
        return {**self.collate(given), INDEX: torch.tensor(index)}


@final
class _Epochs(TrainerCallback):
    """Calls ``end`` after every epoch, but not after one in which training ends early: it may be resumed."""

    def __init__(self, end: Callable[[], None], ended: Callable[[], int]) -> None:
        self.end, self.ended = end, ended

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self.ended() < int(state.epoch or 0):  # resumed from a checkpoint of the last step of an epoch
            self.end()

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if not (control.should_training_stop and (state.epoch or 0) % 1):
            self.end()
