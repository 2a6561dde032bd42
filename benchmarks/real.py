"""ERM, JTT, CVaR-DRO, GroupDRO and UMIX on real data, with the default presets: nothing is tuned on them here.

Three seeds; the epoch is selected by the worst validation group for every method, as GroupDRO's papers do, and (second table) by
the worst class, for people who have no groups at all. The gap closed is (UMIX - ERM) / (GroupDRO - ERM) in worst-group accuracy.
What is absent from FOLDER is skipped and said. Writes results/real.json and results/real.md.
Run: python benchmarks/real.py --data FOLDER [--out runs] [--sets adult compas] [--seeds 3]
"""

import argparse
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from measure import RESULTS, write
from workers import execute_all

from umix import RunRecord, RunSpec
from umix.core.statistics import Spread
from umix.core.streams import stream

METHODS = ("erm", "jtt", "cvar_dro", "group_dro", "umix")
FEW = 30  # a worst group with fewer test examples says little: such sets are shown, but not averaged


def table(name: str, **options: str) -> Callable[[Path, Path], tuple[str, dict[str, object]]]:
    return lambda data, _: (str(data / name), {f"task.{key}": value for key, value in options.items()})


def digits(data: Path, out: Path) -> tuple[str, dict[str, object]]:
    """MNIST in two colours that agree with "5 or more" in 95 % of train and val, in half of test: 30,000 digits, 14×14 pixels."""
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
    return str(path), {"task.label": "y", "task.groups": "color", "task.split": "split", **net}


def _idx(path: Path) -> np.ndarray:
    content = gzip.decompress(path.read_bytes())
    dims = content[3]
    shape = np.frombuffer(content, ">i4", count=dims, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dims).reshape(shape)


#: Name, the file that must be there, and how the task and its settings are made of the folder.
SETS: dict[str, tuple[str, Callable[[Path, Path], tuple[str, dict[str, object]]]]] = {
    "birds, features": (
        "waterbirds_features.npz",
        table("waterbirds_features.npz", label="y", groups="place", split="split"),
    ),
    "adult, sex": ("adult.csv", table("adult.csv", label="income", groups="sex", split="split")),
    "adult, race": ("adult.csv", table("adult.csv", label="income", groups="race", split="split")),
    "compas, sex": ("compas.csv", table("compas.csv", label="two_year_recid", groups="sex", drop="id")),
    "compas, race": ("compas.csv", table("compas.csv", label="two_year_recid", groups="race", drop="id")),
    "tweets, dialect": ("tweets.csv", table("tweets.csv", text="tweet", label="toxic", groups="dialect")),
    "mnist, color": ("mnist", digits),
    "census, sex": (
        "census_income.parquet",
        table("census_income.parquet", label="income", groups="sex", split="split", drop="instance_weight"),
    ),
}


def rates(records: list[RunRecord], select: str) -> dict[str, Spread]:
    found = [record.summary(select) for record in records]
    return {rate: Spread.of([getattr(summary, rate) for summary in found]) for rate in ("average", "adjusted", "worst")}


def smallest_worst(records: list[RunRecord]) -> int:
    """Test examples of the smallest group that is the worst one in some run."""
    worst = []
    for record in records:
        groups = [group for group in record.summary("worst").groups.values() if group.rate is not None]
        worst.append(min(groups, key=lambda group: group.rate).size)
    return min(worst)


def closed(rows: Mapping[str, Mapping[str, Spread]]) -> float:
    erm, robust, umix = (rows[name]["worst"].mean for name in ("erm", "group_dro", "umix"))
    return (umix - erm) / (robust - erm)


def percent(spread: Spread) -> str:
    return f"{100 * spread.mean:.1f} ± {100 * spread.std:.1f}"


def markdown(results: Mapping[str, Mapping[str, object]], select: str) -> list[str]:
    lines = ["| data, groups | " + " | ".join(METHODS) + " | gap closed |", "|---|" + "--:|" * (len(METHODS) + 1)]
    for name, result in results.items():
        rows = result[select]
        cells = [f"{percent(rows[method]['worst'])} ({100 * rows[method]['average'].mean:.1f})" for method in METHODS]
        few = f" ({result['smallest worst group']} test examples)" if result["smallest worst group"] < FEW else ""
        lines.append(f"| {name}{few} | {' | '.join(cells)} | {closed(rows):.2f} |")
    kept = [closed(result[select]) for result in results.values() if result["smallest worst group"] >= FEW]
    capped = np.minimum(kept, 1).mean()
    lines.append(
        f"\nMean gap closed over the {len(kept)} sets whose worst groups have {FEW} test examples: {np.mean(kept):.2f}, and "
        f"{capped:.2f} where passing GroupDRO counts as 1."
    )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    results: dict[str, dict[str, object]] = {}
    for name in asked.sets:
        needed, make = SETS[name]
        if not (asked.data / needed).exists():
            print(f"skipped {name}: {asked.data / needed} is absent", flush=True)
            continue
        task, settings = make(asked.data, asked.out)
        jobs = [(method, seed) for seed in range(asked.seeds) for method in METHODS]
        specs = [RunSpec(task=task, method=method, seed=seed, settings=settings) for method, seed in jobs]
        runs: dict[str, list[RunRecord]] = {}
        for record in execute_all(specs, asked.out):
            runs.setdefault(record.method, []).append(record)
        every = [record for records in runs.values() for record in records]
        results[name] = {
            "smallest worst group": smallest_worst(every),
            **{rule: {method: rates(runs[method], rule) for method in METHODS} for rule in ("worst", "worst_class")},
            "decisions": [record.decisions for record in runs["umix"]],
            "warnings": sorted({warning for record in every for warning in record.warnings}),
        }
        print(name, f"gap closed {closed(results[name]['worst']):.2f}", flush=True)
        print("\n".join(markdown({name: results[name]}, "worst")), flush=True)
    text = ["# Real data, default presets\n"]
    text.append(
        f"Worst-group test accuracy in percent, mean ± standard deviation over {asked.seeds} seeds (average in brackets).\n"
    )
    for rule, title in (
        ("worst", "Epoch by the worst validation group"),
        ("worst_class", "Epoch by the worst validation class: no groups at all"),
    ):
        text += [f"## {title}\n", *markdown(results, rule), ""]
    (RESULTS / "real.md").write_text("\n".join(text), encoding="utf-8")
    write(
        "real",
        json.loads(
            json.dumps(
                {"seeds": asked.seeds, **results}, default=lambda spread: [round(spread.mean, 4), round(spread.std, 4)]
            )
        ),
    )


if __name__ == "__main__":
    main()
