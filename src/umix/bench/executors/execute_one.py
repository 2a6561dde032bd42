"""One run as an executor does it: its progress is sent as events, and an exception becomes a saved failure."""

import os
import socket
import time
from typing import final

import torch

from umix.bench.executors.outcome import Event, OnEvent, Outcome
from umix.bench.runs.execute import execute
from umix.bench.runs.failure import Failure
from umix.bench.runs.lock import Busy
from umix.bench.runs.places import Places
from umix.bench.spec.run_spec import RunSpec

_PAUSE = 0.2  # seconds between two events about steps, so that events cost no noticeable time


def execute_one(spec: RunSpec, places: Places, on_event: OnEvent, *, wait: bool) -> Outcome:
    """The outcome of executing ``spec``.

    An exception is saved in the run's folder as its failure. If another process is executing the
    run, ``wait`` for it, else return a busy outcome.
    """
    start = time.perf_counter()
    try:
        task = places.load_cached(spec)
        record = execute(spec, places=places, task=task, progress=EventProgress(spec.key, on_event), wait=wait)
    except Busy:
        return Outcome(spec.key)
    except Exception as error:
        return Outcome(spec.key, time.perf_counter() - start, failure=save_failure(spec, places, error))
    return Outcome(spec.key, time.perf_counter() - start, record=record)


def warm_up(threads: int) -> None:
    """Prepare this process as a worker of ``threads`` threads; what a run needs is imported with this module."""
    torch.set_num_threads(threads)


def save_failure(spec: RunSpec, places: Places, error: BaseException) -> Failure:
    """Write ``error`` into the run's folder as the failure of ``spec``, and return that failure."""
    failure = Failure.of(error, task=spec.task, method=spec.method, seed=spec.seed, key=spec.key)
    failure.save(places.out, spec.directory_name)
    return failure


@final
class EventProgress:
    """Sends the progress of a run as events, a few per second."""

    def __init__(self, key: str, on_event: OnEvent) -> None:
        self._key = key
        self._send = on_event
        self._worker = f"{socket.gethostname()}:{os.getpid()}"
        self._stage, self._done, self._total, self._last_event = "", 0, 0, 0.0

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
