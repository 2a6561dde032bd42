"""A Trainer whose training batches know their examples, and whose checkpoints hold what was learnt of them."""

import abc
import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, get_last_checkpoint

from umix.adapters.group_counts import GroupMetrics
from umix.adapters.indexed_dataset import INDEX, IndexedDataset
from umix.errors import UserError
from umix.store import read_tensors, write_tensors

_KIND = "trainer state"


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
        self._checkpoint: Path | None = None
        self.add_callback(_Progress(self))

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **options: Any) -> Any:
        """Train as ``Trainer`` does; what was learnt of the examples is resumed from the checkpoint as well."""
        if resume_from_checkpoint is True:
            folder = get_last_checkpoint(str(self.args.output_dir))
        else:
            folder = resume_from_checkpoint or None
        self._checkpoint = None if folder is None else Path(folder)
        return super().train(resume_from_checkpoint, *args, **options)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The loader of ``Trainer``, whose batches have the entry ``"index"``."""
        if self.train_dataset is None:
            return super().get_train_dataloader()
        dataset, collate, removes = self.train_dataset, self.data_collator, self.args.remove_unused_columns
        # Trainer would remove the index as well, so the collator removes the unused columns here.
        self.train_dataset, self.args.remove_unused_columns = _indexed(dataset), False
        self.data_collator = _Collate(collate, self._used_columns() if removes else None)
        try:
            return super().get_train_dataloader()
        finally:
            self.train_dataset, self.data_collator, self.args.remove_unused_columns = dataset, collate, removes

    def _used_columns(self) -> set[str]:
        """The columns that the model takes, and those of labels."""
        model: Any = self.model
        if hasattr(model, "get_base_model"):  # a model of PEFT takes any column and hands it on
            model = model.get_base_model()
        return {*inspect.signature(model.forward).parameters, "label", "label_ids", *self.label_names}

    def _n_examples(self) -> int:
        return 0 if self.train_dataset is None else len(_indexed(self.train_dataset))

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
    def _load_state(self, folder: Path) -> None:
        """Go on from the checkpoint in ``folder``."""


@final
class _Progress(TrainerCallback):
    """Tells a trainer when training begins, when an epoch ends and where a checkpoint was written."""

    def __init__(self, trainer: IndexedTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.trainer._begin()
        if self.trainer._checkpoint is not None:
            self.trainer._load_state(self.trainer._checkpoint)

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self.trainer._ended_epochs() < int(state.epoch or 0):  # resumed from a checkpoint of an epoch's last step
            self.trainer._end_epoch()

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if not (control.should_training_stop and (state.epoch or 0) % 1):  # one that was cut off may be resumed
            self.trainer._end_epoch()

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self.trainer._save_state(Path(str(args.output_dir)) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write ``state``, whose entries are tensors or values of JSON, to a checkpoint; trials of a search have none here."""
    if not path.parent.is_dir():
        return
    tensors = {name: value.cpu().contiguous() for name, value in state.items() if isinstance(value, Tensor)}
    rest = {name: value for name, value in state.items() if name not in tensors}
    write_tensors(path, tensors, {"kind": _KIND, "rest": json.dumps(rest)})


def read_state(path: Path) -> dict[str, Any]:
    """What ``write_state`` has written to ``path``."""
    if not path.is_file():
        raise UserError(
            f"The checkpoint {path.parent} must hold {path.name} to resume from it, but it does not; resume with the kind of "
            "trainer and the number of processes that wrote it, or train from the start."
        )
    tensors, metadata = read_tensors(path, kind=_KIND)
    return {**tensors, **json.loads(metadata["rest"])}


def taken_apart(inputs: Mapping[str, Any]) -> tuple[dict[str, Any], Tensor, Tensor]:
    """What the model is called with, the classes [batch] and the index [batch] of a training batch."""
    rest = dict(inputs)
    index, y = rest.pop(INDEX, None), rest.get("labels")
    if index is None:
        raise UserError(
            'A training batch must have the entry "index", but it has only '
            f"{', '.join(map(str, inputs))}; let get_train_dataloader return the loader of Trainer."
        )
    if not isinstance(y, Tensor) or y.dim() != 1 or y.is_floating_point():
        got = f"{list(y.shape)} of {y.dtype}" if isinstance(y, Tensor) else "none"
        raise UserError(f"The labels of a batch must be one class per example, whole numbers [batch], got {got}.")
    return rest, y, index


def logits_of(outputs: Any) -> Tensor:
    """The logits [batch, classes] among the outputs of a model: the entry of this name, or the first of two dimensions."""
    logits = logits_in(outputs)
    if not isinstance(logits, Tensor) or logits.dim() != 2:
        raise UserError(
            "The model must give logits [batch, classes] as transformers' models for classification do, got "
            f"{list(logits.shape) if isinstance(logits, Tensor) else 'none'}."
        )
    return logits


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
    """``collate`` on the ``columns`` of examples (None: all) without the index, which the batch then gets.

    A class, so that workers can be started.
    """

    def __init__(self, collate: Callable[[list[Any]], Any], columns: Collection[str] | None) -> None:
        self.collate, self.columns = collate, columns

    def __call__(self, examples: Sequence[Any]) -> dict[str, Any]:
        if isinstance(examples[0], Mapping):
            index = [example[INDEX] for example in examples]
            plain: list[Any] = [
                {name: value for name, value in example.items() if name != INDEX and self._is_used(name)}
                for example in examples
            ]
        else:
            index, plain = [example[-1] for example in examples], [example[:-1] for example in examples]
        return {**self.collate(plain), INDEX: torch.tensor(index)}

    def _is_used(self, name: str) -> bool:
        return self.columns is None or name in self.columns
