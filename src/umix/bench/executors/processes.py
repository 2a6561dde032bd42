"""A pool of worker processes on this machine, which survives the crash of a worker.

Every worker has its own pipe. One queue for all workers would be simpler, but a worker that is
killed while it holds the queue's lock would block all other workers forever.
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

from umix.bench.executors.job import Job, JobOutcome, RunJob
from umix.bench.executors.outcome import Event, OnEvent, Outcome
from umix.bench.runs.places import Places
from umix.limits import MOST_THREADS, require_count, require_processes

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

    from umix.bench.spec.run_spec import RunSpec

_JobOutcome = TypeVar("_JobOutcome", bound=JobOutcome)
# The kernel may kill a worker because another process uses too much memory, so a crashed job is
# tried once more. A second crash is taken as the job's own fault.
_ATTEMPTS = 2
_FORK_SERVER = sys.platform == "linux"  # elsewhere a process that has loaded libraries cannot fork safely, or at all
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class WorkerDied(RuntimeError):  # noqa: N818 — the name is what people read in failed.json
    """A worker process ended before it reported the outcome of its run."""


@final
@dataclass(frozen=True, eq=False)
class _QueuedJob(Generic[_JobOutcome]):
    """A job, whether to wait if another process is executing it, and the number of this attempt."""

    job: Job[_JobOutcome]
    wait: bool = False
    attempt: int = 1


@final
@dataclass(eq=False)
class _Worker:
    """A worker process; ``current`` is the job it works on, None if it is idle."""

    process: BaseProcess
    pipe: "Connection[_QueuedJob[Any], Any]"
    current: _QueuedJob[Any] | None = None

    def send(self, queued: _QueuedJob[Any]) -> None:
        self.current = queued
        with contextlib.suppress(OSError):  # if the worker is dead, the next recv raises EOFError
            self.pipe.send(queued)

    def stop(self) -> int | None:
        """Terminate the process, even in the middle of a job, and return its exit code."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()
        return self.process.exitcode


@final
class Processes:
    """``workers`` processes of ``threads`` threads each, which inherit no state of this process."""

    def __init__(self, workers: int, *, threads: int = 1) -> None:
        require_processes("workers", workers)
        require_count("threads", threads, most=MOST_THREADS)
        self.workers = workers
        self._threads = threads
        self._pool: list[_Worker] = []

    def start(self) -> None:
        """Start importing what workers need, in the background.

        The imports take seconds, which the caller can use for other work.
        """
        if _FORK_SERVER:
            self._start_server()
            return
        while len(self._pool) < self.workers:
            self._start_worker()

    def _start_server(self) -> None:
        """Start the fork server; Ctrl-C waits for ``worker_preload``, which ends the server without a word."""
        from multiprocessing import forkserver, resource_tracker

        _context()  # sets the modules that the fork server imports
        resource_tracker.ensure_running()  # changes the mask of signals, so it comes before the mask below
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _thread_limit(self._threads):
                forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        """Terminate all workers, even in the middle of a job."""
        while self._pool:
            self._pool.pop().stop()

    def run(self, specs: "Sequence[RunSpec]", places: Places, on_event: OnEvent) -> Generator[Outcome, None, None]:
        return self.run_jobs([RunJob(spec, places) for spec in specs], on_event)

    def run_jobs(self, jobs: Sequence[Job[_JobOutcome]], on_event: OnEvent) -> Generator[_JobOutcome, None, None]:
        """The outcome of every job, in the order in which they end.

        ``on_event`` is called with the events of running jobs.
        """
        waiting = deque(_QueuedJob(job) for job in jobs)
        try:
            while waiting or any(worker.current for worker in self._pool):
                while waiting and (worker := self._idle_worker()) is not None:
                    worker.send(waiting.popleft())
                for pipe in wait([worker.pipe for worker in self._pool]):
                    worker = next(worker for worker in self._pool if worker.pipe is pipe)
                    try:
                        message = worker.pipe.recv()
                    except (EOFError, OSError):
                        self._pool.remove(worker)
                        yield from self._retry_or_fail(worker, waiting, on_event)
                        continue
                    if isinstance(message, Event):
                        on_event(message)
                    elif worker.current is not None:
                        queued, worker.current = worker.current, None
                        if message.busy:
                            waiting.append(replace(queued, wait=True))
                        else:
                            yield message
        finally:
            self.close()

    def _idle_worker(self) -> _Worker | None:
        """A worker without a job, started if the pool is not full; None if all workers have a job."""
        for worker in self._pool:
            if worker.current is None:
                return worker
        return self._start_worker() if len(self._pool) < self.workers else None

    def _start_worker(self) -> _Worker:
        if _FORK_SERVER:
            self._start_server()
        context = _context()
        ours, theirs = context.Pipe()
        process = context.Process(target=_worker_main, args=(theirs, self._threads), daemon=True, name="umix worker")
        with _thread_limit(self._threads):
            process.start()
        theirs.close()  # so that reading from the pipe raises EOFError when the worker dies
        self._pool.append(_Worker(process, ours))
        return self._pool[-1]

    def _retry_or_fail(
        self, worker: _Worker, waiting: deque[_QueuedJob[_JobOutcome]], on_event: OnEvent
    ) -> Generator[_JobOutcome, None, None]:
        """Queue the job of a crashed worker again; after its second crash, yield its outcome as failed."""
        queued, code = worker.current, worker.stop()
        if queued is None:
            return
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        if queued.attempt < _ATTEMPTS:
            on_event(Event(queued.job.key, "note", message=f"its worker died ({how}); it goes on in another"))
            waiting.append(replace(queued, attempt=queued.attempt + 1))
            return
        error = WorkerDied(
            f"The worker process died {queued.attempt} times ({how}); is there enough memory for {self.workers} workers? In a "
            "script, start workers below: if __name__ == '__main__'."
        )
        yield queued.job.crashed(error)


def _worker_main(pipe: "Connection[Any, _QueuedJob[Any]]", threads: int) -> None:
    """Execute one job after the other, until the parent closes the pipe or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which terminates its workers
    from umix.bench.executors.execute_one import warm_up

    def on_event(event: Event) -> None:
        try:
            pipe.send(event)
        except OSError:
            os._exit(1)  # The parent is dead. Exit without saving a failure: the run itself did not fail.

    warm_up(threads)
    with contextlib.suppress(EOFError, OSError):
        while True:
            queued = pipe.recv()
            pipe.send(queued.job.run(on_event, wait=queued.wait))


def _context() -> "ForkServerContext | SpawnContext":
    """The start method of workers.

    On Linux, workers are forks of a server process that has imported all they need. Elsewhere each
    worker imports for itself.
    """
    if not _FORK_SERVER:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["umix.bench.executors.worker_preload"])
    return context


@contextlib.contextmanager
def _thread_limit(count: int) -> Iterator[None]:
    """Inside the block, new processes have ``count`` threads: libraries read these variables when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(count)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
