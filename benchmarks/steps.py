"""Time of one gradient step of each method, over the time of a hand-written ERM step.

MLP 64-64-2, batch 128, N = 10,000, four groups, one torch thread, epochs run in turn, median of the paired ratios. The arguments of
the method's final fit are captured, and its epochs are run by umix's loop. For methods with earlier stages, the time of the whole
training over the sum of their fits is also measured. Run: python benchmarks/steps.py
"""

import contextlib
import time

import torch
from loop import bare, erm_step, mlp
from measure import interleaved, ratio, write
from torch import Tensor

from umix import METHODS
from umix.core.streams import stream, torch_stream
from umix.data.groups import Groups
from umix.data.loader import batches, n_batches
from umix.data.samplers import Shuffled
from umix.data.task import Split, Task
from umix.methods.method import Method
from umix.nets.mlp import MLP
from umix.training.engine import Engine
from umix.training.epoch_log import EpochLog
from umix.training.fit_settings import FitSettings
from umix.training.loop import descend, run_epoch
from umix.training.trainer import Trainer

BATCH, N = 128, 10_000
SHORT = {"umix": {"length": 1}, "lisa_umix": {"length": 1}, "jtt": {"identification_epochs": 1, "upweight": 1}}


class CapturedError(Exception):
    """Stops the training of a method when the arguments of its final fit are captured."""


def task() -> Task:
    generator = torch.Generator().manual_seed(0)

    def split(n: int) -> Split:
        y, a = (torch.randint(2, (n,), generator=generator) for _ in range(2))
        x = torch.randn(n, 64, generator=generator) + y[:, None]
        return Split(x, y, Groups.cells(y, a, labels=("0", "1"), attributes=("a", "b")))

    return Task("synthetic", {"train": split(N), "val": split(500), "test": split(500)}, ("0", "1"))


def trainer_for(method: Method, data: Task) -> Trainer:
    settings = FitSettings(epochs=1, batch_size=BATCH, lr=0.01)
    return Trainer(data, MLP(hidden=(64,)), settings, groups=method.needs_groups, engine=Engine("cpu"))


def epoch_of(method: Method, data: Task):
    """A function that runs an epoch of the method's final fit; None if the method has no final fit."""
    trainer, fit_arguments = trainer_for(method, data), {}

    def capture(objective, *, sampler=None, step=descend, companion=False, uncertainty=None):
        fit_arguments.update(
            objective=objective.logging_lambda(EpochLog().see_lambda),
            sampler=sampler or Shuffled(),
            step=step,
            companion=companion,
        )
        raise CapturedError

    trainer.fit = capture
    with contextlib.suppress(CapturedError):
        method.train(trainer)
    if not fit_arguments:
        return None
    net = trainer._fresh_net("fit")
    if fit_arguments["companion"]:
        net.companion = trainer._fresh_net("fit", "companion")
    optimizer = trainer.settings.make_optimizer(net)
    prepared = Engine("cpu").prepare(net, optimizer, precision="32-true")
    objective, train = fit_arguments["objective"], trainer.splits["train"]
    state: dict[str, Tensor] = dict(objective.init(4))
    # Steps late in the fit, so that annealed penalties have their full weight.
    first = 10_000

    def epoch() -> None:
        order = fit_arguments["sampler"].draw(train, stream(0, "fit", "order"))[:N]
        seen = batches(train, order, batch_size=BATCH, first_step=first, groups=objective.needs_groups)
        with torch_stream(0, "fit", "noise"):
            state.update(
                run_epoch(prepared, seen, objective, state, stream(0, "fit", "objective"), step=fit_arguments["step"])
            )

    return epoch


def outside_of_fits(method: Method, data: Task) -> float:
    """Whole training time over the time spent in fits (which include the evaluation after each epoch)."""
    trainer = trainer_for(method, data)
    began = time.perf_counter()
    method.train(trainer)
    return round((time.perf_counter() - began) / sum(report.seconds for report in trainer.reports.values()), 3)


def main() -> None:
    torch.set_num_threads(1)
    data = task()
    methods = {name: kind(**SHORT.get(name, {})) for name, kind in METHODS.items()}
    epochs = {name: epoch for name, method in methods.items() if (epoch := epoch_of(method, data)) is not None}
    seconds = interleaved({"bare": bare(mlp(), data.splits["train"], BATCH, erm_step), **epochs}, repeats=15)
    staged = {name: outside_of_fits(method, data) for name, method in methods.items() if method.stages}
    write(
        "steps",
        {
            "setting": f"MLP 64-64-2, batch {BATCH}, N {N}, {n_batches(N, BATCH)} steps per epoch, 4 groups",
            "step / bare ERM step": {name: ratio(seconds, name, "bare") for name in epochs},
            "whole training / its fits": staged,
            "bare epoch seconds": round(min(seconds["bare"]), 4),
        },
    )


if __name__ == "__main__":
    main()
