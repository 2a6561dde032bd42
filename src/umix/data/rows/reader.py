"""What a trained net needs of data that were not there in training, and who makes it of them."""

import abc
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from torch import Tensor

from umix.data.lazy import Lazy
from umix.data.task import Transform

if TYPE_CHECKING:
    import polars


@final
@dataclass(frozen=True, eq=False)
class NewInputs:
    """Inputs ``x`` [n, ...] to be predicted, as stored in training; ``transform`` makes of a batch of them what nets take.

    ``ids`` are columns that are carried into the output (the id, the file's path), ``notes`` what people should know.
    """

    x: Tensor | Lazy
    transform: Transform | None = None
    ids: "dict[str, polars.Series]" = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Reader(abc.ABC):
    """What a run learned about its own data, saved with it: new data of the same kind are treated alike.

    A kind of data that people bring has one of these as its task's ``preprocessing`` and a line in ``data/readers.py``.
    """

    @abc.abstractmethod
    def save(self, directory: Path) -> None:
        """Write everything into ``directory``, a run's folder, without pickle."""

    @classmethod
    @abc.abstractmethod
    def load(cls, directory: Path) -> Self:
        """What ``save`` wrote; nothing in it is ever executed."""

    @abc.abstractmethod
    def inputs(self, new: Any) -> NewInputs:
        """The inputs in ``new`` (a path, or the same in memory); what cannot be used is refused in one sentence."""
