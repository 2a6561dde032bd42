"""Whether the tests pass every time: ``make test`` again and again while every core is busy, then ``make test-system``.

Every run has an order of its own (pytest-randomly).

Run: python benchmarks/flakes.py --test 10 --system 5   (rewrites benchmarks/results/flakes.json)
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--test", type=int, default=10, help="runs of make test while every core is busy")
    parser.add_argument("--system", type=int, default=5, help="runs of make test-system")
    arguments = parser.parse_args()
    content: dict[str, Any] = {"cores": os.cpu_count()}
    for target, times, load in (
        ("test", arguments.test, busy_cores()),
        ("test-system", arguments.system, nullcontext()),
    ):
        runs: list[dict[str, Any]] = []
        with load:
            for _ in range(times):
                runs.append(run(target))
                print(f"make {target}: {runs[-1]}", flush=True)
                failing = sorted({name for one in runs for name in one["failing tests"]})
                failures = sum(one["failed"] for one in runs)
                content[f"make {target}"] = {
                    "runs": len(runs),
                    "failures": failures,
                    "failing tests": failing,
                    "each": runs,
                }
                write("flakes", content, show=False)


if __name__ == "__main__":
    main()
