"""A task: the splits and what is known of them."""

import abc
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from umix.data.checks.problems import FolderCheck
from umix.data.groups import Groups
from umix.data.inputs import Inputs
from umix.settings import Settings


class Preprocessing(Protocol):
    """A fitted transformation of raw data into inputs, saved with a run so that new data are transformed the same way."""

    def save(self, directory: Path) -> None: ...


#: From a batch of stored inputs to the inputs of the net, in evaluation.
Transform = Callable[[Tensor], Tensor]
#: The same in training; random numbers come from the generator.
Augment = Callable[[Tensor, np.random.Generator], Tensor]


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Examples ``x``, labels ``y`` [n] and groups of one split.

    Args:
        x: inputs, a tensor [n, ...] or an object that reads them batch by batch.
        y: labels, int64 [n].
        groups: the groups that are reported.
        training_groups: disjoint groups to train with, where ``groups`` overlap.
        transform: turns a batch of ``x`` into the inputs of a net, where it is stored in another form; its repr tells its settings.
        augment: does the same in training, with random numbers.
        weight: what each example counts for in training, [n], of mean 1; None where all count the same. Rates never use it.
        origin: the row of each example in the file it came from, [n], for people to look it up.

    """

    x: Tensor | Inputs
    y: Tensor
    groups: Groups
    training_groups: Groups | None = None
    transform: Transform | None = None
    augment: Augment | None = None
    weight: Tensor | None = None
    origin: np.ndarray | None = None

    def __post_init__(self) -> None:
        lengths = {"x": len(self.x), "y": len(self.y), "groups": len(self.groups.member)}
        if self.training_groups is not None:
            lengths["training_groups"] = len(self.training_groups.member)
        if self.weight is not None:
            lengths["weight"] = len(self.weight)
        if self.origin is not None:
            lengths["origin"] = len(self.origin)
        if len(set(lengths.values())) != 1:
            raise ValueError(f"Split fields must be about the same examples, got lengths {lengths}.")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"<Split of {len(self):,} examples, {len(self.groups.names)} groups>"

    @property
    def example(self) -> Tensor:
        """The first input as nets get it, for its shape and type."""
        x = self.x[0]
        return x if self.transform is None else self.transform(x[None])[0]

    @property
    def member(self) -> Tensor:
        """Group membership, bool [n, groups]."""
        return self.groups.member

    def class_sizes(self, classes: tuple[str, ...]) -> dict[str, int]:
        """How many examples each of ``classes`` has."""
        return dict(zip(classes, self.y.bincount(minlength=len(classes)).tolist(), strict=True))

    def group_sizes(self, classes: tuple[str, ...]) -> dict[str, int]:
        """How many examples each group has; each of ``classes`` where there are no groups."""
        names = self.groups.names
        return dict(zip(names, self.groups.sizes.tolist(), strict=True)) if names else self.class_sizes(classes)

    @cached_property
    def member_float(self) -> Tensor:
        """Membership as the float32 matrix that counting multiplies with, converted once."""
        return self.groups.member.float()

    @property
    def attribute(self) -> Tensor | None:
        """The attribute of each example, int64 [n], where the groups it is trained in are label×attribute cells."""
        return (self.training_groups or self.groups).attribute

    @property
    def group(self) -> Tensor:
        """The one group each example is trained in, int64 [n]; raises where groups overlap and none are declared for training."""
        return (self.training_groups or self.groups).ids

    @property
    def some_groups(self) -> Tensor:
        """As ``group``, but -1 where it is not known; raises where groups overlap and none are declared for training."""
        groups = self.training_groups or self.groups
        return groups.ids if groups.overlap else groups.codes

    @cached_property
    def fingerprint(self) -> str:
        """A hash of inputs, labels and weights, in order.

        Groups are left out, so that stages which ignore groups are shared across groupings.
        """
        digest = hashlib.sha256()
        if isinstance(self.x, Tensor):
            digest.update(f"{self.x.dtype}{list(self.x.shape)}".encode())
            for part in _rows(self.x):
                digest.update(part.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().data)
        else:
            digest.update(self.x.fingerprint.encode())
        digest.update(self.y.contiguous().cpu().numpy().data)
        if self.transform is not None or self.augment is not None:
            digest.update(repr((self.transform, self.augment)).encode())
        if self.weight is not None:
            digest.update(b"weight" + self.weight.contiguous().cpu().numpy().tobytes())
        return digest.hexdigest()[:32]

    def to(self, device: torch.device) -> "Split":
        """This split on ``device``; inputs that are no tensor move batch by batch."""
        if self.y.device == device:
            return self
        x = self.x.to(device) if isinstance(self.x, Tensor) else self.x
        training = self.training_groups and self.training_groups.to(device)
        weight = None if self.weight is None else self.weight.to(device)
        return replace(
            self, x=x, y=self.y.to(device), groups=self.groups.to(device), training_groups=training, weight=weight
        )

    def rows(self, index: Tensor) -> "Split":
        """The examples ``index`` as a split of their own."""
        training = self.training_groups and self.training_groups.rows(index)
        x = self.x[index] if isinstance(self.x, Tensor) else self.x.rows(index)
        groups = self.groups.rows(index)
        weight = None if self.weight is None else self.weight[index]
        origin = None if self.origin is None else self.origin[index.cpu().numpy()]
        return replace(
            self, x=x, y=self.y[index], groups=groups, training_groups=training, weight=weight, origin=origin
        )


def _rows(x: Tensor, n_bytes: int = 2**24) -> Iterator[Tensor]:
    step = max(1, n_bytes // max(1, x[0].numel() * x.element_size())) if len(x) else 1
    return iter(x.split(step)) if len(x) else iter(())


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Splits ``train``, ``val`` and ``test`` with one set of classes and one set of groups, which belong to the task."""

    name: str  # what tables and folders call it
    splits: Mapping[str, Split]  # train, val and test
    classes: tuple[str, ...]  # names of the classes 0, 1, …
    preprocessing: Preprocessing | None = None  # how raw data become inputs, saved with a run
    notes: tuple[str, ...] = ()  # what people should know about how the data were read
    kind: str = ""  # kind of data whose presets apply: table, arrays, images, text or the name of a benchmark
    source: "TaskSource | None" = None  # what loads the same task again, if it came from files or is embedded
    categories: tuple[int, ...] = ()  # category values of each input column, 0 for a number; empty: no input is a code

    def __post_init__(self) -> None:
        missing = {"train", "val", "test"} - set(self.splits)
        if missing:
            raise ValueError(f"Task.splits must hold train, val and test, but {', '.join(sorted(missing))} is missing.")
        if len({split.groups.names for split in self.splits.values()}) != 1:
            raise ValueError(
                "Task.splits must share one set of group names: the groups belong to the task, not to a split."
            )

        x = self.splits["train"].x
        if self.categories and isinstance(x, Tensor) and len(self.categories) != x.shape[1]:
            raise ValueError(
                f"Task.categories must have a number for each of {x.shape[1]} inputs, got {self.categories}."
            )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(split):,}" for name, split in self.splits.items())
        return f"<Task {self.name}: {sizes}; {self.n_classes} classes, {len(self.groups)} groups>"

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the evaluation groups."""
        return self.splits["train"].groups.names

    @property
    def training_groups(self) -> tuple[str, ...]:
        """Names of the disjoint groups that group-aware methods train with."""
        train = self.splits["train"]
        return (train.training_groups or train.groups).names

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything in the task."""
        digest = hashlib.sha256(repr((self.classes, self.groups, self.training_groups)).encode())
        if self.categories:
            digest.update(repr(self.categories).encode())
        for name in sorted(self.splits):
            split = self.splits[name]
            digest.update(f"{name}{split.fingerprint}".encode())
            for groups in (split.groups, split.training_groups):
                digest.update(groups.member.contiguous().cpu().numpy().data if groups else b"none")
                if groups is not None and groups.column_codes is not None:
                    digest.update(repr(groups.column_values).encode())
                    digest.update(groups.column_codes.contiguous().cpu().numpy().data)
        return digest.hexdigest()[:32]

    @cached_property
    def rows_fingerprint(self) -> str:
        """A hash of which rows are in which split and of what is known of them, whatever form their inputs have."""
        digest = hashlib.sha256(repr((self.classes, self.groups, self.training_groups)).encode())
        for name in sorted(self.splits):
            split = self.splits[name]
            training = None if split.training_groups is None else split.training_groups.member
            for tensor in (split.y, split.groups.member, training, split.weight):
                digest.update(b"none" if tensor is None else tensor.cpu().numpy().tobytes())
            digest.update(b"none" if split.origin is None else split.origin.tobytes())
        return digest.hexdigest()[:32]


class TaskSource(Settings, abc.ABC):
    """Frozen options and how to load the task they describe; a new data set is a subclass in its own file."""

    part: ClassVar[str] = "task"
    name: ClassVar[str]
    default_net: ClassVar[str] = "mlp"  # the net if neither a preset of this task nor the user names one
    preset_kind: ClassVar[str] = "arrays"  # table, arrays, images or text: its presets are used if the task has none

    @classmethod
    def with_defaults(cls, options: dict[str, Any], net: str) -> dict[str, Any]:
        """``options`` with defaults that suit the net called ``net``, such as its tokenizer or its image size."""
        return options

    @property
    def title(self) -> str:
        """What people call these data; the names of their runs' folders begin with it."""
        return self.name

    @property
    def content(self) -> str | None:
        """A hash of the files that the options name, which is part of a run's key; None where they name no files.

        Constructing a source reads no file; the files are read when ``content`` is first asked for.
        """
        return None

    def as_json(self) -> dict[str, Any]:
        """Everything that decides the task: its name, its options, and what its files hold, but not where they lie."""
        content = self.content
        known = {} if content is None else {"content": content}
        return {"name": self.name, **self.model_dump(mode="json"), **known}

    def check_files(self) -> None:
        """Raise before anything is trained where a file that the options name is missing or does not fit them."""
        return

    @abc.abstractmethod
    def load(self, root: Path | None) -> Task:
        """The task, read from the local folder ``root`` where it has files; nothing is ever downloaded."""


class CheckedSource(TaskSource, abc.ABC):
    """A source whose folder ``umix doctor`` can check."""

    @abc.abstractmethod
    def check(self, root: Path | None) -> FolderCheck:
        """The contents of the folder and its problems, which are collected instead of raised."""
