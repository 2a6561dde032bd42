"""How often a fit writes its checkpoint."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class CheckpointPace:
    """How long a fit trains after a checkpoint until it writes the next: ``times`` as long as the last one took to write.

    That is at least ``least`` seconds, because a short fit is soon repeated, and at most ``most``, because nobody wants to repeat
    more. An epoch that takes longer ends with a checkpoint. So does the last epoch of a fit.
    """

    least: float = 1.0
    times: float = 50.0
    most: float = 300.0

    def pause(self, seconds: float) -> float:
        """How long to train after a checkpoint that took so many ``seconds``.

        >>> [CheckpointPace().pause(seconds) for seconds in (0.004, 0.2, 60.0)]
        [1.0, 10.0, 300.0]
        """
        return min(self.most, max(self.least, self.times * seconds))


#: Two percent of the time at most.
USUAL = CheckpointPace()
#: A checkpoint after every epoch.
EVERY_EPOCH = CheckpointPace(least=0.0, times=0.0, most=0.0)


@final
class CheckpointTimer:
    """Says when the next checkpoint of a fit is due; ``clock`` gives seconds."""

    def __init__(self, pace: CheckpointPace, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._pace = pace
        self._clock = clock
        self._written, self._took = clock(), 0.0

    @property
    def is_due(self) -> bool:
        return self._clock() - self._written >= self._pace.pause(self._took)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside the block a checkpoint is written, whose time decides when the next is due."""
        began = self._clock()
        yield
        self._written = self._clock()
        self._took = self._written - began
