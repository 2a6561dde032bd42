"""A campaign of hostile input: thousands of commands on files, folders and arguments that are wrong in ways drawn from a seed.

Every command is run in process and must end in time, be accepted or refused in one sentence on one line with exit code 2, leave
nothing half-written, and run no code from its input. The table counts cases by kind of input; failures are listed with the number
that makes them again.

Run: python benchmarks/hostile.py --n 3000 --seed 0   (again: --seed 0 --only 1234; one kind: --kind images)
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import tempfile
import time
from collections import Counter
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import numpy as np
from hostile_cases.case import Maker
from hostile_cases.run_case import Outcome, run_case
from measure import write

KINDS: Final = sorted(path.stem for path in (Path(__file__).parent / "hostile_cases").glob("*.py"))
LIMIT = 20.0  # seconds after which a command counts as a hang
MEMORY = 12 * 2**30  # bytes that a worker may use: what is not refused by size fails here and not the machine


def makers(kind: str | None) -> list[tuple[str, Maker]]:
    """All makers of cases with the kind of their input, or those of one ``kind``."""
    modules = {name: import_module(f"hostile_cases.{name}") for name in KINDS}
    kinds = {name: module.MAKERS for name, module in modules.items() if hasattr(module, "MAKERS")}
    return [(name, maker) for name, all_of_it in kinds.items() if kind in (None, name) for maker in all_of_it]


def one_case(
    number: int, *, seed: int, kind: str | None, scratch: Path, keep: bool = False, limit: float = LIMIT
) -> tuple[str, str, Outcome]:
    """Kind, description and outcome of the case ``number``: makers take turns, and each draws from the number and the seed."""
    all_makers = makers(kind)
    name, maker = all_makers[number % len(all_makers)]
    folder = scratch / f"case-{number}"
    folder.mkdir(parents=True)
    rng = np.random.default_rng([seed, number])
    case = maker(folder, rng)
    outcome = run_case(case, folder, limit=limit)
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return name, f"{maker.__name__}: {case.what}", outcome


def work(given: Connection, options: dict[str, object]) -> None:
    """A worker process: runs the cases whose numbers it is given."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))  # not what the renderer of charts only reserves
    while (number := given.recv()) is not None:
        given.send(one_case(number, **options))  # type: ignore[arg-type]


class Worker:
    """A process that runs cases one by one, and is replaced if one kills it or keeps it."""

    def __init__(self, options: dict[str, object]) -> None:
        self.options = options
        self.start()

    def start(self) -> None:
        self.pipe, other = multiprocessing.Pipe()
        self.process: BaseProcess = multiprocessing.get_context("fork").Process(target=work, args=(other, self.options))
        self.process.start()
        other.close()
        self.number: int | None = None

    def give(self, number: int) -> None:
        self.number, self.since = number, time.monotonic()
        self.pipe.send(number)

    def lost(self) -> str:
        """Why the worker will give no answer; empty if it may."""
        if not self.process.is_alive() and self.process.exitcode:
            return f"killed its process (exit code {self.process.exitcode})"
        return "hang: did not react to a signal" if time.monotonic() - self.since > 3 * LIMIT else ""

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def campaign(numbers: list[int], workers: int, options: dict[str, object]) -> list[tuple[int, str, str, Outcome]]:
    """Number, kind, description and outcome of every case."""
    makers(None)  # imports what all cases need before workers are forked
    waiting, ended = list(reversed(numbers)), []
    team = [Worker(options) for _ in range(workers)]
    while waiting or any(one.number is not None for one in team):
        for one in team:
            if one.number is None and waiting:
                one.give(waiting.pop())
        wait([one.pipe for one in team if one.number is not None], timeout=1.0)
        for one in team:
            if one.number is None:
                continue
            why = one.lost()
            if not why and one.pipe.poll():
                try:
                    ended.append((one.number, *one.pipe.recv()))
                    one.number = None
                    continue
                except EOFError:  # the process ended without an answer
                    one.process.join()
                    why = f"killed its process (exit code {one.process.exitcode})"
            if why:
                ended.append((one.number, "lost", "", Outcome("failed", why)))
                one.stop()
                one.start()
        if len(ended) % 100 == 0 and ended:
            print(f"\r{len(ended)} of {len(numbers)}, {sum(row[3].end == 'failed' for row in ended)} failed", end="")
    print()
    for one in team:
        one.stop()
    return sorted(ended, key=lambda row: row[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--only", type=int, help="run one case in this process, and keep its files")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/hostile-SEED.json")
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="hostile-", dir=arguments.scratch))
    options = {"seed": arguments.seed, "kind": arguments.kind, "scratch": scratch}
    if arguments.only is not None:
        name, what, outcome = one_case(arguments.only, **options, keep=True)
        print(f"{name}: {what}: {outcome}\nfiles: {scratch}")
        return
    began = time.perf_counter()
    rows = campaign(list(range(arguments.n)), arguments.workers, options)
    shutil.rmtree(scratch, ignore_errors=True)
    by_kind: dict[str, Counter[str]] = {}
    for _, name, _, outcome in rows:
        by_kind.setdefault(name, Counter())[outcome.end] += 1
    for number, name, what, outcome in rows:
        if outcome.end == "failed":
            print(f"{number} {name}: {what}: {outcome.why}")
    table = {
        name: {"tried": sum(ends.values()), **{end: ends[end] for end in ("refused", "accepted", "failed")}}
        for name, ends in sorted(by_kind.items())
    }
    total = {key: sum(row[key] for row in table.values()) for key in ("tried", "refused", "accepted", "failed")}
    content = {
        "seed": arguments.seed,
        "seconds": round(time.perf_counter() - began),
        "slowest case, seconds": round(max(row[3].seconds for row in rows), 1),
        "kinds": table,
        "all": total,
    }
    print(json.dumps(content, indent=1))
    if arguments.write:
        write(f"hostile-{arguments.seed}", content, show=False)


if __name__ == "__main__":
    main()
