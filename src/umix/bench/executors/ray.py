"""Runs as Ray tasks: on one machine or a cluster, each with its share of processors.

A worker or node that dies takes nothing with it but time: Ray starts the task again elsewhere, and where the folder of the runs is
shared between the nodes the run goes on after its last finished epoch. Where it is not, each node works in its own folder of that
name, and what a run leaves behind comes back with its outcome.
"""

import contextlib
import os
import secrets
import socket
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from umix.bench.executors.outcome import Event, OnEvent, Outcome
from umix.bench.runs.places import Places
from umix.bench.spec.run_spec import RunSpec
from umix.errors import Setting, UserError
from umix.files import write_whole
from umix.run_folder import RECORD

_RETRIES = 3  # of a run whose worker or node died
_POLL = 0.2  # seconds between two looks at the events


@final
@dataclass(frozen=True)
class _Sent:
    """An outcome with the files of the run's folder, where the study's folder is not the worker's."""

    outcome: Outcome
    files: dict[str, bytes]


@final
class Ray:
    """Tasks of ``cpus`` and ``gpus`` each on the cluster at ``address``.

    ``auto`` takes the cluster that this machine is part of, and starts one on this machine alone where there is none.
    """

    def __init__(self, address: str = "auto", *, cpus: float = 1.0, gpus: float = 0.0) -> None:
        if cpus < 0 or gpus < 0 or not cpus + gpus:
            raise UserError(
                Setting("cpus"),
                " and ",
                Setting("gpus"),
                f" must give a run something to run on, got {cpus:g} and {gpus:g}.",
            )
        self._ray = _connected(address)
        self._share = {"num_cpus": cpus, "num_gpus": gpus}
        there = self._ray.cluster_resources()
        for kind, wanted in (("CPU", cpus), ("GPU", gpus)):
            if wanted > there.get(kind, 0):
                raise UserError(
                    Setting(f"{kind.lower()}s"),
                    f" must fit on the cluster, which has {there.get(kind, 0):g}, got {wanted:g}.",
                )
        limits = [there.get(kind, 0) / wanted for kind, wanted in (("CPU", cpus), ("GPU", gpus)) if wanted]
        self.workers = max(1, int(min(limits)))

    def run(self, specs: Sequence[RunSpec], places: Places, on_event: OnEvent) -> Generator[Outcome, None, None]:
        from ray.exceptions import RayError
        from ray.util.queue import Queue

        places = replace(places, out=places.out.absolute())
        events = Queue(actor_options={"num_cpus": 0})
        task = self._ray.remote(max_retries=_RETRIES, **self._share)(_work)
        token = _put_token(places.out)
        threads = max(1, int(self._share["num_cpus"]))
        jobs: dict[Any, RunSpec] = {}
        later: list[RunSpec] = []

        def submit(spec: RunSpec, *, wait: bool) -> None:
            jobs[task.remote(spec, places, events, token, threads, wait, Path.cwd())] = spec

        try:
            for spec in specs:
                submit(spec, wait=False)
            while jobs:
                ended, _ = self._ray.wait(list(jobs), timeout=_POLL)
                for event in _drained(events):
                    on_event(event)
                for reference in ended:
                    spec = jobs.pop(reference)
                    try:
                        outcome = _received(self._ray.get(reference), spec, places)
                    except RayError as error:
                        outcome = _failed(spec, places, error)
                    if outcome.busy:
                        later.append(spec)
                    else:
                        yield outcome
                if not jobs:
                    waiting, later = later, []
                    for spec in waiting:
                        submit(spec, wait=True)
        finally:
            for reference in jobs:
                with contextlib.suppress(RayError):
                    self._ray.cancel(reference, force=True)
            events.shutdown(force=True)
            (places.out / token).unlink(missing_ok=True)


def _connected(address: str) -> Any:
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
        _reach(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
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


def _reach(address: str) -> None:
    """Raise where nothing listens at ``address``: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise UserError(
            Setting("address"),
            f" must be auto or the address HOST:PORT of a running cluster, got {address!r} ({error}).",
        ) from None


def _work(spec: RunSpec, places: Places, events: Any, token: str, threads: int, wait: bool, cwd: Path) -> _Sent:
    """One run, on whatever node this is; paths mean what they mean in ``cwd``, where the node has that folder."""
    from umix.bench.executors.attempt import attempt, warm_up

    warm_up(threads)

    def tell(event: Event) -> None:
        # Progress is worth no failure: the driver may be slow, or gone.
        with contextlib.suppress(Exception):
            events.actor.put_nowait.remote(event)

    with contextlib.chdir(cwd) if cwd.is_dir() else contextlib.nullcontext():
        outcome = attempt(spec, places, tell, wait=wait)
    if outcome.record is None or (places.out / token).exists():
        return _Sent(outcome, {})
    folder = outcome.record.directory
    return _Sent(outcome, {str(path.relative_to(folder)): path.read_bytes() for path in _files(folder)})


def _received(sent: _Sent, spec: RunSpec, places: Places) -> Outcome:
    """The outcome, after the files that came with it are in the run's folder here; the record last, for it says "finished"."""
    folder = places.out / spec.directory_name
    for name in sorted(sent.files, key=lambda name: name == RECORD):
        write_whole(folder / name, sent.files[name])
    if sent.outcome.failure is not None:
        sent.outcome.failure.save(places.out, spec.directory_name)
    return sent.outcome


def _failed(spec: RunSpec, places: Places, error: Exception) -> Outcome:
    from umix.bench.executors.attempt import keep

    return Outcome(spec.key, failure=keep(spec, places, error))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]


def _put_token(out: Path) -> str:
    """The name of a file in ``out`` by which workers see whether their folder of that name is the same one."""
    token = f".ray-{secrets.token_hex(8)}"
    write_whole(out / token, b"umix")
    return token


def _drained(events: Any) -> list[Event]:
    size = events.qsize()
    return list(events.get_nowait_batch(size)) if size else []


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0].rstrip(".")
