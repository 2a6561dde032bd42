"""What a selection costs, in final fits, and how much faster stacked nets are than as many hand-written PyTorch loops.

A selection is what UMIX does to choose what is left to it (``auto``): among 40 kinds of weights on a linear head, 16 on another
net. It is measured over one final fit of the same context: weighted mixup on the same data with the same settings. Both are in
memory, and the final fit also counts hits on test, which a selection never looks at. A selection keeps the checkpoints of its
rounds in a temporary folder. The last part compares one epoch of 16 stacked nets with 16 hand-written loops over preloaded tensors;
both weigh examples and mix nothing. One line shows them with mixup, as selections use it, against the same loops without it.

Everything runs on one torch thread, in turn. Times are processor times, which other programs on the machine disturb less than
wall-clock times.

Run: python benchmarks/race.py [--repeats 5] [--smoke]
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from measure import interleaved, ratio, write
from torch import Tensor

from umix.core.streams import stream, torch_stream
from umix.data.groups import Groups
from umix.data.loader import batches
from umix.data.samplers import Shuffled
from umix.data.task import Split, Task
from umix.methods.parts.uncertainty_weights import Measured
from umix.methods.umix import UMIX
from umix.models.mlp import MLP, Linear
from umix.models.net import NetSettings
from umix.models.stacked import stack_of
from umix.selection.halving import StackedMixup
from umix.selection.select import Candidate, select
from umix.training.context import Context
from umix.training.engine import Engine
from umix.training.fit_settings import FitSettings
from umix.training.loop import run_epoch
from umix.training.mixup_risk import MixupRisk

SIGMA, ALPHA = 0.5, 0.5
MEMBERS = 16
HEAD = FitSettings(epochs=30, batch_size=128, optimizer="adamw", lr=0.003, weight_decay=0.01)  # the preset of arrays
TABLE = FitSettings(epochs=20, batch_size=256, optimizer="adamw", lr=0.001, weight_decay=0.01)  # the preset of tables
WIDTHS = (384, 1280)


def objective(weights: Tensor) -> MixupRisk:
    return MixupRisk(weights=weights, sigma=SIGMA, alpha=ALPHA)


def task_of(n: int, n_val: int, width: int) -> Task:
    """Two classes and an attribute that agrees with the class in 9 of 10 examples: 4 groups. The attribute is easier to see."""
    rng = stream(0, "race", "data")

    def split(size: int) -> Split:
        y = rng.integers(2, size=size)
        attribute = (y + (rng.random(size) < 0.1)) % 2
        x = rng.standard_normal((size, width), dtype="float32")
        x[:, 0] += y
        x[:, 1] += 2 * attribute
        labels = torch.from_numpy(y)
        names = ("0", "1")
        return Split(
            torch.from_numpy(x),
            labels,
            Groups.cells(labels, torch.from_numpy(attribute), labels=names, attributes=names),
        )

    return Task("race", {"train": split(n), "val": split(n_val), "test": split(n_val)}, ("0", "1"))


@dataclass(frozen=True, eq=False)
class Case:
    """A task with a net, and the candidates that the first stage of UMIX gives for it."""

    task: Task
    net: NetSettings
    settings: FitSettings
    measured: Measured
    candidates: Sequence[Candidate]

    @classmethod
    def of(cls, task: Task, net: NetSettings, settings: FitSettings) -> "Case":
        method = UMIX(eta="auto", pool="auto", length="auto", sigma=SIGMA, alpha=ALPHA)
        context = Context(task, net, settings, engine=Engine("cpu"))
        measured = method.measure(context)
        return cls(task, net, settings, measured, method.candidates(measured, context, objective))

    def context(self, directory: Path | None = None) -> Context:
        hold = directory is None
        return Context(self.task, self.net, self.settings, directory=directory, hold=hold, engine=Engine("cpu"))

    def selection(self) -> None:
        select(self.context(), self.candidates, uncertain=self.measured.uncertain, content="benchmark")

    def final_fit(self) -> None:
        self.context().fit(self._final)

    def final_fit_in_folder(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.context(Path(folder)).fit(self._final)

    @property
    def _final(self) -> MixupRisk:
        return objective(cast(Tensor, self.candidates[-1].weights))


def selection_cost(case: Case, repeats: int) -> dict[str, float]:
    """The time of a selection over that of one final fit."""
    seconds = interleaved(
        {"selection": case.selection, "final fit": case.final_fit, "in a folder": case.final_fit_in_folder},
        repeats=repeats,
        clock=time.process_time,
    )
    return {
        "candidates": len(case.candidates),
        "selection / final fit": ratio(seconds, "selection", "final fit"),
        "selection / final fit with checkpoints": ratio(seconds, "selection", "in a folder"),
        "final fit seconds": round(statistics.median(seconds["final fit"]), 3),
        "selection seconds": round(statistics.median(seconds["selection"]), 3),
    }


def bare_loops(split: Split, weights: Tensor) -> Callable[[], None]:
    """One epoch of every member, one after the other, by hand."""
    x, y, n, size = cast(Tensor, split.x), split.y, len(split), HEAD.batch_size
    nets = [Linear().build(split.example, 2).head for _ in range(MEMBERS)]
    optimizers = [
        torch.optim.AdamW(net.parameters(), HEAD.lr, weight_decay=HEAD.weight_decay, fused=True) for net in nets
    ]

    def epoch() -> None:
        for member, (net, optimizer) in enumerate(zip(nets, optimizers, strict=True)):
            w, order = weights[:, member].contiguous(), torch.randperm(n)
            for index in order.split(size):
                losses = F.cross_entropy(net(x.index_select(0, index)), y[index], reduction="none")
                optimizer.zero_grad()
                (w[index] * losses).mean().backward()
                optimizer.step()

    return epoch


def stacked_epoch(split: Split, weights: Tensor, sigma: float) -> Callable[[], None]:
    """One epoch of all members together, as a selection trains them."""
    nets = stack_of(Linear().build(split.example, 2), MEMBERS)
    prepared = Engine("cpu").prepare(nets, HEAD.make_optimizer(nets), precision="32-true")
    together = StackedMixup(MixupRisk(sigma=sigma, alpha=ALPHA), weights)

    def epoch() -> None:
        order = Shuffled().draw(split, stream(0, "fit", "order"))
        with torch_stream(0, "fit", "noise"):
            seen = batches(split, order, batch_size=HEAD.batch_size)
            run_epoch(prepared, seen, together, {}, stream(0, "fit", "objective"))

    return epoch


def stacked_gain(split: Split, repeats: int) -> dict[str, float]:
    """How much faster an epoch of stacked nets is than as many hand-written loops."""
    weights = torch.rand(len(split), MEMBERS) + 0.5
    seconds = interleaved(
        {
            "loops": bare_loops(split, weights),
            "stacked": stacked_epoch(split, weights, 0.0),
            "mixup": stacked_epoch(split, weights, SIGMA),
        },
        repeats=repeats,
        clock=time.process_time,
    )
    return {
        "loops / stacked": ratio(seconds, "loops", "stacked"),
        "loops / stacked with mixup": ratio(seconds, "loops", "mixup"),
        "stacked epoch seconds": round(statistics.median(seconds["stacked"]), 4),
    }


def table(rows: Sequence[tuple[str, float, str, float]]) -> str:
    """Every case with its bar: ``(name, measured, "at most" or "at least", bar)``."""
    lines = [f"{'':<58} {'measured':>8}  bar"]
    for name, measured, side, bar in rows:
        holds = measured <= bar if side == "at most" else measured >= bar
        lines.append(f"{name:<58} {measured:>8.2f}  {side} {bar:g}: {'holds' if holds else 'MISSED'}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="a tenth of the rows, two epochs; writes no result")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    part, few = (10, {"epochs": 2}) if arguments.smoke else (1, {})
    head, mlp = HEAD.updated(few), TABLE.updated(few)
    result: dict[str, dict[str, float]] = {}
    rows: list[tuple[str, float, str, float]] = []

    def add(name: str, found: dict[str, float], key: str, side: str, bar: float) -> None:
        result[name] = found
        rows.append((f"{name}: {key}", found[key], side, bar))

    for width in WIDTHS:
        task = task_of(5_000 // part, 1_200 // part, width)
        case = Case.of(task, Linear(), head)
        name = f"linear head, {len(task.splits['train'])} × {width}"
        add(name, selection_cost(case, arguments.repeats), "selection / final fit", "at most", 3)
    task = task_of(20_000 // part, 4_000 // part, 100)
    case = Case.of(task, MLP(hidden=(128, 64)), mlp)
    name = f"mlp 128-64, {len(task.splits['train'])} × 100"
    add(name, selection_cost(case, arguments.repeats), "selection / final fit", "at most", 5)
    for width in WIDTHS:
        split = task_of(5_000 // part, 8, width).splits["train"]
        name = f"{MEMBERS} stacked, {len(split)} × {width}"
        add(name, stacked_gain(split, 3 * arguments.repeats), "loops / stacked", "at least", 8)
    if not arguments.smoke:
        write("race", {"results": result}, show=False)
    print(table(rows))


if __name__ == "__main__":
    main()
