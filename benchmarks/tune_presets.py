"""Chooses the hyperparameters of the embedded tasks' presets, on validation only and with the same budget for every method.

Random search over the search ranges of each method: its defaults and TRIALS - 1 draws, each on two seeds that the comparison
does not use; the score is the worst validation group at the epoch selected by it. Test counts are never read.
Run: python benchmarks/tune_presets.py [--trials 12] [--methods umix jtt] — prints the tables to put into presets/TASK.toml.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from measure import RESULTS
from workers import execute_all

from umix import METHODS, RunRecord, RunSpec
from umix.bench.search.search_space import SearchSpace, search_space
from umix.core.rates import worst
from umix.core.selection import best_epoch
from umix.core.streams import stream
from umix.settings import Range

SEEDS = (100, 101)
TASKS = ("colored_digits", "four_moons")


def score(record: RunRecord) -> float:
    val = record.counts["val"]
    return worst(val.hits[best_epoch(val, "worst")], val.sizes)


def draw_settings(space: SearchSpace, rng: np.random.Generator) -> dict[str, Any]:
    """A random value for every setting in ``space``, rounded to three digits so that it is easy to write down."""
    drawn: dict[str, Any] = {}
    for name, values in space.items():
        if not isinstance(values, Range):
            drawn[name] = values[int(rng.integers(len(values)))]
        elif values.log:
            drawn[name] = float(f"{math.exp(rng.uniform(math.log(values.low), math.log(values.high))):.3g}")
        else:
            drawn[name] = float(f"{rng.uniform(values.low, values.high):.3g}")
    return drawn


def trials_of(method: str, n: int) -> list[dict[str, object]]:
    rng = stream(0, "tuning", method)
    defaults = {name: METHODS[method].model_fields[name].default for name in search_space(method)}
    return [defaults, *(draw_settings(search_space(method), rng) for _ in range(n - 1))]


def tune(task: str, methods: list[str], n: int, out: Path) -> dict[str, dict[str, object]]:
    """The best settings of every method, and the scores of all trials."""
    jobs = [(m, t, s) for m in methods if search_space(m) for t in trials_of(m, n) for s in SEEDS]
    specs = [RunSpec(task=task, method=m, settings={f"{m}.{k}": v for k, v in t.items()}, seed=s) for m, t, s in jobs]
    scores: dict[str, dict[str, list[float]]] = {}
    for (method, trial, _), record in zip(jobs, execute_all(specs, out), strict=True):
        scores.setdefault(method, {}).setdefault(json.dumps(trial), []).append(score(record))
    result = {}
    for method, by_trial in scores.items():
        means = {trial: float(np.mean(values)) for trial, values in by_trial.items()}
        best = max(means, key=means.__getitem__)  # of equal scores the first, so the defaults are preferred
        result[method] = {"settings": json.loads(best), "validation worst": round(means[best], 4), "trials": means}
        print(f"[default.{method}]  # validation worst {means[best]:.3f}, defaults {next(iter(means.values())):.3f}")
        for name, value in json.loads(best).items():
            print(f"{name} = {json.dumps(value)}")
        print(flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--tasks", nargs="*", default=TASKS)
    parser.add_argument("--out", type=Path, default=Path("runs/tuning"))
    arguments = parser.parse_args()
    for task in arguments.tasks:
        print(f"# {task}")
        path = RESULTS / f"tuning-{task}.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        found = tune(task, arguments.methods, arguments.trials, arguments.out)
        path.write_text(json.dumps(known | found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
