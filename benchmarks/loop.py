"""Overhead of umix against a plain PyTorch loop: epochs, evaluation passes and the memory of the trajectory.

Every ratio compares umix with a hand-written loop in this file: same net, same optimiser, same preloaded tensors, one torch thread,
run in turn. Run: python benchmarks/loop.py
"""

import tracemalloc
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from measure import interleaved, ratio, write
from resnet import resnet_body
from torch import Tensor, nn

from umix.core.counts import group_counts
from umix.core.streams import stream, torch_stream
from umix.data.groups import Groups
from umix.data.loader import batches
from umix.data.samplers import Shuffled
from umix.data.task import Split
from umix.models.net import Net
from umix.training.engine import Engine
from umix.training.evaluate import correctness
from umix.training.fit_settings import FitSettings
from umix.training.loop import run_epoch
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import MeanRisk, Objective
from umix.training.trajectory import Trajectory

SIGMA, ALPHA = 0.5, 0.5
FIT = FitSettings(optimizer="sgd", lr=0.01, momentum=0.9)


def split_of(x: Tensor, n_groups: int = 4) -> Split:
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.integers(2, size=len(x)))
    member = torch.from_numpy(rng.random((len(x), n_groups)) < 0.1)
    return Split(x, y, Groups(member, tuple(f"group {g}" for g in range(n_groups))))


def mlp() -> Net:
    return Net(nn.Sequential(nn.Linear(64, 64), nn.ReLU()), nn.Linear(64, 2))


def resnet() -> Net:
    return Net(resnet_body(), nn.Linear(512, 2))


Step = Callable[[nn.Module, Tensor, Tensor, Tensor, np.random.Generator], Tensor]


def bare(layers: Net, split: Split, batch_size: int, step: Step) -> Callable[[], None]:
    """A hand-written epoch."""
    net = nn.Sequential(*layers.body, layers.head)
    optimizer = FIT.make_optimizer(net)
    x, y, n = split.x, split.y, len(split)

    def epoch() -> None:
        net.train()
        order, rng = torch.randperm(n), stream(0, "fit", "objective")
        for begin in range(0, n, batch_size):
            index = order[begin : begin + batch_size]
            optimizer.zero_grad()
            step(net, x[index], y[index], index, rng).backward()
            optimizer.step()

    return epoch


def ours(
    net: Net, split: Split, batch_size: int, objective: Objective, after: Callable[[], None] = lambda: None
) -> Callable[[], None]:
    """An epoch of umix's fit."""
    optimizer = FIT.make_optimizer(net)
    prepared = Engine("cpu").prepare(net, optimizer, precision="32-true")

    def epoch() -> None:
        order = Shuffled().draw(split, stream(0, "fit", "order"))
        with torch_stream(0, "fit", "noise"):
            seen = batches(split, order, batch_size=batch_size)
            run_epoch(prepared, seen, objective, {}, stream(0, "fit", "objective"), tick=lambda steps: None)
        after()

    return epoch


def erm_step(net: nn.Module, x: Tensor, y: Tensor, index: Tensor, rng: np.random.Generator) -> Tensor:
    return F.cross_entropy(net(x), y)


def umix_step(weights: Tensor) -> Step:
    """Hand-written weighted mixup, as in the paper's formula."""

    def step(net: nn.Module, x: Tensor, y: Tensor, index: Tensor, rng: np.random.Generator) -> Tensor:
        w = weights[index]
        if rng.random() >= SIGMA:
            return (w * F.cross_entropy(net(x), y, reduction="none")).mean()
        lam, pair = rng.beta(ALPHA, ALPHA), torch.from_numpy(rng.permutation(len(y)))
        logits = net(lam * x + (1 - lam) * x[pair])
        first = F.cross_entropy(logits, y, reduction="none")
        second = F.cross_entropy(logits, y[pair], reduction="none")
        return (lam * w * first + (1 - lam) * w[pair] * second).mean()

    return step


def epochs(make: Callable[[], Net], split: Split, batch_size: int, repeats: int) -> dict[str, float]:
    net = (
        make()
    )  # the same net for all variants, because the place of its weights in memory changes times by some percent
    weights = torch.rand(len(split)) + 0.5
    trajectory = Trajectory(len(split))

    def end_epoch() -> None:
        trajectory.end_epoch()
        trajectory.truncate(0)

    seconds = interleaved(
        {
            "bare": bare(net, split, batch_size, erm_step),
            "erm": ours(net, split, batch_size, MeanRisk()),
            "trajectory": ours(net, split, batch_size, MeanRisk(watch=trajectory.see), end_epoch),
            "bare mixup": bare(net, split, batch_size, umix_step(weights)),
            "umix": ours(net, split, batch_size, MixupRisk(weights=weights, sigma=SIGMA, alpha=ALPHA)),
        },
        repeats=repeats,
    )
    return {
        "erm / bare": ratio(seconds, "erm", "bare"),
        "erm with online trajectory / bare": ratio(seconds, "trajectory", "bare"),
        "umix stage 2 / bare weighted mixup": ratio(seconds, "umix", "bare mixup"),
        "bare epoch seconds": round(min(seconds["bare"]), 4),
    }


def evaluation(n: int, n_groups: int, repeats: int) -> dict[str, float]:
    split, net = split_of(torch.randn(n, 64), n_groups), mlp()
    member = split.member.float()

    @torch.inference_mode()
    def by_hand() -> None:
        net.eval()
        parts = [net(split.x[begin : begin + 8192]).argmax(1) for begin in range(0, n, 8192)]
        (torch.cat(parts) == split.y).float() @ member

    def by_umix() -> None:
        group_counts(correctness(net, split, batch_size=128), split.member_float)

    seconds = interleaved({"bare": by_hand, "umix": by_umix}, repeats=repeats)
    return {
        "umix / slicing + one matmul": ratio(seconds, "umix", "bare"),
        "bare seconds": round(min(seconds["bare"]), 4),
    }


def trajectory_memory(n: int, n_epochs: int) -> dict[str, float]:
    """Peak bytes while recording; torch's pending batches are counted by hand because tracemalloc does not see them."""
    pending = 0
    tracemalloc.start()
    trajectory = Trajectory(n)
    for _ in range(n_epochs):
        for begin in range(0, n, 1024):
            index = torch.arange(begin, min(begin + 1024, n))
            trajectory.see(index, torch.randn(len(index), 2), torch.zeros(len(index), dtype=torch.int64))
            pending = max(pending, sum(t.nbytes for batch in trajectory._pending for t in batch))
        trajectory.end_epoch()
    peak = tracemalloc.get_traced_memory()[1] + pending
    tracemalloc.stop()
    return {"peak bytes": peak, "limit 2·N·T/8 + 1 MiB": 2 * n * n_epochs // 8 + 2**20, "N": n, "T": n_epochs}


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    result = {
        "mlp 64-64-2, batch 128, N 10000": epochs(mlp, split_of(torch.randn(10_000, 64)), 128, repeats=31),
        "resnet-18 size, 3x64x64, batch 32, N 96": epochs(resnet, split_of(torch.randn(96, 3, 64, 64)), 32, repeats=15),
        "evaluation, N 130000, 16 overlapping groups": evaluation(130_000, 16, repeats=15),
        "trajectory memory": trajectory_memory(1_000_000, 20),
    }
    write("loop", result)


if __name__ == "__main__":
    main()
