"""What executors report: events of runs under way, and outcomes. Imports no torch."""

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
    """A run under way: ``done`` of ``total`` steps of ``stage``, or a ``message``; ``worker`` is host:pid."""

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
    """How a run ended: with a record or a failure; with neither another process is executing it."""

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
        """How many runs are executed at once, as far as that is known."""

    def run(self, specs: "Sequence[RunSpec]", places: Places, on_event: OnEvent) -> Generator[Outcome, None, None]:
        """The outcome of every one of ``specs``, as they end; ``on_event`` hears of those under way."""
