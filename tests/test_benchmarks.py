"""The scripts that measure umix."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from umix.data.registry import load_task

FOLDER = Path(__file__).parents[1] / "benchmarks"


def test_every_benchmark_finds_what_it_imports() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert {"loop", "race", "real", "study"} <= set(names)
    program = f"import importlib; [importlib.import_module(name) for name in {names}]"
    done = subprocess.run([sys.executable, "-c", program], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("real")


def rates(worst: float, average: float) -> dict[str, float]:
    return {"worst": worst, "worst ±": 0.0, "average": average}


def result(erm: float, ours: float, reference: tuple[float, float]) -> dict[str, Any]:
    erm_by_groups, robust = reference
    return {
        "reference": {"erm": rates(erm_by_groups, 0.9), "group_dro": rates(robust, 0.8)},
        "uses": {"nothing": {"erm": rates(erm, 0.9), "umix": rates(ours, 0.85)}},
    }


def test_the_share_of_the_gain_is_a_ratio_of_sums_over_sets(real: ModuleType) -> None:
    results = {
        "adult, sex": result(0.5, 0.7, (0.6, 0.8)),
        "compas, sex": result(0.4, 0.38, (0.4, 0.6)),
        "adult, race": result(0.1, 0.9, (0.1, 0.2)),  # shown, but not in the sums
    }
    found = real.gain(results, "nothing", "umix")
    assert found.share == pytest.approx((0.2 - 0.02) / (0.2 + 0.2))
    assert (found.lowest_set, found.sets) == ("compas, sex", 2)
    assert found.lowest == pytest.approx(-0.02)
    assert found.average == pytest.approx(-0.05)
    assert real.reference_gain(results).share == pytest.approx(1)
    assert real.gain(results, "nothing", "best") is None


def test_a_task_with_few_known_groups_blanks_those_of_other_validation_rows_only(real: ModuleType) -> None:
    task = load_task("colored_digits")
    few = real.with_known(task, 100, seed=0)
    known = few.splits["val"].groups.codes >= 0
    assert int(known.sum()) == 100
    assert torch.equal(few.splits["val"].groups.codes[known], task.splits["val"].groups.codes[known])
    assert few.splits["train"] is task.splits["train"]
    assert few.splits["test"] is task.splits["test"]
    assert few.source is None
    more = real.with_known(task, 200, seed=0).splits["val"].groups.codes >= 0
    assert bool(more[known].all())
