"""CnC's recipe: a first net's predictions, balanced batches, contrast of features."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from umix.core.contrast import contrastive_risk

from umix.bench.runs.execute import execute
from umix.bench.spec.run_spec import RunSpec
from umix.core.streams import torch_stream
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.cnc import CnC, ContrastiveRisk
from umix.nets.mlp import MLP
from umix.nets.net import Net
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage
from umix.training.trainer import Trainer

Make = Callable[..., Trainer]


def parameters(net: Net) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def predictions(run: Trainer, epochs: int) -> torch.Tensor:
    return run.logits(run.reference(ErmStage("reference", epochs)), "train").argmax(1)


def test_weight_zero_is_erm_on_the_balanced_rows(trainer: Make) -> None:
    run, other = trainer(), trainer()
    net = CnC(weight=0.0, reference_epochs=2).train(run)
    y = run.task.splits["train"].y
    wrong = (predictions(other, 2) != y).long()
    assert torch.equal(run.kept["environment"], wrong)
    expected = other.fit(MeanRisk(), sampler=Balanced(2 * y + wrong))
    torch.testing.assert_close(parameters(net), parameters(expected))


def test_the_risk_is_the_share_of_contrast_and_of_loss() -> None:
    with torch_stream(0, "test", "init"):
        net = MLP(hidden=(8,)).build(torch.zeros(4), 3)
    rng = np.random.default_rng(0)
    x, y = torch.from_numpy(rng.standard_normal((12, 4))).float(), torch.arange(12) % 3
    predicted = torch.from_numpy(rng.integers(0, 3, 40))
    index = torch.arange(20, 32)
    objective = ContrastiveRisk(predicted=predicted, weight=0.6, temperature=0.2)
    risk, _ = objective.risk(net, Batch(x, y, index), {}, rng)
    contrast = contrastive_risk(net.features(x), y, predicted[20:32], temperature=0.2)
    loss = torch.nn.functional.cross_entropy(net(x), y)
    assert contrast.item() > 0
    assert risk.item() == pytest.approx(0.6 * contrast.item() + 0.4 * loss.item(), rel=1e-6)


def test_contrast_draws_the_features_of_a_class_together(trainer: Make) -> None:
    found = {}
    for weight in (0.0, 0.75):
        run = trainer(fit={"epochs": 10})
        net = CnC(weight=weight).train(run)
        train = run.task.splits["train"]
        found[weight] = contrastive_risk(
            net.features(train.x), train.y, predictions(trainer(), 5), temperature=0.1
        ).item()
    assert found[0.75] < 0.8 * found[0.0]


def test_without_mistakes_of_the_reference_it_is_class_balanced_erm_and_says_so(trainer: Make, moons: Task) -> None:
    train = moons.splits["train"]
    easy = replace(train, x=4 * torch.nn.functional.one_hot(train.y, 2).float())
    task = Task("easy", {**moons.splits, "train": easy}, moons.classes)
    run = trainer(task=task)
    net = CnC(reference_epochs=3).train(run)
    assert any("no features can be contrasted" in warning for warning in run.warnings)
    expected = trainer(task=task).fit(MeanRisk(), sampler=Balanced(easy.y))
    assert torch.equal(parameters(net), parameters(expected))


def test_a_task_of_three_classes_is_trained(trainer: Make, moons: Task) -> None:
    splits = {
        name: replace(split, y=torch.where(split.x[:, 0] > 1, 2, split.y)) for name, split in moons.splits.items()
    }
    net = CnC().train(trainer(task=Task("three", splits, ("a", "b", "c"))))
    assert parameters(net).isfinite().all()


def test_it_runs_where_groups_are_only_reported(tmp_path: Path) -> None:
    fast = {"epochs": 2, "hidden": [8], "sizes": [40, 8, 8, 40], "eval_size": 10, "judge.use_groups": "test"}
    record = execute(RunSpec(task="four_moons", method="cnc", settings=fast), out=tmp_path)
    assert record.stages["reference"].epochs == 5


@pytest.mark.parametrize("bad", [{"weight": 1.0}, {"temperature": 0.0}, {"reference_epochs": 0}])
def test_illegal_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UserError, match=rf"cnc\.{next(iter(bad))} must be a"):
        CnC(**bad)
