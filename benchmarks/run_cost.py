"""What a small run costs beside a script that does the same work by hand: with its folder, checkpoints and record, and without.

Both load the task, train ERM, evaluate validation and test after every epoch, keep the weights of the epoch with the best worst
group on validation, and write a record; umix also everything else that a run leaves. One torch thread, run in turn.
Run: python benchmarks/run_cost.py
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from measure import interleaved, ratio, write
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from umix import RunSpec, execute
from umix.bench.runs.execute import execute_in_memory
from umix.data.task import Split, Task

BUDGET = {"execute / by hand": 1.05}
#: Tasks and the settings that make their runs as long as small runs of one's own data are.
RUNS = {"colored_digits": {}, "four_moons": {"fit.epochs": 60}}


def group_hits(net: nn.Module, split: Split, member: Tensor) -> Tensor:
    """Hits of every group, in one pass."""
    net.eval()
    with torch.inference_mode():
        parts = [net(split.x[begin : begin + 8192]).argmax(dim=1) for begin in range(0, len(split), 8192)]
        return (torch.cat(parts) == split.y).float() @ member


def by_hand(spec: RunSpec, folder: Path) -> None:
    """The run of ``spec`` as a script: its best weights and its record lie in ``folder`` afterwards."""
    plan = spec.plan
    task: Task = plan.source.load(None)
    torch.manual_seed(spec.seed)
    train, val, test = (task.splits[name] for name in ("train", "val", "test"))
    widths = [train.x[0].numel(), *plan.net.model_dump()["hidden"]]
    layers = [layer for before, after in pairwise(widths) for layer in (nn.Linear(before, after), nn.ReLU())]
    net = nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], task.n_classes))
    optimizer = torch.optim.SGD(net.parameters(), lr=plan.fit.lr, momentum=plan.fit.momentum)
    member = {name: split.member.float() for name, split in (("val", val), ("test", test))}
    sizes = member["val"].sum(dim=0)
    best, weights, epochs = -1.0, {}, []
    for epoch in range(plan.fit.epochs):
        net.train()
        began, total = time.perf_counter(), torch.zeros(())
        for index in torch.randperm(len(train)).split(plan.fit.batch_size):
            optimizer.zero_grad()
            risk = cross_entropy(net(train.x[index]), train.y[index])
            risk.backward()
            optimizer.step()
            total += risk.detach()
        seconds = time.perf_counter() - began
        on_val, on_test = group_hits(net, val, member["val"]), group_hits(net, test, member["test"])
        worst = float((on_val / sizes).min())
        if worst > best:
            best, weights = worst, {name: tensor.clone() for name, tensor in net.state_dict().items()}
        row = {"epoch": epoch, "risk": float(total), "seconds": seconds}
        epochs.append({**row, "val": on_val.tolist(), "test": on_test.tolist()})
    folder.mkdir(parents=True)
    torch.save(weights, folder / "best.pt")
    record = {"seed": spec.seed, "groups": list(task.groups), "val sizes": sizes.tolist(), "epochs": epochs}
    (folder / "record.json").write_text(json.dumps(record), encoding="utf-8")


def measured(task: str, settings: dict[str, object], folder: Path, repeats: int) -> dict[str, object]:
    """The ratios of whole runs on ``task``, by the clock and by processor time."""
    spec = RunSpec(task=task, method="erm", seed=0, settings=settings)

    def emptied(run: Callable[[Path], object]) -> Callable[[], None]:
        def once() -> None:
            run(folder / "run")
            shutil.rmtree(folder / "run", ignore_errors=True)

        return once

    variants = {
        "by hand": emptied(lambda path: by_hand(spec, path)),
        "execute": emptied(lambda path: execute(spec, out=path)),
        "in memory": emptied(lambda path: execute_in_memory(spec, spec.plan.source.load(None))),
    }
    found: dict[str, object] = {}
    for name, clock in (("clock", time.perf_counter), ("processor time", time.process_time)):
        seconds = interleaved(variants, repeats=repeats, clock=clock)
        found[name] = {
            "execute / by hand": ratio(seconds, "execute", "by hand"),
            "in memory / by hand": ratio(seconds, "in memory", "by hand"),
            "by hand seconds": round(min(seconds["by hand"]), 3),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="umix-run-cost-"))
    try:
        results: dict[str, object] = {
            task: measured(task, settings, folder, options.repeats) for task, settings in RUNS.items()
        }
    finally:
        shutil.rmtree(folder)
    write("run_cost", {**results, "budget": BUDGET})


if __name__ == "__main__":
    main()
