"""What a worker process can be given. Imports no torch until it works."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, final

from umix.bench.executors.outcome import OnEvent, Outcome
from umix.bench.runs.places import Places

if TYPE_CHECKING:
    from umix.bench.spec.run_spec import RunSpec


class Ended(Protocol):
    """How a job ended; where another process is at it, it is ``busy`` and will be tried again."""

    @property
    def busy(self) -> bool: ...


_Ended_co = TypeVar("_Ended_co", bound=Ended, covariant=True)


class Job(Protocol[_Ended_co]):
    """It travels by pickle, tells of events on its way, and says how it ended."""

    @property
    def key(self) -> str: ...

    def work(self, tell: OnEvent, *, wait: bool) -> _Ended_co:
        """Do it; where another process is at it, ``wait`` for that."""

    def died(self, error: Exception) -> _Ended_co:
        """How it ended where its workers died."""


@final
@dataclass(frozen=True, eq=False)
class RunJob:
    """The execution of one run."""

    spec: "RunSpec"
    places: Places

    @property
    def key(self) -> str:
        return self.spec.key

    def work(self, tell: OnEvent, *, wait: bool) -> Outcome:
        from umix.bench.executors.attempt import attempt

        return attempt(self.spec, self.places, tell, wait=wait)

    def died(self, error: Exception) -> Outcome:
        from umix.bench.executors.attempt import keep

        return Outcome(self.key, failure=keep(self.spec, self.places, error))
