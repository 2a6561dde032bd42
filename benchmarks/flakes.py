"""Whether the tests pass every time: ``make test`` and ``make test-system`` again and again, both at once.

Each keeps the cores busy for the other. Once one is done, a process for every core computes without end in its place. Every run has
an order of its own (pytest-randomly).

Run: python benchmarks/flakes.py --test 10 --system 5   (rewrites benchmarks/results/flakes.json)
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from measure import write

ROOT = Path(__file__).parents[1]
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
SUMMARY = re.compile(r"^=*\s*(\d+ (?:passed|failed|error).* in [\d.]+s.*?)\s*=*$", re.MULTILINE)


@contextmanager
def busy_cores() -> Iterator[None]:
    """Inside the block a process for every core computes without end."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(target: str) -> dict[str, Any]:
    """How ``make TARGET`` ended: its minutes, what pytest said last, and the tests that failed."""
    began = time.perf_counter()
    done = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    said = SUMMARY.findall(done.stdout) or [(done.stdout + done.stderr)[-300:]]
    minutes = round((time.perf_counter() - began) / 60, 1)
    return {
        "failed": done.returncode != 0,
        "minutes": minutes,
        "said": said[-1],
        "failing tests": FAILED.findall(done.stdout),
    }


def repeated(target: str, times: int, content: dict[str, Any]) -> None:
    """Run ``make TARGET`` so many times, and write what happened after every run."""
    runs: list[dict[str, Any]] = []
    for _ in range(times):
        runs.append(run(target))
        print(f"make {target}: {runs[-1]}", flush=True)
        content[f"make {target}"] = {
            "runs": len(runs),
            "failures": sum(one["failed"] for one in runs),
            "failing tests": sorted({name for one in runs for name in one["failing tests"]}),
            "each": runs,
        }
        write("flakes", content, show=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--test", type=int, default=10, help="runs of make test")
    parser.add_argument("--system", type=int, default=5, help="runs of make test-system")
    arguments = parser.parse_args()
    content: dict[str, Any] = {"cores": os.cpu_count()}
    system = Thread(target=repeated, args=("test-system", arguments.system, content))
    test = Thread(target=repeated, args=("test", arguments.test, content))
    system.start()
    test.start()
    while test.is_alive() and system.is_alive():  # each of the two keeps the cores busy for the other
        time.sleep(1)
    with busy_cores():
        test.join()
        system.join()


if __name__ == "__main__":
    main()
