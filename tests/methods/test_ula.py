"""uLA: what it is where the biased net says nothing, its table, and its recipe."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import Tensor

from umix import RunSpec, execute
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.methods.erm import ERM
from umix.methods.logit_adjustment import LogitAdjustment
from umix.methods.parts.offset_risk import OffsetRisk
from umix.methods.ula import ULA
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.store import read_tensors
from umix.training.context import Context
from umix.training.stage import ErmStage

Make = Callable[..., Context]


@pytest.fixture(scope="module")
def unequal() -> Task:
    """Classes of 360 and 60 examples."""
    return FourMoons(sizes=(180, 32, 180, 28), eval_size=20).load()


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_without_a_correction_it_is_erm_bit_by_bit(context: Make) -> None:
    assert torch.equal(parameters(ULA(eta=0.0).train(context()).net), parameters(ERM().train(context()).net))


@pytest.mark.parametrize("values", [1, 2], ids=["one value", "independent of the class"])
def test_a_biased_net_that_tells_nothing_of_the_class_gives_logit_adjustment(
    context: Make, unequal: Task, monkeypatch: pytest.MonkeyPatch, values: int
) -> None:
    y = unequal.splits["train"].y
    place = torch.zeros(len(y), dtype=torch.int64)
    for label in range(2):  # every second example of either class
        rows = torch.nonzero(y == label)[:, 0]
        place[rows] = torch.arange(len(rows)) % values
    logits = 3.0 * torch.nn.functional.one_hot(place, 2)
    monkeypatch.setattr(Context, "logits", lambda self, net, split: logits)
    found, expected = (method.train(context(task=unequal)) for method in (ULA(eta=1.5), LogitAdjustment(tau=1.5)))
    torch.testing.assert_close(parameters(found.net), parameters(expected.net), atol=0.02, rtol=0)
    assert not torch.allclose(parameters(found.net), parameters(ERM().train(context(task=unequal)).net), atol=0.05)
    assert any("predicts one class for all" in warning for warning in found.warnings) == (values == 1)


def test_the_offsets_are_those_of_the_table_of_the_reference(context: Make, unequal: Task) -> None:
    other = context(task=unequal)
    result = ULA(eta=0.7, temperature=2.0, reference_epochs=2).train(context(task=unequal))
    y = unequal.splits["train"].y.numpy()
    logits = other.logits(other.reference(ErmStage("reference", 2)), "train").double().numpy()
    table = np.ones((2, 2))
    for row, label in zip(softmax(logits / 2.0, axis=1), y, strict=True):
        table[:, label] += row
    rows = logits.argmax(1)
    assert result.per_example["biased_class"].tolist() == rows.tolist()
    assert set(rows) == {0, 1}
    offset = torch.from_numpy(0.7 * np.log(table / table.sum(1, keepdims=True)))[rows].float()  # [n, classes]
    expected = context(task=unequal).fit(OffsetRisk(offset=offset, row=torch.arange(len(y))))
    torch.testing.assert_close(parameters(result.net), parameters(expected.net), atol=1e-5, rtol=0)


def test_the_minority_of_a_shortcut_gains(context: Make) -> None:
    """Two inputs: a weak one that tells the class, and a loud one that agrees with it in 19 of 20 training examples."""

    def draw(cells: tuple[int, ...], seed: int) -> Split:
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(4), cells)
        y, a = group // 2, group % 2
        x = np.stack([2 * y - 1, 4.0 * (2 * a - 1)], axis=1) + rng.normal(size=(len(y), 2)) * [0.7, 0.3]
        return Split(
            torch.from_numpy(x).float(), torch.from_numpy(y), Groups.from_ids(torch.from_numpy(group), list("abcd"))
        )

    splits = {"train": draw((190, 10, 10, 190), 0), "val": draw((20,) * 4, 1), "test": draw((50,) * 4, 2)}
    task = Task("shortcut", splits, ("no", "yes"))
    worst = []
    for method in (ERM(), ULA()):
        run = context(task=task, net=MLP(hidden=()), fit={"epochs": 10})
        worst.append(method.train(run).history.counts("test").hits[-1].min())
    assert worst[1] > worst[0] + 10  # of 50


def test_the_predictions_of_the_biased_net_are_saved_with_the_run(tmp_path: Path) -> None:
    settings = {"sizes": [40, 8, 8, 40], "eval_size": 10, "epochs": 2, "hidden": [8]}
    record = execute(RunSpec(task="four_moons", method="ula", settings=settings), out=tmp_path)
    saved, _ = read_tensors(record.directory / "examples.safetensors", kind="examples")
    assert set(saved) == {"biased_class", "label"}
