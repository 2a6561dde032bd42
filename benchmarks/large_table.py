"""Peak memory and seconds of a large table, in files' sizes: loaded as codes (for trees) and one-hot (for nets), and trained on.

A CSV with 12 columns of numbers, 8 of texts (2 to 57 values, some cells empty) and a label, 1.2 GB for 8,000,000 rows. Each
variant runs in a process of its own: hash, read, classes, groups, stratified split, float32 inputs of all splits. The peak is
that of the whole process, with Python, torch and polars. The one-hot variant gets a tenth of the rows. "erm" and "umix" are whole
runs with trees, the folder with predictions included; umix has weights pool=example eta=10, so that nothing is selected.

Run: python benchmarks/large_table.py — needs 4 GB of memory; rewrites benchmarks/results/large_table.json.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import numpy as np
import polars
from measure import write
from torch import Tensor

from umix.data.tables.preprocessing import one_hot
from umix.data.tables.source import TableSource

ROWS, PART = 8_000_000, 500_000
LABEL, GROUP = "y", "sex"


def write_csv(path: Path, rows: int) -> None:
    """Write a table of ``rows`` rows part by part, so that it is never in memory."""
    rng = np.random.default_rng(0)
    with open(path, "wb") as file:
        for begin in range(0, rows, PART):
            part(min(PART, rows - begin), rng).write_csv(file, include_header=begin == 0)


def part(n: int, rng: np.random.Generator) -> polars.DataFrame:
    numbers = {f"number {i}": rng.normal(size=n).round(5) for i in range(8)}
    counts = {f"count {i}": rng.integers(100_000, size=n) for i in range(4)}
    sizes = {f"kind {i}": 3 + 9 * i for i in range(7)}
    texts = {
        name: polars.Series([*(f"value-{v}" for v in range(size)), None]).gather(rng.integers(size + 1, size=n))
        for name, size in sizes.items()
    }
    high = numbers["number 0"] + (counts["count 0"] > 50_000) + rng.normal(size=n) > 0.5
    sex = polars.Series(["f", "m"]).gather(rng.integers(2, size=n))
    label = polars.Series(["no", "yes"]).gather(high.astype(np.int64))
    return polars.DataFrame({**numbers, **counts, **texts, GROUP: sex, LABEL: label})


def load(path: Path, categories: Literal["one_hot", "codes"]) -> None:
    """Print as JSON what loading the task costs this process."""
    began = time.perf_counter()
    task = TableSource(path=path, label=LABEL, groups=GROUP).load()
    task = one_hot(task) if categories == "one_hot" else task
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = path.stat().st_size
    inputs = [split.x for split in task.splits.values() if isinstance(split.x, Tensor)]
    cost = {
        "rows": sum(len(x) for x in inputs),
        "file_gb": round(size / 1e9, 3),
        "inputs_gb": round(sum(x.numel() * x.element_size() for x in inputs) / 1e9, 3),
        "width": inputs[0].shape[1],
        "seconds": round(seconds, 1),
        "peak_gb": round(peak / 1e9, 3),
        "peak / file": round(peak / size, 2),
    }
    print(json.dumps(cost))


def train(path: Path, method: str) -> None:
    """Print as JSON what a whole run with trees costs this process."""
    from umix import RunSpec, execute

    settings = {"task.label": LABEL, "task.groups": [GROUP], "net": "trees"}
    settings |= {"pool": "example", "eta": 10, "length": 20} if method == "umix" else {}
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        record = execute(RunSpec(task=str(path), method=method, settings=settings), out=folder)
    seconds = time.perf_counter() - began
    peak, size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, path.stat().st_size
    cost = {
        "file_gb": round(size / 1e9, 3),
        "seconds": round(seconds, 1),
        "of them fits": round(sum(stage.seconds for stage in record.stages.values()), 1),
        "peak_gb": round(peak / 1e9, 3),
        "peak / file": round(peak / size, 2),
    }
    print(json.dumps(cost))


def measured(path: Path, what: str) -> dict[str, float]:
    """The output of ``load`` or ``train``, run in a process of its own."""
    command = [sys.executable, __file__, "--only", what, "--path", str(path)]
    cost: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return cost


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole, tenth = Path(folder) / "whole.csv", Path(folder) / "tenth.csv"
        write_csv(whole, rows)
        write_csv(tenth, rows // 10)
        costs = {
            "codes": measured(whole, "codes"),
            "codes, a tenth": measured(tenth, "codes"),
            "one_hot, a tenth": measured(tenth, "one_hot"),
            "trees, erm": measured(whole, "erm"),
            "trees, umix, a tenth": measured(tenth, "umix"),
        }
    write("large_table", {"setting": f"CSV, {rows} rows, 20 inputs and a label", **costs})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", choices=["codes", "one_hot", "erm", "umix"])
    parser.add_argument("--path", type=Path)
    arguments = parser.parse_args()
    if arguments.only in ("erm", "umix"):
        train(arguments.path, arguments.only)
    elif arguments.only:
        load(arguments.path, arguments.only)
    else:
        main(arguments.rows)
