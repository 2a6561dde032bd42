"""Time of one gradient step of each method, over the time of a hand-written ERM step.

MLP 64-64-2, batch 128, N = 10,000, four groups, one torch thread, epochs run in turn, median of the paired ratios. The arguments of
the method's final fit are captured, and its epochs are run by umix's loop. For methods with earlier stages, the time of the whole
training over the sum of their fits is also measured, and for all how many operators of torch a step starts.

A bare step takes about 320 µs, and an operator on tensors of this size about 5 µs, so 1.35 leaves room for some 22 operators more
than ERM's. Above it stay irm (41 more), coral (49, and products of 128×128 matrices) and ib_irm (61), whose penalties need them;
chi2_doro (29); lisa, lisa_umix and domainmix, which find partners on the host; mmd, with 7·128² exponentials; cnc, with the
similarities of all pairs; lff, which trains two nets; and fish, which takes a step for every group.
Run: python benchmarks/steps.py
"""

import inspect
import time
from collections.abc import Callable
from typing import Any, NoReturn
from unittest.mock import patch

import torch
from loop import bare, erm_step, mlp
from measure import interleaved, ratio, write
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from umix import METHODS
from umix.core.streams import stream, torch_stream
from umix.data.groups import Groups
from umix.data.loader import batches, n_batches
from umix.data.samplers import Shuffled
from umix.data.task import Split, Task
from umix.methods.method import Method
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.engine import Engine
from umix.training.fit_settings import FitSettings
from umix.training.loop import run_epoch
from umix.training.progress import EpochLog
from umix.training.stage import FINAL

BATCH, N = 128, 10_000
LATE = 10_000  # the first step's number: late in the fit, so that annealed penalties have their full weight
SHORT = {"umix": {"length": 1}, "lisa_umix": {"length": 1}, "jtt": {"identification_epochs": 1, "upweight": 1}}


class CapturedError(Exception):
    """Stops the training of a method when the arguments of its final fit are captured."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__()
        self.arguments = arguments


def task() -> Task:
    generator = torch.Generator().manual_seed(0)

    def split(n: int) -> Split:
        y, a = (torch.randint(2, (n,), generator=generator) for _ in range(2))
        x = torch.randn(n, 64, generator=generator) + y[:, None]
        return Split(x, y, Groups.cells(y, a, labels=("0", "1"), attributes=("a", "b")))

    return Task("synthetic", {"train": split(N), "val": split(500), "test": split(500)}, ("0", "1"))


def context_for(method: Method, data: Task) -> Context:
    settings = FitSettings(epochs=1, batch_size=BATCH, lr=0.01)
    return Context(data, MLP(hidden=(64,)), settings, groups=method.needs_groups, engine=Engine("cpu"))


def final_fit(method: Method, context: Context) -> dict[str, Any] | None:
    """The arguments with which the method calls ``Context.fit``, the context among them; None if it makes its net in another way.

    Stages before the final fit are trained: what they find may be among the arguments.
    """
    signature = inspect.signature(Context.fit)

    def capture(*args: Any, **kwargs: Any) -> NoReturn:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        raise CapturedError(given.arguments)

    try:
        with patch.object(Context, "fit", capture):
            method.train(context)
    except CapturedError as captured:
        return captured.arguments
    return None


def epoch_of(method: Method, data: Task) -> Callable[[], None] | None:
    """A function that runs an epoch of the method's final fit as ``Context.fit`` does; None if the method has no final fit."""
    given = final_fit(method, context_for(method, data))
    if given is None:
        return None
    context = given["self"]
    net = context.fresh_net(FINAL)
    if given["companion"]:
        net.companion = context.fresh_net(FINAL, "companion")
    objective = given["objective"].logging_lambda(EpochLog().see_lambda)
    sampler, train = given["sampler"] or Shuffled(), context.splits["train"]
    optimizer = context.final_settings.make_optimizer(net)
    prepared = context.engine.prepare(net, optimizer, precision="32-true")
    state: dict[str, Tensor] = dict(objective.init(len(context.task.training_groups)))

    def epoch() -> None:
        order = sampler.draw(train, stream(0, FINAL, "order"))[:N]
        seen = batches(train, order, batch_size=BATCH, first_step=LATE, groups=objective.needs_groups)
        with torch_stream(0, FINAL, "noise"):
            state.update(run_epoch(prepared, seen, objective, state, stream(0, FINAL, "objective"), step=given["step"]))

    return epoch


def operators(epoch: Callable[[], None]) -> float:
    """How many operators of torch a step starts, backward pass and optimiser included: on so small a net they are its time."""
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        epoch()
    started = [
        event
        for event in profiled.events()
        if event.name.startswith("aten::")
        and (event.cpu_parent is None or not event.cpu_parent.name.startswith("aten::"))
    ]
    return round(len(started) / n_batches(N, BATCH), 1)


def outside_of_fits(method: Method, data: Task) -> float | None:
    """Whole training time over the time spent in fits (which include the evaluation after each epoch); None without fits."""
    context = context_for(method, data)
    began = time.perf_counter()
    method.train(context)
    seconds, reports = time.perf_counter() - began, context.journal.reports.values()
    return round(seconds / sum(report.seconds for report in reports), 3) if reports else None


def main() -> None:
    torch.set_num_threads(1)
    data = task()
    methods = {name: kind(**SHORT.get(name, {})) for name, kind in METHODS.items()}
    fits = {name: epoch for name, method in methods.items() if (epoch := epoch_of(method, data)) is not None}
    epochs = {"bare": bare(mlp(), data.splits["train"], BATCH, erm_step), **fits}
    seconds = interleaved(epochs, repeats=31)
    staged = {name: outside_of_fits(method, data) for name, method in methods.items() if method.stages}
    write(
        "steps",
        {
            "setting": f"MLP 64-64-2, batch {BATCH}, N {N}, {n_batches(N, BATCH)} steps per epoch, 4 groups",
            "step / bare ERM step": {name: ratio(seconds, name, "bare") for name in fits},
            "operators per step": {name: operators(epoch) for name, epoch in epochs.items()},
            "whole training / its fits": staged,
            "bare epoch seconds": round(min(seconds["bare"]), 4),
        },
    )


if __name__ == "__main__":
    main()
