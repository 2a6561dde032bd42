"""What executors report: events of running runs, and outcomes of finished ones. Imports no torch."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, final

from umix.bench.runs.places import Places

if TYPE_CHECKING:
    from umix.bench.runs.failure import Failure
    from umix.bench.runs.record import RunRecord
    from umix.bench.spec.run_spec import RunSpec


@final
@dataclass(frozen=True)
class Event:
    """Progress of a running run: ``done`` of ``total`` steps of ``stage``, or a ``message``; ``worker`` is host:pid."""

    key: str
    kind: Literal["start", "steps", "note"]
    stage: str = ""
    done: int = 0
    total: int = 0
    message: str = ""
    worker: str = ""


@final
@dataclass(frozen=True)
class Outcome:
    """How a run ended: a record or a failure. If both are None, another process is executing the run."""

    key: str
    seconds: float = 0.0
    record: "RunRecord | None" = None
    failure: "Failure | None" = None

    @property
    def busy(self) -> bool:
        return self.record is None and self.failure is None


OnEvent = Callable[[Event], None]


class Executor(Protocol):
    """A way to execute runs."""

    @property
    def workers(self) -> int:
        """How many runs are executed at the same time; an estimate on a cluster."""

    def run(self, specs: "Sequence[RunSpec]", places: Places, on_event: OnEvent) -> Generator[Outcome, None, None]:
        """The outcome of every spec, in the order in which the runs end.

        ``on_event`` is called with the events of running runs.
        """
