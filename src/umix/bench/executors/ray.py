"""Runs as Ray tasks, on one machine or a cluster, each with its share of processors.

When a worker or node dies, Ray starts its task again on another one. If all nodes share the folder
of the runs, the run resumes from its last checkpoint. If they do not, each node uses a local
folder of that name, and the files of a finished run are sent back with its outcome.
"""

import contextlib
import os
import secrets
import signal
import socket
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import torch

from umix.bench.executors.executor import Event, OnEvent, Outcome, execute_one, save_failure
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.errors import Setting, UserError
from umix.run_folder import RECORD
from umix.store import atomic_write

_RETRIES = 3  # of a run whose worker or node died
_POLL = 0.2  # seconds between two reads of the event queue


@final
@dataclass(frozen=True)
class _RemoteOutcome:
    """An outcome, and the files of the run's folder if the worker does not share the driver's file system."""

    outcome: Outcome
    files: dict[str, bytes]


@final
class Ray:
    """Tasks of ``cpus`` and ``gpus`` each on the cluster at ``address``.

    ``auto`` uses the cluster that this machine is part of. If there is none, it starts one on this machine alone.
    """

    def __init__(self, address: str = "auto", *, cpus: float = 1.0, gpus: float = 0.0) -> None:
        if cpus < 0 or gpus < 0 or not cpus + gpus:
            raise UserError(
                Setting("cpus"),
                " and ",
                Setting("gpus"),
                f" must give a run something to run on, got {cpus:g} and {gpus:g}.",
            )
        self._ray = _connect(address)
        self._share = {"num_cpus": cpus, "num_gpus": gpus}
        available = self._ray.cluster_resources()
        for kind, wanted in (("CPU", cpus), ("GPU", gpus)):
            if wanted > available.get(kind, 0):
                raise UserError(
                    Setting(f"{kind.lower()}s"),
                    f" must fit on the cluster, which has {available.get(kind, 0):g}, got {wanted:g}.",
                )
        limits = [available.get(kind, 0) / wanted for kind, wanted in (("CPU", cpus), ("GPU", gpus)) if wanted]
        self.workers = max(1, int(min(limits)))

    def run(self, specs: Sequence[RunSpec], paths: RunPaths, on_event: OnEvent) -> Generator[Outcome, None, None]:
        from ray.exceptions import RayError
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        paths = replace(paths, out=paths.out.absolute())
        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        events = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})  # other nodes may die
        task = self._ray.remote(max_retries=_RETRIES, **self._share)(_run_on_node)
        token = _write_token(paths.out)
        threads = max(1, int(self._share["num_cpus"]))
        jobs: dict[Any, RunSpec] = {}
        busy: list[RunSpec] = []  # other processes execute these; submitted again when all others have ended

        def submit(spec: RunSpec, *, wait: bool) -> None:
            jobs[task.remote(spec, paths, events, token, threads, wait, Path.cwd())] = spec

        try:
            for spec in specs:
                submit(spec, wait=False)
            while jobs:
                ended, _ = self._ray.wait(list(jobs), timeout=_POLL)
                for event in _pop_events(events):
                    on_event(event)
                for reference in ended:
                    spec = jobs.pop(reference)
                    try:
                        outcome = _store_outcome(self._ray.get(reference), spec, paths)
                    except RayError as error:
                        outcome = Outcome(spec.key, failure=save_failure(spec, paths, error))
                    if outcome.busy:
                        busy.append(spec)
                    else:
                        yield outcome
                if not jobs:
                    again, busy = busy, []
                    for spec in again:
                        submit(spec, wait=True)
        finally:
            for reference in jobs:
                with contextlib.suppress(RayError):
                    self._ray.cancel(reference, force=True)
            events.shutdown(force=True)
            (paths.out / token).unlink(missing_ok=True)


def _connect(address: str) -> Any:
    """Ray, connected to the cluster at ``address``."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise UserError(Setting("address"), " needs Ray; install it with: pip install 'umix[ray]'.") from None
    if ray.is_initialized():
        return ray
    if address != "auto":
        _check_reachable(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    with _same_sigterm():
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            if address != "auto":
                raise UserError(
                    Setting("address"),
                    f" must be auto or the address of a running cluster, got {address!r} ({_first_line(error)}).",
                ) from None
            ray.init(address="local", include_dashboard=False, **quiet)
    return ray


@contextlib.contextmanager
def _same_sigterm() -> Iterator[None]:
    """After the block SIGTERM is handled as before it. Ray would end the process with an exit code of its own."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if before is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _check_reachable(address: str) -> None:
    """Raise UserError if nothing listens at ``address``. Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise UserError(
            Setting("address"),
            f" must be auto or the address HOST:PORT of a running cluster, got {address!r} ({error}).",
        ) from None


def _run_on_node(
    spec: RunSpec, paths: RunPaths, events: Any, token: str, threads: int, wait: bool, cwd: Path
) -> _RemoteOutcome:
    """Execute one run on this node; relative paths start at ``cwd`` if the node has that folder."""
    torch.set_num_threads(threads)

    def on_event(event: Event) -> None:
        # A lost event must not fail the run: the driver may be slow or gone.
        with contextlib.suppress(Exception):
            events.actor.put_nowait.remote(event)

    with contextlib.chdir(cwd) if cwd.is_dir() else contextlib.nullcontext():
        outcome = execute_one(spec, paths, on_event, wait=wait)
    if outcome.record is None or (paths.out / token).exists():
        return _RemoteOutcome(outcome, {})
    folder = outcome.record.directory
    return _RemoteOutcome(outcome, {str(path.relative_to(folder)): path.read_bytes() for path in _files(folder)})


def _store_outcome(remote: _RemoteOutcome, spec: RunSpec, paths: RunPaths) -> Outcome:
    """Write the files of ``remote`` into the run's folder on this machine, and return its outcome.

    The record is written last, because its presence marks the run as finished.
    """
    folder = paths.out / spec.directory_name
    for name in sorted(remote.files, key=lambda name: name == RECORD):
        atomic_write(folder / name, remote.files[name])
    if remote.outcome.failure is not None:
        remote.outcome.failure.save(paths.out, spec.directory_name)
    return remote.outcome


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]


def _write_token(out: Path) -> str:
    """Write a marker file with a random name into ``out`` and return its name.

    A worker that sees the file shares this folder with the driver.
    """
    token = f".ray-{secrets.token_hex(8)}"
    atomic_write(out / token, b"umix")
    return token


def _pop_events(events: Any) -> list[Event]:
    """What the runs have reported; nothing if the queue does not answer, because runs do not depend on their events."""
    from ray.exceptions import RayError

    try:
        size = events.qsize()
        return list(events.get_nowait_batch(size)) if size else []
    except RayError:
        return []


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0].rstrip(".")
