"""The net ``tabular`` against ``mlp`` with the settings for tables: quality on validation rows, and the time of an epoch.

ERM, 20 epochs with the fit settings of the table preset, on four tables, each divided with three seeds. Of every fit: accuracy and
log loss on validation, the best of all epochs and the mean of the last three. Test rows are never looked at. The number of bins
is also chosen for each table by the others (log loss), which shows what to expect of it on a table that did not choose it. The time
of an epoch is that of training and of predicting the held-out splits, in CPU seconds, variants in turn, as a ratio to ``mlp``.
Run: python benchmarks/table_nets.py --data FOLDER [--seeds 3]
"""

import argparse
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from measure import interleaved, ratio, write
from torch import Tensor

from umix.bench.spec.presets import preset
from umix.checkpoint_pace import USUAL
from umix.data.samplers import Shuffled
from umix.data.tables.preprocessing import one_hot
from umix.data.tables.source import task_from_table
from umix.data.task import Split, Task
from umix.models.net import Net
from umix.models.registry import net_settings
from umix.training.context import Context
from umix.training.engine import Engine
from umix.training.evaluate import evaluate
from umix.training.fit import fit
from umix.training.fit_job import FitJob
from umix.training.fit_settings import FitSettings
from umix.training.loop import descend
from umix.training.objective import MeanRisk
from umix.training.progress import EpochLog, Silent
from umix.training.stage import Stage

TABLES: dict[str, dict[str, Any]] = {
    "adult": {"label": "income", "groups": "sex", "split": "split"},
    "bank": {"label": "y", "groups": "age_group"},
    "credit": {"label": "default", "groups": "SEX"},
    "compas": {"label": "two_year_recid", "groups": "race", "id": "id"},
}
MLP = {"hidden": (128, 64)}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "mlp": ("mlp", MLP),
    "mlp, hidden 64 64": ("mlp", {"hidden": (64, 64)}),
    "mlp, dropout 0.2": ("mlp", {**MLP, "dropout": 0.2}),
    "tabular": ("tabular", {}),
    "tabular, no bins": ("tabular", {"bins": 0}),
    "tabular, 4 bins": ("tabular", {"bins": 4}),
    "tabular, 8 bins": ("tabular", {"bins": 8}),
    "tabular, hidden 128 64": ("tabular", {"hidden": (128, 64)}),
    "tabular, dropout 0.2": ("tabular", {"dropout": 0.2}),
}
BINS = ("tabular, no bins", "tabular, 4 bins", "tabular, 8 bins", "tabular")
TIMED = ("mlp", "tabular", "tabular, hidden 128 64", "tabular, dropout 0.2")
REPEATS = 15
MEASURED = ("best accuracy", "last accuracy", "best log loss", "last log loss")


@dataclass
class OnValidation:
    """Accuracy and log loss on validation after every epoch."""

    val: Split
    n_classes: int
    accuracy: list[float] = field(default_factory=list)
    log_loss: list[float] = field(default_factory=list)

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None: ...

    def observe(self, net: Net, epoch: int) -> None:
        found = evaluate(net, self.val, n_classes=self.n_classes, batch_size=256)
        self.accuracy.append(float((found.predicted == self.val.y).float().mean()))
        self.log_loss.append(float(found.losses.mean()))

    def tensors(self) -> dict[str, Tensor]:
        return {}


@dataclass
class Predicting:
    """Predicts val and test after every epoch, as runs do; what it predicts is not looked at."""

    context: Context

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None: ...

    def observe(self, net: Net, epoch: int) -> None:
        for name in ("val", "test"):
            evaluate(net, self.context.splits[name], n_classes=self.context.task.n_classes, batch_size=256)

    def tensors(self) -> dict[str, Tensor]:
        return {}


def load(folder: Path, table: str, seed: int) -> dict[str, Task]:
    """The table as nets take it, by the name of the net."""
    codes = task_from_table(folder / f"{table}.csv", data_seed=seed, **TABLES[table])
    return {"mlp": one_hot(codes), "tabular": codes}


def context_of(tasks: Mapping[str, Task], variant: str, seed: int, epochs: int | None = None) -> Context:
    name, options = VARIANTS[variant]
    settings = FitSettings(**preset("table", "default")["fit"])
    settings = settings if epochs is None else settings.updated({"epochs": epochs})
    task = tasks[name]
    return Context(task, net_settings(name, **options).with_categories(task.categories), settings, seed=seed)


def train(context: Context, net: Net, observer: Any) -> None:
    stage = Stage("fit", context.settings, context.seed, "", None)
    job = FitJob(
        stage=stage,
        train=context.splits["train"],
        objective=MeanRisk(),
        n_groups=0,
        sampler=Shuffled(),
        step=descend,
        observer=observer,
        log=EpochLog(),
        engine=Engine(),
        progress=Silent(),
        pace=USUAL,
    )
    fit(net, job)


def quality(tasks: Mapping[str, Task], variant: str, seed: int) -> dict[str, float]:
    """Of one fit, on validation."""
    context = context_of(tasks, variant, seed)
    seen = OnValidation(context.splits["val"], context.task.n_classes)
    train(context, context.fresh_net(), seen)
    last = statistics.mean(seen.accuracy[-3:]), statistics.mean(seen.log_loss[-3:])
    return dict(zip(MEASURED, (max(seen.accuracy), last[0], min(seen.log_loss), last[1]), strict=True))


def times(tasks: Mapping[str, Task]) -> dict[str, float]:
    """The time of an epoch, as a ratio to ``mlp``."""
    runs = {}
    for variant in TIMED:
        context = context_of(tasks, variant, 0, epochs=1)
        net = context.fresh_net()
        runs[variant] = lambda context=context, net=net: train(context, net, Predicting(context))
    seconds = interleaved(runs, repeats=REPEATS, clock=time.process_time)
    return {variant: ratio(seconds, variant, "mlp") for variant in TIMED}


def chosen_by_others(found: Mapping[str, Mapping[str, Mapping[str, list[float]]]]) -> dict[str, dict[str, Any]]:
    """For each table, the number of bins with the lowest log loss on the other tables, and what it is worth on this one."""

    def mean(variant: str, table: str, name: str) -> float:
        return statistics.mean(found[variant][table][name])

    made = {}
    for table in TABLES:
        others = [other for other in TABLES if other != table]
        best = min(BINS, key=lambda variant: sum(mean(variant, other, "best log loss") for other in others))
        made[table] = {
            "chosen": best,
            **{f"{name}, less mlp": round(mean(best, table, name) - mean("mlp", table, name), 5) for name in MEASURED},
        }
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    found: dict[str, dict[str, dict[str, list[float]]]] = {variant: {} for variant in VARIANTS}
    epochs = {}
    for table in TABLES:
        for seed in range(given.seeds):
            tasks = load(given.data, table, seed)
            if seed == 0:
                epochs[table] = times(tasks)
                print(table, epochs[table], flush=True)
            for variant in VARIANTS:
                for name, value in quality(tasks, variant, seed).items():
                    found[variant].setdefault(table, {}).setdefault(name, []).append(round(value, 5))
        for variant in VARIANTS:
            print(table, variant, {name: round(statistics.mean(v), 4) for name, v in found[variant][table].items()})
    means = {
        variant: {
            name: round(float(np.mean([of_table[name] for of_table in by_table.values()])), 5) for name in MEASURED
        }
        for variant, by_table in found.items()
    }
    write(
        "table_nets",
        {
            "setting": f"ERM on validation, {given.seeds} seeds, mean over {', '.join(TABLES)}",
            "mean": means,
            "bins chosen by the other tables": chosen_by_others(found),
            "by table, seed by seed": found,
            "epoch / epoch of mlp": epochs,
        },
        show=False,
    )
    for variant, rates in means.items():
        print(f"{variant:26}", rates)


if __name__ == "__main__":
    main()
