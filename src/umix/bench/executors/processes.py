"""Runs in processes of this machine: each has its threads to itself, takes one run after the other, and may die.

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
from typing import TYPE_CHECKING, final

from umix.bench.executors.outcome import Event, OnEvent, Outcome, Places
from umix.errors import UserError

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

    from umix.bench.spec import RunSpec

_ATTEMPTS = 2  # a worker may be killed for another's greed; twice is the run's own
_FORK_SERVER = sys.platform == "linux"  # elsewhere a process that has loaded libraries cannot fork safely, or at all
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class WorkerDied(RuntimeError):  # noqa: N818 — the name is what people read in failed.json
    """A worker process ended without saying how its run went."""


@final
@dataclass(frozen=True, eq=False)
class _Job:
    spec: "RunSpec"
    places: Places
    wait: bool = False  # for another process that executes it
    attempt: int = 1


@final
@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    pipe: "Connection[_Job, Event | Outcome]"
    job: _Job | None = None

    def give(self, job: _Job) -> None:
        self.job = job
        with contextlib.suppress(OSError):  # a dead worker is noticed by its end of file
            self.pipe.send(job)

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
            raise UserError(f"--workers and --threads must be at least 1, got {workers} and {threads}.")
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
        waiting = deque(_Job(spec, places) for spec in specs)
        try:
            while waiting or any(worker.job for worker in self._staff):
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
                    elif worker.job is not None:
                        job, worker.job = worker.job, None
                        if message.busy:
                            waiting.append(replace(job, wait=True))
                        else:
                            yield message
        finally:
            self.close()

    def _free(self) -> _Worker | None:
        """A worker without a job, started if there may be one more; None if all are at work."""
        for worker in self._staff:
            if worker.job is None:
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

    def _buried(self, worker: _Worker, waiting: deque[_Job], on_event: OnEvent) -> Generator[Outcome, None, None]:
        """What becomes of the run of a dead worker: it goes on in another, or has failed after the second death."""
        from umix.bench.executors.attempt import keep

        job, code = worker.job, worker.end()
        if job is None:
            return
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        if job.attempt < _ATTEMPTS:
            on_event(Event(job.spec.key, "note", message=f"its worker died ({how}); it goes on in another"))
            waiting.append(replace(job, attempt=job.attempt + 1))
            return
        error = WorkerDied(
            f"The worker process died {job.attempt} times ({how}); is there enough memory for {self.workers} workers?"
        )
        yield Outcome(job.spec.key, failure=keep(job.spec, job.places, error))


def _serve(pipe: "Connection[Event | Outcome, _Job]", threads: int) -> None:
    """The life of a worker: a run after the other until the parent closes the pipe or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends its workers
    from umix.bench.executors.attempt import attempt, warm_up

    def tell(event: Event) -> None:
        try:
            pipe.send(event)
        except OSError:
            os._exit(1)  # the parent is gone: end as if killed, for the run has not failed

    warm_up(threads)
    with contextlib.suppress(EOFError, OSError):
        while True:
            job = pipe.recv()
            pipe.send(attempt(job.spec, job.places, tell, wait=job.wait))


def _context() -> "ForkServerContext | SpawnContext":
    """On Linux workers are forks of a process that has imported all they need; elsewhere each imports for itself."""
    if not _FORK_SERVER:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["umix.bench.executors.ready"])
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
