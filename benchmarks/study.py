"""Overhead of a study: workers against one process, time per run beside the training, loading many records.

Run: python benchmarks/study.py — on an idle machine; rewrites benchmarks/results/study.json.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from measure import write

from umix.bench.executors.executor import Serial
from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import load_run, load_runs
from umix.bench.study.study import Study
from umix.bench.study.study_plan import make_grid
from umix.reports.arrange import arrange
from umix.reports.comparison import compare
from umix.training.context import Context

BUDGET = {"workers_ratio": 0.6, "overhead_ms": 50.0, "load_seconds": 5.0}
RUNS = 24  # 2 methods × 12 seeds


def command(out: Path, epochs: int, *more: str) -> float:
    """Seconds of a whole ``umix bench`` command with an empty folder, including the start of Python."""
    study = ["bench", "colored_digits", "--methods", "erm,umix", "--seeds", "0:12", "--set", f"fit.epochs={epochs}"]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "umix", *study, "-q", "-o", str(out), *more], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began


def workers(folder: Path, *, epochs: int, repeats: int) -> dict[str, object]:
    """Two workers against one process, in turn."""
    seconds: dict[str, list[float]] = {"serial": [], "workers 2": []}
    for repeat in range(repeats):
        seconds["serial"].append(command(folder / f"serial-{repeat}", epochs))
        seconds["workers 2"].append(command(folder / f"workers-{repeat}", epochs, "--workers", "2"))
    counts = [
        {run.key: run.split_counts for run in load_runs(folder / f"{name}-0").records} for name in ("serial", "workers")
    ]
    if counts[0] != counts[1] or len(counts[0]) != RUNS:
        raise SystemExit("Workers and one process must give the same records.")
    return {
        "runs": RUNS,
        "seconds": {name: [round(value, 2) for value in values] for name, values in seconds.items()},
        "workers_ratio": round(min(seconds["workers 2"]) / min(seconds["serial"]), 3),
    }


def overhead(folder: Path, *, repeats: int) -> dict[str, object]:
    """Milliseconds per run of planning, locks, checkpoints and records: a study against the same training in memory.

    One epoch per run, so that little is trained; the first round warms up.
    """
    torch.set_num_threads(1)
    study = Study(tasks=["four_moons"], methods=["erm"], seeds=tuple(range(RUNS)), settings={"fit.epochs": 1})
    task = make_grid(study).entries[0].spec.plan.source.load(None)
    with_bench, bare = [], []
    for repeat in range(repeats + 1):
        began = time.perf_counter()
        specs = [entry.spec for entry in make_grid(study).runs]
        done = list(Serial().run(specs, RunPaths(folder / f"overhead-{repeat}"), lambda event: None))
        middle = time.perf_counter()
        for spec in specs:
            spec.plan.method.train(Context(task, spec.plan.net, spec.plan.fit, spec.plan.stages, seed=spec.seed))
        end = time.perf_counter()
        if any(outcome.record is None for outcome in done):
            raise SystemExit("A run has failed.")
        if repeat:
            with_bench.append(middle - began)
            bare.append(end - middle)
    each = [1000 * (one - other) / RUNS for one, other in zip(with_bench, bare, strict=True)]
    return {
        "bench_ms_per_run": round(1000 * statistics.median(with_bench) / RUNS, 2),
        "bare_ms_per_run": round(1000 * statistics.median(bare) / RUNS, 2),
        "overhead_ms": round(statistics.median(each), 2),
    }


def loading(folder: Path, *, count: int) -> dict[str, object]:
    """Seconds to load ``count`` records of 20 epochs and to compare them, as a table does."""
    study = Study(tasks=["colored_digits"], methods=["umix"], seeds=(0,), settings={"fit.epochs": 20})
    (entry,) = make_grid(study).entries
    list(Serial().run([entry.spec], RunPaths(folder / "one"), lambda event: None))
    record = load_run(folder / "one" / entry.spec.directory_name)
    many = folder / "many"
    for number in range(count):
        directory = many / f"colored_digits-umix-seed{number}-{number:016x}"
        directory.mkdir(parents=True)
        record.model_copy(update={"seed": number, "key": f"{number:016x}"}).save(directory)
    began = time.perf_counter()
    loaded = load_runs(many).records
    middle = time.perf_counter()
    compare(arrange(loaded))
    end = time.perf_counter()
    if len(loaded) != count:
        raise SystemExit("Not all records were loaded.")
    size = (many / f"colored_digits-umix-seed0-{0:016x}" / "record.json").stat().st_size
    return {
        "records": count,
        "bytes_per_record": size,
        "load_seconds": round(middle - began, 2),
        "compare_seconds": round(end - middle, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=60, help="of the final fit of the 24 runs")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--records", type=int, default=10_000)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="umix-study-"))
    try:
        results: dict[str, object] = {
            "workers": workers(folder, epochs=options.epochs, repeats=options.repeats),
            "overhead": overhead(folder, repeats=5),
            "loading": loading(folder, count=options.records),
        }
    finally:
        shutil.rmtree(folder)
    load = os.getloadavg()[0]
    write("study", {**results, "budget": BUDGET, "load_average_at_the_end": round(load, 2)})


if __name__ == "__main__":
    main()
