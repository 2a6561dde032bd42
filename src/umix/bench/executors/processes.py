"""Worker processes on this machine, by ``concurrent.futures``.

Every worker is a pool of one process. If a process dies, ``concurrent.futures`` gives up its whole pool: this way that is one run,
and it is clear which one.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, final

import torch
from threadpoolctl import threadpool_limits

from umix.bench.executors.executor import Event, OnEvent, Outcome, execute_one, save_failure
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.limits import require_count

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

_ATTEMPTS = 2  # the kernel may kill a worker because another process uses too much memory; a second crash is the run's own fault
_POLL = 0.1  # seconds between two looks at the events of running jobs


class WorkerDied(RuntimeError):  # noqa: N818 — the name is what people read in failed.json
    """A worker process ended before it reported the outcome of its run."""


class JobOutcome(Protocol):
    """How a job ended; ``busy`` if another process is executing it, so that it must be tried again."""

    @property
    def busy(self) -> bool: ...


_JobOutcome = TypeVar("_JobOutcome", bound=JobOutcome)
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

    spec: RunSpec
    paths: RunPaths

    @property
    def key(self) -> str:
        return self.spec.key

    def run(self, on_event: OnEvent, *, wait: bool) -> Outcome:
        return execute_one(self.spec, self.paths, on_event, wait=wait)

    def crashed(self, error: Exception) -> Outcome:
        return Outcome(self.key, failure=save_failure(self.spec, self.paths, error))


@final
@dataclass(frozen=True, eq=False)
class _QueuedJob(Generic[_JobOutcome]):
    """A job, whether to wait if another process is executing it, and the number of this attempt."""

    job: Job[_JobOutcome]
    wait: bool = False
    attempt: int = 1


@final
class Processes:
    """``workers`` processes of ``threads`` threads each, which inherit no state of this process."""

    def __init__(self, workers: int, *, threads: int = 1) -> None:
        require_count("workers", workers)
        require_count("threads", threads)
        self.workers = workers
        self._threads = threads

    def run(self, specs: Sequence[RunSpec], paths: RunPaths, on_event: OnEvent) -> Generator[Outcome, None, None]:
        return self.run_jobs([RunJob(spec, paths) for spec in specs], on_event)

    def run_jobs(self, jobs: Sequence[Job[_JobOutcome]], on_event: OnEvent) -> Generator[_JobOutcome, None, None]:
        """The outcome of every job, in the order in which they end.

        ``on_event`` is called with the events of running jobs. All workers have ended when this ends, even in the middle of a job.
        """
        waiting = deque(_QueuedJob(job) for job in jobs)
        idle = [_Worker(self._threads) for _ in range(min(self.workers, len(jobs)))]
        running: dict[Future[_JobOutcome], tuple[_Worker, _QueuedJob[_JobOutcome]]] = {}
        try:
            while waiting or running:
                while waiting and idle:
                    worker, queued = idle.pop(), waiting.popleft()
                    running[worker.submit(queued)] = worker, queued
                ended, _ = wait(running, timeout=_POLL, return_when=FIRST_COMPLETED)
                for worker, _ in running.values():
                    for event in worker.events():
                        on_event(event)
                for future in ended:
                    worker, queued = running.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        worker.stop()
                        idle.append(_Worker(self._threads))
                        if queued.attempt == _ATTEMPTS:
                            yield queued.job.crashed(self._died())
                        else:
                            on_event(Event(queued.job.key, "note", message="its worker died; it goes on in another"))
                            waiting.append(replace(queued, attempt=queued.attempt + 1))
                        continue
                    idle.append(worker)
                    if outcome.busy:
                        waiting.append(replace(queued, wait=True))
                    else:
                        yield outcome
        finally:
            for worker in (*idle, *(worker for worker, _ in running.values())):
                worker.stop()

    def _died(self) -> WorkerDied:
        return WorkerDied(
            f"The worker process died {_ATTEMPTS} times; is there enough memory for {self.workers} workers? In a script, start "
            "workers below: if __name__ == '__main__'."
        )


@final
class _Worker:
    """One process, started with its first job."""

    def __init__(self, threads: int) -> None:
        context = worker_context()
        self._events: SimpleQueue[Event] = context.SimpleQueue()
        lifeline, self._lifeline = context.Pipe(duplex=False)
        options = (threads, self._events, lifeline)
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_start_worker, initargs=options)

    def submit(self, queued: _QueuedJob[_JobOutcome]) -> Future[_JobOutcome]:
        with _interrupts_blocked():
            return self._pool.submit(_execute, queued)

    def events(self) -> Iterator[Event]:
        """What the process has reported since the last call."""
        while not self._events.empty():
            yield self._events.get()

    def stop(self) -> None:
        """End the process, even in the middle of a job."""
        self._lifeline.close()
        self._pool.shutdown()
        self._events.close()


_events: "SimpleQueue[Event] | None" = None  # in a worker process: where its events go


def _start_worker(threads: int, events: "SimpleQueue[Event]", lifeline: "Connection[Any, Any]") -> None:
    """Prepare this process as a worker of ``threads`` threads."""
    global _events
    _events = events
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends its workers
    threading.Thread(target=_die_with_parent, args=(lifeline,), daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = str(threads)  # for libraries that are loaded later
    threadpool_limits(threads)
    torch.set_num_threads(threads)


def _die_with_parent(lifeline: "Connection[Any, Any]") -> None:
    """End this process at once when the parent closes the other end or dies; the run itself has not failed."""
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv()
    os._exit(1)


def _execute(queued: _QueuedJob[_JobOutcome]) -> _JobOutcome:
    if _events is None:
        raise RuntimeError("A job must be executed in a worker process.")
    return queued.job.run(_events.put, wait=queued.wait)


def worker_context() -> Any:
    """The start method of workers.

    On Linux, workers are forks of a server process that has imported all they need. Elsewhere a process that has loaded libraries
    cannot fork safely, or at all, and each worker imports for itself.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Inside the block Ctrl-C waits, and processes that are started here never get it: the parent ends them."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # it would unblock Ctrl-C when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
