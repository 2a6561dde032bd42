"""The net of a finished run is loaded, or it is said which file does not fit the record."""

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
from umix.files import read_tensors, write_tensors

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


def change_record(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads((run / "record.json").read_text())
    change(content)
    (run / "record.json").write_text(json.dumps(content))


def change_weights(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    for path in (run / "weights").iterdir():
        tensors, metadata = read_tensors(path, kind="weights")
        change(tensors)
        write_tensors(path, tensors, metadata)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors: tensors.pop("head.bias"), "'head.bias' is missing"),
        (lambda tensors: tensors.update(more=torch.ones(1)), "the net has no 'more'"),
        (lambda tensors: tensors.update({"head.bias": torch.ones(3)}), "'head.bias' must be real numbers [2]"),
        (
            lambda tensors: tensors.update({"head.bias": torch.ones(2).long()}),
            "must be real numbers [2], got int64 [2]",
        ),
        (lambda tensors: tensors["head.bias"].fill_(torch.nan), "must hold finite weights, but 'head.bias' is not"),
    ],
    ids=["missing", "more", "shape", "type", "nan"],
)
def test_weights_that_are_not_those_of_the_net_are_named(
    run: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    change_weights(run, change)
    with pytest.raises(UserError) as caught:
        load_net(load_run(run))
    assert said in str(caught.value)
    assert ".safetensors must " in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda record: record["plan"]["net"].update(hidden=[10**6]),
            "must be of the net that the run's record describes",
        ),
        (lambda record: record["plan"]["net"].update(hidden=["x"]), "net.hidden must be"),
        (lambda record: record["plan"]["net"].update(later=1), "Unknown setting of net 'later'"),
        (lambda record: record["plan"]["net"].update(name="nope"), "must be of the kind nope of its plan, got mlp"),
        (lambda record: record.update(net="os:system"), "which is code"),
        (lambda record: record.update(input_shape=[7]), "must be of the net that the run's record describes"),
        (lambda record: record.update(input_shape=[2**29]), "must be of the net that the run's record describes"),
    ],
    ids=["a net too large", "a text", "an unknown option", "an unknown net", "another net", "inputs", "many inputs"],
)
def test_a_record_of_another_net_is_refused_before_memory_is_taken_for_it(
    run: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    change_record(run, change)
    with pytest.raises(UserError) as caught:
        load_net(load_run(run))
    assert said in str(caught.value)


@pytest.mark.parametrize("run", ["trees"], indirect=True)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors: tensors.pop("body.model"), "'body.model' is missing"),
        (lambda tensors: tensors.update({"body.cut": torch.tensor(10**9)}), "'body.cut' must be at most 1e+06"),
        (lambda tensors: tensors.update({"body.classes": torch.tensor([0, 5])}), "'body.classes' must be at most 1"),
        (lambda tensors: tensors.update({"body.classes": torch.tensor([1, 0])}), "its classes are [1, 0]"),
        (
            lambda tensors: tensors.update({"body.model": tensors["body.model"][:-9].clone()}),
            "A stored model must be whole, but it cannot be read (BadZipFile",
        ),
    ],
    ids=["missing", "stages", "unknown classes", "classes out of order", "torn"],
)
def test_a_stored_estimator_that_does_not_fit_is_refused(
    run: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    change_weights(run, change)
    with pytest.raises(UserError) as caught:
        load_net(load_run(run))
    assert said in str(caught.value)
