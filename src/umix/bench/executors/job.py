"""Jobs that worker processes execute. Torch is imported when a job runs, not with this module."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, final

from umix.bench.executors.outcome import OnEvent, Outcome
from umix.bench.runs.places import Places

if TYPE_CHECKING:
    from umix.bench.spec.run_spec import RunSpec


class JobOutcome(Protocol):
    """How a job ended; ``busy`` if another process is executing it, so that it must be tried again."""

    @property
    def busy(self) -> bool: ...


_JobOutcome_co = TypeVar("_JobOutcome_co", bound=JobOutcome, covariant=True)


class Job(Protocol[_JobOutcome_co]):
    """A picklable piece of work that reports events while it runs and returns its outcome."""

    @property
    def key(self) -> str: ...

    def run(self, on_event: OnEvent, *, wait: bool) -> _JobOutcome_co:
        """Execute the job; ``wait`` for another process that is executing it, else return a busy outcome."""

    def crashed(self, error: Exception) -> _JobOutcome_co:
        """The outcome of a job whose workers crashed with ``error``."""


@final
@dataclass(frozen=True, eq=False)
class RunJob:
    """The execution of one run."""

    spec: "RunSpec"
    places: Places

    @property
    def key(self) -> str:
        return self.spec.key

    def run(self, on_event: OnEvent, *, wait: bool) -> Outcome:
        from umix.bench.executors.execute_one import execute_one

        return execute_one(self.spec, self.places, on_event, wait=wait)

    def crashed(self, error: Exception) -> Outcome:
        from umix.bench.executors.execute_one import save_failure

        return Outcome(self.key, failure=save_failure(self.spec, self.places, error))
