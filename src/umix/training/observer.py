"""What looks at a net after every epoch of a fit."""

from collections.abc import Mapping
from typing import Protocol, final

from torch import Tensor

from umix.nets.net import Net


class Observer(Protocol):
    """Is called with the net after every epoch.

    There are History (final fits), Recorder (trajectories), RaceCounts (races), Unobserved, and observers of methods' own stages.
    """

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        """Restore the observer as it was after ``epochs`` epochs.

        ``kept`` is what ``tensors`` returned then.
        """

    def observe(self, net: Net, epoch: int) -> None:
        """Evaluate ``net`` at the end of ``epoch``."""

    def write(self) -> None:
        """Write the files that a checkpoint of the epochs so far needs beside it; it is written next."""

    def tensors(self) -> Mapping[str, Tensor]:
        """What a checkpoint must contain of this observer."""


@final
class Unobserved:
    """The observer that ignores every epoch."""

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None: ...

    def observe(self, net: Net, epoch: int) -> None: ...

    def write(self) -> None: ...

    def tensors(self) -> dict[str, Tensor]:
        return {}
