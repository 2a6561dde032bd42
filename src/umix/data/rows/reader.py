"""From new data to the inputs of a trained net, and what people should know of them."""

import abc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import torch
from torch import Tensor

from umix.core.words import counted
from umix.data.inputs import Inputs
from umix.data.rows.role_columns import check_id
from umix.data.task import Transform
from umix.errors import UserError

if TYPE_CHECKING:
    import polars


_SHOWN = 3  # values in a sentence


@final
@dataclass(frozen=True)
class Note:
    """A sentence about a block of new data; {count}, {of}, {share} and {values} in ``text`` stand for the other fields.

    {n_values} is the count with its noun, as in "1 value".

    >>> str(Note("{count} of {of} values are new: {values}.", count=2, of=9, values=("b", "a")))
    "2 of 9 values are new: 'a', 'b'."
    """

    text: str
    count: int = 0
    of: int = 0
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        values = ", ".join(map(repr, sorted(self.values)[:_SHOWN])) + (", …" if len(self.values) > _SHOWN else "")
        known = {"count": str(self.count), "of": str(self.of), "share": f"{self.count / max(1, self.of):.1%}"}
        known["n_values"] = counted(self.count, "value")
        text = self.text
        for name, value in {**known, "values": values}.items():
            text = text.replace(f"{{{name}}}", value)
        return text


@final
class NoteSum:
    """The notes of all blocks: those with the same text are added up. It takes the same memory for any number of blocks."""

    def __init__(self) -> None:
        self._notes: dict[str, Note] = {}

    def add(self, notes: Iterable[Note | str]) -> None:
        """Add the notes of a block; a text is a note that is said once."""
        for one in notes:
            note = Note(one) if isinstance(one, str) else one
            if known := self._notes.get(note.text):
                values = tuple(sorted({*known.values, *note.values})[: _SHOWN + 1])
                note = replace(known, count=known.count + note.count, of=known.of + note.of, values=values)
            self._notes[note.text] = note

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences, in the order in which their notes first came; 0 of some is not said."""
        return tuple(str(note) for note in self._notes.values() if note.count or not note.of)


@final
@dataclass(frozen=True, eq=False)
class NewInputs:
    """Inputs ``x`` [n, ...] to be predicted, stored as in training; ``transform`` turns a batch of them into inputs of the net.

    ``ids`` are columns that are copied into the output (the id, the file's path); ``notes`` are for people.
    """

    x: Tensor | Inputs
    transform: Transform | None = None
    ids: "dict[str, polars.Series]" = field(default_factory=dict)
    notes: tuple[Note | str, ...] = ()

    def __post_init__(self) -> None:
        for column in self.ids.values():
            check_id(column)

    def ready(self) -> Tensor:
        """All inputs as the net takes them, [n, ...]."""
        x = stacked(self.x)
        return x if self.transform is None else self.transform(x)


def stacked(x: Tensor | Inputs) -> Tensor:
    """All examples, as they are stored, in one tensor."""
    return x if isinstance(x, Tensor) else x.take(torch.arange(len(x)))


class Reader(abc.ABC):
    """The fitted preprocessing of a run, saved with it, so that new data are transformed as in training.

    A kind of data that people bring has one of these as its task's ``preprocessing`` and a line in ``data/registry.py``.
    """

    @abc.abstractmethod
    def save(self, directory: Path) -> None:
        """Write everything into ``directory``, a run's folder, without pickle."""

    @classmethod
    @abc.abstractmethod
    def load(cls, directory: Path) -> Self:
        """What ``save`` wrote; nothing in it is ever executed."""

    @property
    @abc.abstractmethod
    def input_shape(self) -> tuple[int, ...] | None:
        """The shape of one input of the net; None where inputs differ in length."""

    @abc.abstractmethod
    def inputs(self, new: Any) -> NewInputs:
        """The inputs in ``new``, a path or the same data in memory; raises where they cannot be used."""

    def frames(self, new: Any) -> "Iterator[polars.DataFrame]":
        """The rows of a table as they are, a block after the other; readers of other data have none."""
        raise UserError(
            "Standard input or an open file must hold a table, but this run was not trained on one; name a file or a folder."
        )

    def frame(self, new: Any) -> "polars.DataFrame":
        """All rows of a table as they are, read as ``blocks`` reads them."""
        import polars

        return polars.concat(list(self.frames(new)), how="vertical_relaxed")

    def blocks(self, new: Any) -> Iterator[NewInputs]:
        """The inputs in ``new``, a block after the other, so that a long table need not fit into memory.

        Readers of tables also take an open file with CSV. Others have one block, whose inputs may be lazy.
        """
        if hasattr(new, "read"):
            yield from map(self.inputs, self.frames(new))
            return
        yield self.inputs(new)
