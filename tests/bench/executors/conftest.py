"""Runs that cannot end before a test lets them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from umix.bench.spec.run_spec import RunSpec

#: After so many calls at least one epoch is over and saved, and not all of them are.
FREE = 30
SETTINGS = {"epochs": 8, "batch_size": 16, "sizes": [60, 4, 4, 60], "eval_size": 5}
MODULE = """
import time
from pathlib import Path

from torch import nn


class Gate(nn.Flatten):
    calls = 0

    def forward(self, x):
        Gate.calls += 1
        while Gate.calls > {free} and not Path({gate!r}).exists():
            time.sleep(0.01)
        return super().forward(x)


def net(example, n_classes):
    return Gate(), nn.Linear(example.numel(), n_classes)
"""


@pytest.fixture
def gated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], RunSpec]:
    """``gated(gate)``: a run whose net waits, some epochs after it started, until the file ``gate`` is there."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)

    def make(gate: Path) -> RunSpec:
        module = f"{tmp_path.name}_{gate.name}"
        (folder / f"{module}.py").write_text(MODULE.format(free=FREE, gate=str(gate)), encoding="utf-8")
        return RunSpec(task="four_moons", method="erm", settings={**SETTINGS, "net": f"{module}:net"})

    return make
