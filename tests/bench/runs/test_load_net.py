"""The net of a finished run is loaded, or it is said which file is damaged."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from umix.bench.runs.execute import execute
from umix.bench.runs.load_net import load_net
from umix.bench.runs.record import load_run
from umix.bench.spec.run_spec import RunSpec
from umix.errors import UserError
from umix.store import read_tensors, write_tensors

SIZES = {"sizes": [30, 30, 30, 30], "eval_size": 20}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("runs")
    specs = {
        "mlp": {"epochs": 2, "hidden": [8]},
        "trees": {"net": "trees", "epochs": 1, "net.min_leaf": 2},
    }
    return {
        name: execute(RunSpec(task="four_moons", method="erm", settings={**SIZES, **settings}), out=out).directory
        for name, settings in specs.items()
    }


@pytest.fixture
def run(request: pytest.FixtureRequest, finished: dict[str, Path], tmp_path: Path) -> Path:
    shutil.copytree(finished[getattr(request, "param", "mlp")], tmp_path / "run")
    return tmp_path / "run"


def change_weights(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    for path in (run / "weights").iterdir():
        tensors, metadata = read_tensors(path, kind="weights")
        change(tensors)
        write_tensors(path, tensors, metadata)


def test_weights_of_a_run_that_has_diverged_are_named(run: Path) -> None:
    change_weights(run, lambda tensors: tensors["head.bias"].fill_(torch.nan))
    with pytest.raises(UserError, match=r"\.safetensors must hold finite weights, but 'head\.bias' is not"):
        load_net(load_run(run))


@pytest.mark.parametrize("run", ["mlp", "trees"], indirect=True)
@pytest.mark.parametrize("part", [None, "body.model"], ids=["torn", "a part less"])
def test_damaged_weights_are_one_sentence(run: Path, part: str | None) -> None:
    if part is None:
        for path in (run / "weights").iterdir():
            path.write_bytes(path.read_bytes()[:-9])
    else:
        change_weights(run, lambda tensors: tensors.pop(next(iter(tensors))))
    with pytest.raises(UserError, match=r"\.safetensors is damaged \(.*\); delete the run and run it again\.$"):
        load_net(load_run(run))


def test_code_that_a_record_names_is_never_imported_without_trust(run: Path) -> None:
    content = json.loads((run / "record.json").read_text())
    (run / "record.json").write_text(json.dumps({**content, "net": "os:system"}))
    with pytest.raises(UserError, match="which is code"):
        load_net(load_run(run))
