"""Jobs in processes of this machine: each has its threads to itself, takes one job after the other, and may die.

Every worker has a pipe of its own. A queue for all would be simpler, but a worker that is killed while it holds the queue's lock
would leave the others waiting for ever.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from umix.bench.executors.job import Ended, Job, RunJob
from umix.bench.executors.outcome import Event, OnEvent, Outcome
from umix.bench.runs.places import Places
from umix.errors import Setting, UserError

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

    from umix.bench.spec.run_spec import RunSpec

_Ended = TypeVar("_Ended", bound=Ended)
_ATTEMPTS = 2  # a worker may be killed for another's greed; twice is the run's own
_FORK_SERVER = sys.platform == "linux"  # elsewhere a process that has loaded libraries cannot fork safely, or at all
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class WorkerDied(RuntimeError):  # noqa: N818 — the name is what people read in failed.json
    """A worker process ended without saying how its run went."""


@final
@dataclass(frozen=True, eq=False)
class _Given(Generic[_Ended]):
    job: Job[_Ended]
    wait: bool = False
    attempt: int = 1


@final
@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    pipe: "Connection[_Given[Any], Any]"
    given: _Given[Any] | None = None

    def give(self, given: _Given[Any]) -> None:
        self.given = given
        with contextlib.suppress(OSError):  # a dead worker is noticed by its end of file
            self.pipe.send(given)

    def end(self) -> int | None:
        """End the process, whatever it does, and return its exit code."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()
        return self.process.exitcode


@final
class Processes:
    """``workers`` processes of ``threads`` threads each, which inherit no state of this one."""

    def __init__(self, workers: int, *, threads: int = 1) -> None:
        if workers < 1 or threads < 1:
            raise UserError(
                Setting("workers"), " and ", Setting("threads"), f" must be at least 1, got {workers} and {threads}."
            )
        self.workers = workers
        self._threads = threads
        self._staff: list[_Worker] = []

    def start(self) -> None:
        """Import what all workers need now: it takes seconds, in which there may be something else to do."""
        if _FORK_SERVER:
            from multiprocessing import forkserver

            _context()  # which tells the server what to import
            with _threads(self._threads):
                forkserver.ensure_running()
            return
        while len(self._staff) < self.workers:
            self._hire()

    def close(self) -> None:
        """End all workers, whatever they do."""
        while self._staff:
            self._staff.pop().end()

    def run(self, specs: "Sequence[RunSpec]", places: Places, on_event: OnEvent) -> Generator[Outcome, None, None]:
        return self.work([RunJob(spec, places) for spec in specs], on_event)

    def work(self, jobs: Sequence[Job[_Ended]], on_event: OnEvent) -> Generator[_Ended, None, None]:
        """How every one of ``jobs`` ended, as they end; ``on_event`` hears of those under way."""
        waiting = deque(_Given(job) for job in jobs)
        try:
            while waiting or any(worker.given for worker in self._staff):
                while waiting and (worker := self._free()) is not None:
                    worker.give(waiting.popleft())
                for pipe in wait([worker.pipe for worker in self._staff]):
                    worker = next(worker for worker in self._staff if worker.pipe is pipe)
                    try:
                        message = worker.pipe.recv()
                    except (EOFError, OSError):
                        self._staff.remove(worker)
                        yield from self._buried(worker, waiting, on_event)
                        continue
                    if isinstance(message, Event):
                        on_event(message)
                    elif worker.given is not None:
                        given, worker.given = worker.given, None
                        if message.busy:
                            waiting.append(replace(given, wait=True))
                        else:
                            yield message
        finally:
            self.close()

    def _free(self) -> _Worker | None:
        """A worker without a job, started if there may be one more; None if all are at work."""
        for worker in self._staff:
            if worker.given is None:
                return worker
        return self._hire() if len(self._staff) < self.workers else None

    def _hire(self) -> _Worker:
        context = _context()
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._threads), daemon=True, name="umix worker")
        with _threads(self._threads):
            process.start()
        theirs.close()  # so that the pipe ends when the worker does
        self._staff.append(_Worker(process, ours))
        return self._staff[-1]

    def _buried(
        self, worker: _Worker, waiting: deque[_Given[_Ended]], on_event: OnEvent
    ) -> Generator[_Ended, None, None]:
        """What becomes of the job of a dead worker: it goes on in another, or has failed after the second death."""
        given, code = worker.given, worker.end()
        if given is None:
            return
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        if given.attempt < _ATTEMPTS:
            on_event(Event(given.job.key, "note", message=f"its worker died ({how}); it goes on in another"))
            waiting.append(replace(given, attempt=given.attempt + 1))
            return
        error = WorkerDied(
            f"The worker process died {given.attempt} times ({how}); is there enough memory for {self.workers} workers?"
        )
        yield given.job.died(error)


def _serve(pipe: "Connection[Any, _Given[Any]]", threads: int) -> None:
    """The life of a worker: a job after the other until the parent closes the pipe or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends its workers
    from umix.bench.executors.attempt import warm_up

    def tell(event: Event) -> None:
        try:
            pipe.send(event)
        except OSError:
            os._exit(1)  # the parent is gone: end as if killed, for the run has not failed

    warm_up(threads)
    with contextlib.suppress(EOFError, OSError):
        while True:
            given = pipe.recv()
            pipe.send(given.job.work(tell, wait=given.wait))


def _context() -> "ForkServerContext | SpawnContext":
    """On Linux workers are forks of a process that has imported all they need; elsewhere each imports for itself."""
    if not _FORK_SERVER:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["umix.bench.executors.worker_preload"])
    return context


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    """Inside the block processes are started with ``count`` threads: libraries read these names when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, str(count)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
