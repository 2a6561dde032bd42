"""SSA: GroupDRO with predicted groups; what it is where all groups are known, and what a CSV with a few groups gives."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest
import torch
from torch import Tensor

from umix.cli import main
from umix.data.groups import Groups
from umix.data.samplers import Balanced
from umix.data.task import Task
from umix.methods.group_dro import GroupDRO, WorstGroupRisk
from umix.methods.parts.attribute_nets import predicted_groups
from umix.methods.ssa import SSA
from umix.models.net import Net
from umix.training.context import Context

Make = Callable[..., Context]


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_where_all_groups_are_known_it_is_group_dro(context: Make) -> None:
    run = context()
    result = SSA(step_size=0.3, adjustment=1.0).train(run)
    known = GroupDRO(step_size=0.3, adjustment=1.0).train(context(groups=True)).net
    assert torch.equal(parameters(result.net), parameters(known))
    assert list(run.journal.reports) == ["fit"]
    assert result.choices["spread"]["words"] == "the groups of all training rows are known: none is guessed"


def test_it_is_group_dro_with_the_predicted_groups(context: Make) -> None:
    run, other = context(use_groups="val"), context(use_groups="val")
    result = SSA(attribute_epochs=2, step_size=0.3, adjustment=1.0).train(run)
    group = predicted_groups(other, user="ssa", epochs=2, threshold=0.95).p.argmax(1)
    assert torch.equal(result.per_example["predicted_group"], group)
    risk = WorstGroupRisk(step_size=0.3, adjustment=1.0, sizes=torch.bincount(group, minlength=4), group=group)
    assert torch.equal(parameters(result.net), parameters(other.fit(risk, sampler=Balanced(group)).net))
    assert (group == run.task.splits["train"].group).double().mean() > 0.8


def test_training_groups_that_may_not_be_used_change_nothing(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    none = replace(train, groups=Groups.from_ids(torch.full((140,), -1), train.groups.names))
    blank = Task(moons.name, {**moons.splits, "train": none}, moons.classes)
    nets = [SSA(attribute_epochs=1).train(context(task=task, use_groups="val")).net for task in (moons, blank)]
    assert torch.equal(*map(parameters, nets))


def people(path: Path, *, known: int, columns: int = 1) -> None:
    """400 rows; sex, which shifts x2, is known for the first ``known`` rows."""
    rng = np.random.default_rng(0)
    lines = ["x1,x2,y,sex" + (",age" if columns == 2 else "")]
    for i in range(400):
        y, sex, age = (int(v) for v in rng.integers(2, size=3))
        values = [f"{rng.normal() + 2 * y:.4f}", f"{rng.normal() + 5 * sex:.4f}", ["no", "yes"][y]]
        values += ["mf"[sex] if i < known else ""]
        if columns == 2:
            values += [("old", "young")[age] if i < known else ""]
        lines.append(",".join(values))
    path.write_text("\n".join(lines) + "\n")


def run_people(folder: Path, method: str, *more: str, groups: str = "sex") -> int:
    fast = [f"--set={setting}" for setting in ("fit.epochs=2", "attribute_epochs=2", "lr=0.05")]
    flags = ["--label", "y", "--groups", groups, "--out", str(folder), "--quiet"]
    return main(["run", str(folder / "people.csv"), method, *flags, *fast, *more])


def test_a_csv_whose_groups_are_known_for_a_few_rows_is_trained_on(tmp_path: Path) -> None:
    people(tmp_path / "people.csv", known=150)
    assert run_people(tmp_path, "ssa") == 0
    (folder,) = tmp_path.glob("people-ssa-*")
    record = json.loads((folder / "record.json").read_text())
    said = record["choices"]["spread"]
    assert said["accuracy"] > 0.9
    assert "guessed by nets" in said["words"]
    assert {"attribute-0", "attribute-1", "attribute-2"} < set(record["stages"])
    assert main(["weights", str(folder), "-o", str(tmp_path / "examples.csv")]) == 0
    table = polars.read_csv(tmp_path / "examples.csv")
    assert table.columns == ["row", "label", "group", "predicted_group"]
    assert (
        table["predicted_group"]
        .str.split(", ")
        .list.first()
        .equals(table["label"].cast(polars.String), check_names=False)
    )


def test_of_two_group_columns_the_combination_is_predicted_and_noise_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Age has nothing to do with the inputs, sex does: together they are told apart better than by chance."""
    people(tmp_path / "people.csv", known=400, columns=2)
    assert run_people(tmp_path, "ssa", "--use-groups", "val", groups="sex,age") == 0
    assert run_people(tmp_path, "ssa", "--use-groups", "val", groups="age") == 2
    assert "ssa must tell the groups of a class apart" in capsys.readouterr().err


def test_no_known_group_and_groups_that_are_only_reported_are_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people(tmp_path / "people.csv", known=150)
    assert run_people(tmp_path, "ssa", "--use-groups", "test") == 2
    assert "ssa trains with the known groups of validation or training, but" in capsys.readouterr().err
    flags = ["--label", "y", "--out", str(tmp_path), "--quiet"]
    assert main(["run", str(tmp_path / "people.csv"), "ssa", *flags]) == 2
    said = capsys.readouterr().err
    assert "ssa needs rows of validation or training whose groups are known, but there are none" in said
    assert "groups_from" not in said
