"""One run inside a worker: its steps become events, whatever it raises becomes a failure."""

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

_PAUSE = 0.2  # seconds between two events about steps: often enough to look at, seldom enough to cost nothing


def attempt(spec: RunSpec, places: Places, on_event: OnEvent, *, wait: bool) -> Outcome:
    """Execute ``spec``; a run that raises is kept as failed, one that another process executes is busy unless we ``wait``."""
    began = time.perf_counter()
    try:
        task = places.load_cached(spec)
        record = execute(spec, places=places, task=task, progress=Reporter(spec.key, on_event), wait=wait)
    except Busy:
        return Outcome(spec.key)
    except Exception as error:
        return Outcome(spec.key, time.perf_counter() - began, failure=keep(spec, places, error))
    return Outcome(spec.key, time.perf_counter() - began, record=record)


def warm_up(threads: int) -> None:
    """Make this process a worker of ``threads`` threads, and pay now for what is no run's time."""
    torch.set_num_threads(threads)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)])  # the first optimiser of a process imports for seconds


def keep(spec: RunSpec, places: Places, error: BaseException) -> Failure:
    """The failure of ``spec`` by ``error``, also written into the run's folder."""
    failure = Failure.of(error, task=spec.task, method=spec.method, seed=spec.seed, key=spec.key)
    failure.save(places.out, spec.directory_name)
    return failure


@final
class Reporter:
    """The progress of a run as events, a few per second."""

    def __init__(self, key: str, on_event: OnEvent) -> None:
        self._key = key
        self._tell = on_event
        self._worker = f"{socket.gethostname()}:{os.getpid()}"
        self._stage, self._done, self._total, self._told = "", 0, 0, 0.0

    def start(self, stage: str, *, total: int, done: int) -> None:
        self._stage, self._done, self._total, self._told = stage, done, total, time.monotonic()
        self._tell(Event(self._key, "start", stage, done, total, worker=self._worker))

    def advance(self, steps: int) -> None:
        self._done += steps
        now = time.monotonic()
        if now - self._told >= _PAUSE:
            self._told = now
            self._tell(Event(self._key, "steps", self._stage, self._done, self._total, worker=self._worker))

    def finish(self) -> None: ...

    def note(self, message: str) -> None:
        self._tell(Event(self._key, "note", message=message, worker=self._worker))
