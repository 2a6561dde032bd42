"""Overhead of umix when only a head is trained: epochs on stored features of a frozen net, against hand-written loops.

Both sides have the same linear head, optimiser, preloaded tensors and batch size, one torch thread, and are run in turn. The
hand-written mixup has two forms: the formula as it is written, and with preallocated buffers, the fastest form known to us. Times
are processor times, which other programs on the machine disturb less than wall-clock times. A fit of umix does everything that a
run does in an epoch: training, evaluation of val and test, weights of the best epochs, and a checkpoint. The hand-written loop
trains and evaluates.

Run: python benchmarks/head.py
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from loop import ALPHA, FIT, SIGMA, bare, erm_step, ours, split_of, umix_step
from measure import interleaved, ratio, write
from torch import Tensor, nn

from umix.core.streams import stream
from umix.data.task import Split, Task
from umix.models.mlp import Linear
from umix.models.net import Net
from umix.training.context import Context
from umix.training.engine import Engine
from umix.training.fit_settings import FitSettings
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import MeanRisk

SIZES = ((7_500, 1280, 64), (7_500, 2048, 64), (7_500, 2048, 256), (20_000, 2048, 128))  # examples, features, batch


def buffered_mixup(head: nn.Linear, split: Split, batch_size: int, weights: Tensor) -> Callable[[], None]:
    """A hand-written epoch of weighted mixup that allocates no memory per batch."""
    optimizer = FIT.make_optimizer(head)
    x, y, n = split.x, split.y, len(split)
    batch, partner = (torch.empty(batch_size, x.shape[1]) for _ in range(2))

    def epoch() -> None:
        order, rng = torch.randperm(n), stream(0, "fit", "objective")
        for begin in range(0, n, batch_size):
            index = order[begin : begin + batch_size]
            inputs, labels, w = torch.index_select(x, 0, index, out=batch[: len(index)]), y[index], weights[index]
            optimizer.zero_grad()
            if rng.random() >= SIGMA:
                risk = (w * F.cross_entropy(head(inputs), labels, reduction="none")).mean()
            else:
                lam, pair = rng.beta(ALPHA, ALPHA), torch.from_numpy(rng.permutation(len(index)))
                torch.index_select(inputs, 0, pair, out=partner[: len(index)]).lerp_(inputs, lam)
                logits = head(partner[: len(index)])
                first = F.cross_entropy(logits, labels, reduction="none")
                second = F.cross_entropy(logits, labels[pair], reduction="none")
                risk = (lam * w * first + (1 - lam) * w[pair] * second).mean()
            risk.backward()
            optimizer.step()

    return epoch


def epochs(n: int, width: int, batch_size: int, repeats: int) -> dict[str, float]:
    """Ratios of one training epoch."""
    split, weights = split_of(torch.randn(n, width)), torch.rand(n) + 0.5
    net = Linear().build(split.x[0], 2)
    mixup = MixupRisk(weights=weights, sigma=SIGMA, alpha=ALPHA)
    seconds = interleaved(
        {
            "bare": bare(net, split, batch_size, erm_step),
            "erm": ours(net, split, batch_size, MeanRisk()),
            "bare mixup": bare(net, split, batch_size, umix_step(weights)),
            "buffers": buffered_mixup(net.head, split, batch_size, weights),
            "umix": ours(net, split, batch_size, mixup),
        },
        repeats=repeats,
        clock=time.process_time,
    )
    return {
        "erm / bare": ratio(seconds, "erm", "bare"),
        "umix stage 2 / bare weighted mixup": ratio(seconds, "umix", "bare mixup"),
        "umix stage 2 / bare weighted mixup with buffers": ratio(seconds, "umix", "buffers"),
        "umix stage 2 / bare erm": ratio(seconds, "umix", "bare"),
        "bare erm epoch seconds": round(min(seconds["bare"]), 4),
    }


def whole_fit(n: int, width: int, batch_size: int, repeats: int) -> dict[str, float]:
    """Time of a fit of five epochs, with evaluation, saved weights and checkpoints, over a hand-written train-and-evaluate loop."""
    train, held_out = split_of(torch.randn(n, width)), split_of(torch.randn(n // 4, width))
    task = Task("features", {"train": train, "val": held_out, "test": held_out}, ("0", "1"))
    settings = FitSettings(epochs=5, batch_size=batch_size, optimizer="sgd", lr=0.01, momentum=0.9)
    net = Linear().build(train.x[0], 2)
    epoch = bare(net, train, batch_size, erm_step)

    @torch.inference_mode()
    def hits(net: Net) -> None:
        correct = (net(held_out.x).argmax(1) == held_out.y).float()
        correct @ held_out.member_float

    def by_hand() -> None:
        for _ in range(settings.epochs):
            epoch()
            hits(net)
            hits(net)

    def by_umix() -> None:
        with tempfile.TemporaryDirectory() as folder:
            Context(task, Linear(), settings, directory=Path(folder), engine=Engine("cpu")).fit(MeanRisk())

    seconds = interleaved({"bare": by_hand, "umix": by_umix}, repeats=repeats, clock=time.process_time)
    return {
        "umix / training and evaluating by hand": ratio(seconds, "umix", "bare"),
        "bare seconds": round(min(seconds["bare"]), 3),
    }


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    results = {f"{n} × {width}, batch {size}": epochs(n, width, size, repeats=15) for n, width, size in SIZES}
    fit = {f"{n} × {width}, batch {size}": whole_fit(n, width, size, repeats=7) for n, width, size in SIZES[:2]}
    write("head", {"one epoch": results, "a fit of 5 epochs": fit})


if __name__ == "__main__":
    main()
