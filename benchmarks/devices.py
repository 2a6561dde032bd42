"""Seconds per step of ERM on a net of ResNet-18's size: one run on two processes against one, each with one thread.

Measures wall-clock seconds and the processor seconds of one process. Other programs on the machine disturb the latter less.

Run: python benchmarks/devices.py — on an idle machine with two cores; rewrites benchmarks/results/devices.json.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import torch
from measure import write
from resnet import resnet_body
from torch import nn

from umix.core.streams import stream
from umix.data.batch import Batch
from umix.models.net import Net
from umix.training.engine import Engine
from umix.training.loop import descend
from umix.training.objective import MeanRisk

BATCH, SIDE = 32, 64


def steps(devices: int, count: int) -> None:
    """Print wall-clock and processor seconds per step of the first process, without the first two steps."""
    engine = Engine("cpu", devices=devices)
    engine.launch()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = Net(resnet_body(), nn.Linear(512, 2))
    x, y = torch.randn(BATCH, 3, SIDE, SIDE), torch.randint(2, (BATCH,))
    batch = Batch(x, y, torch.arange(BATCH))
    prepared = engine.prepare(net, torch.optim.SGD(net.parameters(), 0.01), precision="32-true")
    seconds = []
    for _ in range(count + 2):
        began, worked = time.perf_counter(), time.process_time()
        descend(prepared, MeanRisk(), batch, {}, stream(0, "fit", "objective"))
        seconds.append((time.perf_counter() - began, time.process_time() - worked))
    if engine.first:
        print(" ".join(f"{statistics.median(kind):.5f}" for kind in zip(*seconds[2:], strict=True)))


def measured(devices: int, count: int) -> list[float]:
    """The output of ``steps``, run in separate processes."""
    command = [sys.executable, __file__, "--only", str(devices), "--steps", str(count)]
    return [float(word) for word in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", type=int)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.only:
        steps(arguments.only, arguments.steps)
    else:
        found = [[measured(devices, arguments.steps) for devices in (1, 2)] for _ in range(arguments.repeats)]
        kinds = {}
        for kind, name in enumerate(("clock", "processor")):
            one, two = ([repeat[devices][kind] for repeat in found] for devices in range(2))
            ratio = statistics.median(b / a for a, b in zip(one, two, strict=True))
            kinds[name] = {"1 process": one, "2 processes": two, "ratio": round(ratio, 3)}
        write("devices", {"batch": BATCH, "side": SIDE, "seconds_per_step": kinds, "load_average": os.getloadavg()[0]})
