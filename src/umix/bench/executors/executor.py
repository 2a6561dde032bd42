"""What executors have in common: events of running runs, outcomes of finished ones, and one run after the other.

``Serial`` executes runs in this process; ``processes`` and ``ray`` execute the same function elsewhere.
"""

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, final

from umix.bench.runs.execute import execute
from umix.bench.runs.failure import Failure
from umix.bench.runs.lock import Busy
from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec

_PAUSE = 0.2  # seconds between two events about steps, so that events cost no noticeable time


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
    record: RunRecord | None = None
    failure: Failure | None = None

    @property
    def busy(self) -> bool:
        return self.record is None and self.failure is None


OnEvent = Callable[[Event], None]


class Executor(Protocol):
    """A way to execute runs."""

    @property
    def workers(self) -> int:
        """How many runs are executed at the same time; an estimate on a cluster."""

    def run(self, specs: Sequence[RunSpec], paths: RunPaths, on_event: OnEvent) -> Generator[Outcome, None, None]:
        """The outcome of every spec, in the order in which the runs end.

        ``on_event`` is called with the events of running runs.
        """


@final
class Serial:
    """One run at a time; runs that another process is executing come last, when they have probably finished."""

    workers = 1

    def run(self, specs: Sequence[RunSpec], paths: RunPaths, on_event: OnEvent) -> Generator[Outcome, None, None]:
        waiting = deque((spec, False) for spec in specs)
        while waiting:
            spec, wait = waiting.popleft()
            outcome = execute_one(spec, paths, on_event, wait=wait)
            if outcome.busy:
                waiting.append((spec, True))
            else:
                yield outcome


def execute_one(spec: RunSpec, paths: RunPaths, on_event: OnEvent, *, wait: bool) -> Outcome:
    """The outcome of executing ``spec``.

    An exception is saved in the run's folder as its failure. If another process is executing the
    run, ``wait`` for it, else return a busy outcome.
    """
    start = time.perf_counter()
    try:
        task = paths.load_cached(spec)
        record = execute(spec, paths=paths, task=task, progress=EventProgress(spec.key, on_event), wait=wait)
    except Busy:
        return Outcome(spec.key)
    except Exception as error:
        return Outcome(spec.key, time.perf_counter() - start, failure=save_failure(spec, paths, error))
    return Outcome(spec.key, time.perf_counter() - start, record=record)


def save_failure(spec: RunSpec, paths: RunPaths, error: BaseException) -> Failure:
    """Write ``error`` into the run's folder as the failure of ``spec``, and return that failure."""
    failure = Failure.of(error, task=spec.task, method=spec.method, seed=spec.seed, key=spec.key)
    failure.save(paths.out, spec.directory_name)
    return failure


@final
class EventProgress:
    """Sends the progress of a run as events, a few per second."""

    def __init__(self, key: str, on_event: OnEvent) -> None:
        self._key = key
        self._send = on_event
        self._worker = f"{socket.gethostname()}:{os.getpid()}"
        self._stage, self._done, self._total, self._last_event = "", 0, 0, 0.0
        self.began = time.perf_counter()

    def start(self, stage: str, *, total: int, done: int) -> None:
        self._stage, self._done, self._total, self._last_event = stage, done, total, time.monotonic()
        self._send(Event(self._key, "start", stage, done, total, worker=self._worker))

    def advance(self, steps: int) -> None:
        self._done += steps
        now = time.monotonic()
        if now - self._last_event >= _PAUSE:
            self._last_event = now
            self._send(Event(self._key, "steps", self._stage, self._done, self._total, worker=self._worker))

    def finish(self) -> None: ...

    def note(self, message: str) -> None:
        self._send(Event(self._key, "note", message=message, worker=self._worker))
