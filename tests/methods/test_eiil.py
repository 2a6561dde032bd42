"""EIIL's recipe: reference, environments, GroupDRO."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars
import pytest
import torch

from umix.cli import main
from umix.data.samplers import Balanced
from umix.data.task import Task
from umix.methods.eiil import EIIL
from umix.methods.parts.worst_group_risk import WorstGroupRisk
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage
from umix.training.train_result import TrainResult

Make = Callable[..., Context]


def parameters(net: Net) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def groups_of(run: Context, result: TrainResult) -> torch.Tensor:
    return 2 * run.task.splits["train"].y + result.per_example["environment"]


def test_without_ascent_it_is_group_balanced_erm_on_the_inferred_groups(context: Make) -> None:
    run = context()
    result = EIIL(step_size=0).train(run)
    group = groups_of(run, result)
    assert set(group.tolist()) == {0, 1, 2, 3}  # so that every batch, of 32 or 12, holds the four in equal parts
    balanced = context().fit(MeanRisk(), sampler=Balanced(group)).net
    torch.testing.assert_close(parameters(result.net), parameters(balanced))


def test_with_ascent_it_is_group_dro_on_the_inferred_groups(context: Make) -> None:
    run = context()
    result = EIIL(step_size=0.5, adjustment=2.0).train(run)
    group = groups_of(run, result)
    objective = WorstGroupRisk(step_size=0.5, adjustment=2.0, sizes=torch.bincount(group, minlength=4), group=group)
    assert torch.equal(parameters(result.net), parameters(context().fit(objective, sampler=Balanced(group)).net))


def test_with_two_classes_the_environment_is_whether_the_reference_is_wrong(context: Make) -> None:
    run, other = context(), context()
    result = EIIL(reference_epochs=3).train(run)
    wrong = other.logits(other.reference(ErmStage("reference", 3)), "train").argmax(1) != other.task.splits["train"].y
    assert torch.equal(result.per_example["environment"] == 1, wrong)
    assert run.journal.reports["reference"].epochs == 3


def test_environment_one_is_rich_in_minority_examples(context: Make) -> None:
    run = context(fit={"lr": 0.1})
    result = EIIL(reference_epochs=5).train(run)
    group, environment = run.task.splits["train"].group, result.per_example["environment"].float()
    minority = (group == 1) | (group == 2)
    assert environment[minority].mean() > 2 * environment[~minority].mean()


def test_an_empty_environment_is_said_in_words_and_the_groups_are_the_classes(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    easy = replace(train, x=4 * torch.nn.functional.one_hot(train.y, 2).float())
    task = Task("easy", {**moons.splits, "train": easy}, moons.classes)
    result = EIIL(reference_epochs=3).train(context(task=task))
    assert set(result.per_example["environment"].tolist()) == {0}
    assert any("environments is empty" in warning for warning in result.warnings)
    objective = WorstGroupRisk(step_size=0.01, adjustment=0.0, sizes=torch.bincount(easy.y), group=easy.y)
    expected = context(task=task).fit(objective, sampler=Balanced(easy.y)).net
    assert torch.equal(parameters(result.net), parameters(expected))


def test_the_weights_command_writes_environments_and_says_that_there_are_no_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = [f"--set={setting}" for setting in ("epochs=2", "sizes=[40,8,8,40]", "eval_size=10", "hidden=[8]")]
    assert main(["run", "four_moons", "eiil", *fast, "--quiet", "--out", str(tmp_path)]) == 0
    directory = next(tmp_path.glob("four_moons-eiil-*"))
    output = tmp_path / "examples.csv"
    assert main(["weights", str(directory), "-o", str(output)]) == 0
    assert "(index, label, group, environment); its method gives examples no weights" in capsys.readouterr().out
    table = polars.read_csv(output)
    assert table.columns == ["index", "label", "group", "environment"]
    assert set(table["environment"].to_list()) <= {0, 1}
    assert len(table) == 96
