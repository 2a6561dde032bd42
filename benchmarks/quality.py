"""Checks the paper's main claims on the embedded tasks.

colored_digits, seeds 0-2, epoch selected by the worst validation group: the worst test group of UMIX against that of ERM and of
UMIX without mixing. four_moons: the mean uncertainty of each rare moon against that of the common moon of its half.
Run: python benchmarks/quality.py [--out runs]
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import numpy as np
from measure import write

from umix import RunSpec, execute, load_task
from umix.reports.arrange import threshold_rows
from umix.reports.comparison import compare
from umix.store import read_tensors

SEEDS = range(3)
METHODS = {"erm": ("erm", {}), "umix, sigma=0": ("umix", {"sigma": 0.0}), "umix": ("umix", {})}


def colored_digits(out: Path) -> dict[str, object]:
    runs = {
        label: [
            execute(RunSpec(task="colored_digits", method=method, settings=settings, seed=seed), out=out)
            for seed in SEEDS
        ]
        for label, (method, settings) in METHODS.items()
    }
    rows = compare(threshold_rows({"colored_digits": runs}, threshold="off")).cells["colored_digits"]
    table = {
        label: {name: {k: round(v, 4) for k, v in asdict(spread).items()} for name, spread in row.rates.items()}
        for label, row in rows.items()
    }
    worst = {label: row.rates["worst"].mean for label, row in rows.items()}
    return {
        "rates": table,
        "umix worst minus erm worst": round(worst["umix"] - worst["erm"], 4),
        "umix worst minus sigma=0 worst": round(worst["umix"] - worst["umix, sigma=0"], 4),
    }


def four_moons(out: Path) -> dict[str, object]:
    """Mean uncertainty per group over the seeds, and the ratio of the rare to the common group of each half."""
    group = load_task("four_moons").splits["train"].group.numpy()
    means = []
    for seed in SEEDS:
        record = execute(RunSpec(task="four_moons", method="umix", seed=seed), out=out)
        u = read_tensors(record.directory / "examples.safetensors", kind="examples")[0]["uncertainty"].numpy()
        means.append([float(u[group == g].mean()) for g in range(4)])
    mean = np.mean(means, axis=0)
    return {
        "mean uncertainty of moons 0-3": mean.round(4).tolist(),
        "rare / common, left half (1 / 0)": round(mean[1] / mean[0], 1),
        "rare / common, right half (2 / 3)": round(mean[2] / mean[3], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    out = parser.parse_args().out
    write("quality", {"colored_digits": colored_digits(out), "four_moons": four_moons(out)})


if __name__ == "__main__":
    main()
