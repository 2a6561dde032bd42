"""Kills commands without warning at random moments, runs them again, and compares what they leave with an undisturbed run.

A case is one command in an empty folder: it is killed up to three times (SIGKILL), then the same command runs to its end. Half of
the kills come at a random time, half right before a random write: of a file, of its name, of its removal. Where workers execute
runs, a worker is killed, or the parent. Everything that decides results must be the same bit for bit: records without timings,
weights, predictions, decisions, trajectories. The names of all files must be the same too, so that nothing temporary is left. A
search that was killed goes on with the next trial until the heartbeat of the killed one is old, so it may draw other settings: it
must end with as many trials, and runs with the same settings must be the same.

Run: python benchmarks/kills.py [--n 100] [--seed 0] [--kinds digits,tune] [--keep FOLDER]
"""

import argparse
import csv
import hashlib
import importlib.util
import io
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars
from measure import write
from PIL import Image

from umix.bench.executors.processes import worker_context
from umix.store import read_tensors

LIMIT = 300  # seconds for one command
WRITES = ("fsync", "replace", "rename", "unlink", "rmdir", "mkdir")  # of the module os
KINDS = ("digits", "table", "images", "bench parent", "bench worker", "tune", "ray worker", "predict")
SHARES = (20, 18, 18, 12, 10, 12, 4, 6)  # of 100 cases


@dataclass(frozen=True)
class Kind:
    """A command, by the folder that it writes to, and which of its processes is killed."""

    command: Callable[[Path], list[str]]
    victim: Literal["command", "worker", "ray worker"] = "command"
    with_workers: bool = False
    draws: bool = False  # whether a killed command may go on with other runs than it would have made


@dataclass
class Undisturbed:
    """What the command leaves when nothing happens, how long it takes, and how often it writes."""

    results: dict[str, Any]
    seconds: float
    writes: int


@dataclass
class Tally:
    """The cases of a kind so far; ``different`` names what was not the same."""

    cases: int = 0
    kills: int = 0
    identical: int = 0
    different: list[str] = field(default_factory=list)


def command_main(arguments: list[str], said: str, die_at: int | None) -> None:
    """Run the command line in a session of its own; right before write number ``die_at`` the process kills itself."""
    os.setsid()
    os.environ["RAY_TMPDIR"] = str(Path(said).parent)  # so that auto finds no cluster of other people
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for place in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), place)
    calls = itertools.count()

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **options: Any) -> Any:
            if next(calls) == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*values, **options)

        return call

    for name in WRITES:
        setattr(os, name, counted(getattr(os, name)))
    from umix.cli import main

    code = main(arguments)
    Path(f"{said}.writes").write_text(str(next(calls)))
    sys.exit(code)


class Campaign:
    """Starts commands as forks of a server that has imported all they need, and kills them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self._context = worker_context()
        self._kinds: dict[str, Kind] = {}
        self._undisturbed: dict[str, Undisturbed] = {}
        self.tallies: dict[str, Tally] = {}
        self._sessions: list[int] = []

    def start(self, arguments: list[str], die_at: int | None = None) -> BaseProcess:
        said = str(self.folder / "said")
        process = self._context.Process(target=command_main, args=(arguments, said, die_at))
        process.start()
        self._sessions.append(process.pid or 0)
        return process

    def run(self, arguments: list[str]) -> int | None:
        """The exit code of the undisturbed command."""
        process = self.start(arguments)
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            process.join()
        return process.exitcode

    def workers(self, kind: Kind, process: BaseProcess) -> list[int]:
        """The ids of the processes that execute runs for ``process``."""
        if kind.victim == "ray worker":
            return [pid for pid in descendants(process.pid or 0) if b"ray::_run_on_node" in command_line(pid)]
        return [pid for server in children(process.pid or 0) for pid in children(server)]

    def kind(self, name: str) -> Kind:
        if name not in self._kinds:
            self._kinds[name] = KIND_MAKERS[name](self)
        return self._kinds[name]

    def undisturbed(self, name: str) -> Undisturbed:
        if name not in self._undisturbed:
            out, kind = self.folder / "undisturbed" / name, self.kind(name)
            out.mkdir(parents=True)
            began = time.perf_counter()
            code = self.run(kind.command(out))
            seconds = time.perf_counter() - began
            if code != 0:
                raise SystemExit(f"The undisturbed command of {name} ended with {code}: {self.said()}")
            writes = int((self.folder / "said.writes").read_text())
            self._undisturbed[name] = Undisturbed(results(out), seconds, writes)
        return self._undisturbed[name]

    def said(self) -> str:
        return (self.folder / "said").read_text()[-2000:]

    def case(self, number: int, name: str) -> None:
        """Kill the command of kind ``name`` up to three times, let it end, and compare."""
        kind, expected = self.kind(name), self.undisturbed(name)
        rng = np.random.default_rng([self.seed, number])
        tally, out = self.tallies.setdefault(name, Tally()), self.folder / f"case-{number}"
        out.mkdir()
        kills, code = 0, None
        (self.folder / "said").unlink(missing_ok=True)
        wanted = rng.integers(1, 4)
        while kills < wanted:
            killed, code = self._attempt(kind, expected, kind.command(out), rng)
            kills += killed
            if code == 0 and kills:
                break
            if code == 0:  # it ended before the kill: once more, from the start
                shutil.rmtree(out)
                out.mkdir()
        if code != 0:
            code = self.run(kind.command(out))
        if code != 0:  # workers may have been killed twice in one run, which counts as its own fault
            code = self.run(kind.command(out))
        self._wait_for_orphans()
        found = (
            [f"exit code {code}: {self.said()}"]
            if code != 0
            else differences(expected.results, results(out), draws=kind.draws)
        )
        tally.cases += 1
        tally.kills += kills
        tally.identical += not found
        tally.different += [f"case {number}: {line}" for line in found[:5]]
        print(f"{number:3d} {name}: {kills} kills, {'identical' if not found else found[:5]}", flush=True)
        if not found:
            shutil.rmtree(out)

    def _attempt(
        self, kind: Kind, expected: Undisturbed, arguments: list[str], rng: np.random.Generator
    ) -> tuple[int, int | None]:
        """How many processes were killed, and the exit code of the command."""
        at_write = not kind.with_workers and rng.random() < 0.5
        process = self.start(arguments, int(rng.integers(expected.writes)) if at_write else None)
        earliest = 0.4 if kind.with_workers else 0.0  # before that, workers import what they need
        deadline = time.monotonic() + (LIMIT if at_write else expected.seconds * rng.uniform(earliest, 1))
        process.join(deadline - time.monotonic())
        if kind.victim == "command":
            process.kill()
            process.join()
            return int(process.exitcode == -signal.SIGKILL), process.exitcode
        kills = 0
        while process.is_alive() and not kills:
            for pid in rng.permutation(self.workers(kind, process))[:1]:
                os.kill(int(pid), signal.SIGKILL)
                kills += 1
            time.sleep(0.05)
        process.join(LIMIT)
        process.kill()
        process.join()
        return kills, process.exitcode

    def _wait_for_orphans(self) -> None:
        """Workers of a killed parent end by themselves."""
        deadline = time.monotonic() + LIMIT
        while any(members(session) for session in self._sessions) and time.monotonic() < deadline:
            time.sleep(0.05)
        self._sessions.clear()


def processes() -> Iterator[tuple[int, int, int]]:
    """Id, parent and session of every process that has not ended."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                state, parent, _, session = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if state != "Z":
                yield int(entry), int(parent), int(session)


def children(parent: int) -> list[int]:
    return [pid for pid, above, _ in processes() if above == parent]


def members(session: int) -> list[int]:
    """The processes of a session, without those of Ray, which look after themselves."""
    return [pid for pid, _, of in processes() if of == session and b"ray" not in command_line(pid)]


def descendants(parent: int) -> list[int]:
    below = children(parent)
    return below + [pid for child in below for pid in descendants(child)]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def results(out: Path) -> dict[str, Any]:
    """Every file below ``out`` by its name, as something that is equal if it decides the same; timings are left out."""
    return {
        str(path.relative_to(out)): content(path)
        for path in sorted(out.rglob("*"))
        if path.is_file()
        and path.suffix != ".lock"
        and path.name != ".lock"
        # A killed command leaves the temporary file of its output; those in the folder of a run are swept.
        and not (path.parent == out and path.suffix == ".aside")
    }


def content(path: Path) -> Any:
    if path.name == "record.json":
        record = json.loads(path.read_text())
        for stage in record["stages"].values():
            del stage["seconds"], stage["reused"]
        return record
    if path.name == "epochs.csv":
        rows = csv.DictReader(io.StringIO(path.read_text()))
        return [row for row in rows if row["measure"] != "seconds"]
    if path.name == "checkpoint.safetensors":
        tensors, metadata = read_tensors(path, kind="checkpoint")
        timed = "history/epochs/measures"  # seconds of epochs are in it
        return metadata, {name: digest(t.numpy().tobytes()) for name, t in tensors.items() if name != timed}
    if path.parent.name == "weights":
        tensors, metadata = read_tensors(path, kind="weights")
        # The bytes of a forest hold the time and addresses of the process that wrote them; its predictions are compared.
        return metadata, {name: digest(t.numpy().tobytes()) for name, t in tensors.items() if name != "model"}
    if path.name == "study.db":
        return trials(path)
    if path.suffix == ".toml":
        return [line for line in path.read_text().splitlines() if not line.startswith("# 20")]  # the day
    return digest(path.read_bytes())


def digest(bits: bytes) -> str:
    return hashlib.sha256(bits).hexdigest()


def trials(path: Path) -> int:
    """How many trials count."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{path}")
    return sum(trial.state.name != "FAIL" or "error" in trial.user_attrs for trial in study.get_trials())


def differences(expected: dict[str, Any], found: dict[str, Any], *, draws: bool = False) -> list[str]:
    if draws:
        both = {name for name in expected.keys() & found.keys() if not name.endswith(".toml")}  # the best settings
        expected, found = ({name: one[name] for name in both} for one in (expected, found))
    missing, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    changed = [name for name in expected.keys() & found.keys() if expected[name] != found[name]]
    return [
        *(f"missing {name}" for name in sorted(missing)),
        *(f"left over {name}" for name in sorted(more)),
        *(f"other content {name}" for name in sorted(changed)),
    ]


def _settings(*settings: str) -> list[str]:
    return [f"--set={setting}" for setting in settings]


def _digits(campaign: Campaign) -> Kind:
    fast = _settings("epochs=6", "length=3", "start=0", "trajectory.epochs=4", "eta=10", "batch_size=256")
    return Kind(lambda out: ["run", "colored_digits", "umix", "--quiet", *fast, "--out", str(out)])


def _people(folder: Path, n: int) -> Path:
    path = folder / f"people-{n}.csv"
    if not path.exists():
        rng = np.random.default_rng(0)
        x, sex = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
        y = x[:, 0] + 0.5 * sex + 0.5 * rng.normal(size=n) > 0
        columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}
        texts = {"sex": np.array(["f", "m"])[sex], "income": np.array(["low", "high"])[y.astype(int)]}
        polars.DataFrame({**columns, **texts}).write_csv(path)
    return path


def _table(campaign: Campaign) -> Kind:
    people = ["run", str(_people(campaign.folder, 600)), "--label", "income", "--groups", "sex"]
    return Kind(lambda out: [*people, "--trials", "4", "--quiet", *_settings("epochs=4"), "--out", str(out)])


def _images(campaign: Campaign) -> Kind:
    folder, rng = campaign.folder / "photos", np.random.default_rng(0)
    for number in range(800):
        path = folder / ("land", "water")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 120, (40, 40, 3), dtype=np.uint8) + np.uint8(60 * (number % 2))
        Image.fromarray(pixels).save(path)
    fast = _settings("epochs=3", "task.size=32", "channels=[4,8]")
    return Kind(lambda out: ["run", f"{folder}/", "erm", "--label-from", "folder", "--quiet", *fast, "--out", str(out)])


def _study(out: Path, *how: str) -> list[str]:
    fast = _settings("epochs=8", "umix.length=4", "umix.trajectory.epochs=5", "batch_size=8")
    methods = ["--methods", "erm,umix", "--seeds", "0:2"]
    return ["bench", "four_moons", *methods, "--quiet", *fast, *how, "--out", str(out)]


def _tune(campaign: Campaign) -> Kind:
    fast = _settings("epochs=6", "task.sizes=[100,10,10,100]", "task.eval_size=20", "batch_size=16")
    command = ["tune", "four_moons", "umix", "--trials", "12", "--quiet", *fast]
    return Kind(lambda out: [*command, "--out", str(out)], draws=True)


def _predict(campaign: Campaign) -> Kind:
    runs, people = campaign.folder / "trained", _people(campaign.folder, 600)
    fast = [*_settings("epochs=2", "hidden=[8]"), "--net", "mlp", "--quiet"]
    code = campaign.run(["run", str(people), "erm", "--label", "income", *fast, "--out", str(runs)])
    if code != 0:
        raise SystemExit(f"The run to predict with ended with {code}: {campaign.said()}")
    run = next(runs.glob("*/record.json")).parent
    new = str(_people(campaign.folder, 200_000))
    return Kind(lambda out: ["predict", str(run), new, "--quiet", "-o", str(out / "predictions.parquet")])


KIND_MAKERS: dict[str, Callable[[Campaign], Kind]] = {
    "digits": _digits,
    "table": _table,
    "images": _images,
    "bench parent": lambda campaign: Kind(lambda out: _study(out, "--workers", "2"), with_workers=True),
    "bench worker": lambda campaign: Kind(lambda out: _study(out, "--workers", "2"), "worker", with_workers=True),
    "tune": _tune,
    "ray worker": lambda campaign: Kind(lambda out: _study(out, "--ray", "auto"), "ray worker", with_workers=True),
    "predict": _predict,
}


def installed(name: str) -> bool:
    needed = {"tune": "optuna", "ray worker": "ray"}.get(name)
    return needed is None or importlib.util.find_spec(needed) is not None


def kinds_of(n: int, names: list[str]) -> Iterator[str]:
    """The kind of every case, in the shares of ``SHARES``; of few cases every kind comes about equally early."""
    shares = {name: share for name, share in zip(KINDS, SHARES, strict=True) if name in names}
    done = dict.fromkeys(shares, 0)
    for _ in range(n):
        name = min(shares, key=lambda name: (done[name] + 0.5) / shares[name])
        done[name] += 1
        yield name


@contextmanager
def scratch(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="umix-kills-") as folder:
        yield Path(folder)


def campaign(n: int, seed: int, names: list[str], folder: Path) -> dict[str, Tally]:
    """The tally of every kind after ``n`` cases."""
    running = Campaign(folder, seed)
    for number, name in enumerate(kinds_of(n, names)):
        running.case(number, name)
    return running.tallies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100, help="cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", type=Path, help="a new folder, in which cases that differ are left")
    arguments = parser.parse_args()
    names = [name for name in arguments.kinds.split(",") if installed(name)]
    began = time.perf_counter()
    with scratch(arguments.keep) as folder:
        tallies = campaign(arguments.n, arguments.seed, names, folder)
    kinds = {name: vars(tally) for name, tally in tallies.items()}
    totals = {key: sum(kind[key] for kind in kinds.values()) for key in ("cases", "kills", "identical")}
    minutes = round((time.perf_counter() - began) / 60, 1)
    write("kills", {"seed": arguments.seed, "minutes": minutes, "all": totals, "kinds": kinds})
    return 0 if totals["identical"] == totals["cases"] else 1


if __name__ == "__main__":
    sys.exit(main())
