"""Shared by the benchmarks: interleaved timing and committed results."""

import json
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results"


def interleaved(
    variants: Mapping[str, Callable[[], object]], *, repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of every variant. All are run in turn ``repeats`` times after a warm-up, so that other load affects all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for repeat in range(repeats + 1):
        for name, run in variants.items():
            began = clock()
            run()
            if repeat:
                seconds[name].append(clock() - began)
    return seconds


def ratio(seconds: Mapping[str, list[float]], of: str, to: str) -> float:
    """Median over repeats of the ratio of two variants measured one after the other."""
    return round(statistics.median(a / b for a, b in zip(seconds[of], seconds[to], strict=True)), 3)


def write(name: str, content: dict[str, object], *, show: bool = True, folder: Path = RESULTS) -> None:
    """Write a result to ``folder`` with its command and versions; paths are reduced to the names of folders."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    folder.mkdir(parents=True, exist_ok=True)
    whole = {"command": command, "versions": versions, **content}
    (folder / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    if show:
        print(json.dumps(whole, indent=1))
