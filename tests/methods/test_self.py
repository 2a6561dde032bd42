"""SELF and its baseline: which rows train the last layer, and what they are with all rows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from umix import RunSpec, execute
from umix.cli import main
from umix.data.groups import Groups
from umix.data.samplers import Balanced
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.cb_last_layer import CBLastLayer
from umix.methods.parts.layer_fit import parts_of_validation
from umix.methods.registry import method
from umix.methods.self import SELF, disagreement
from umix.models.net import Net
from umix.training.context import Context
from umix.training.last_layer import fit_last_layer, linear_head
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage

Make = Callable[..., Context]


def layer_of(net: Net) -> Tensor:
    head = linear_head(net)
    return torch.cat([head.weight.detach(), head.bias.detach()[:, None]], dim=1)


def fitted(run: Context, chosen: SELF | CBLastLayer, rows: Tensor | None = None, *, new: bool = False) -> Net:
    """ERM with its last layer trained on ``rows`` of the first part of validation, in class-balanced batches."""
    held_out, rest, _ = parts_of_validation(run, chosen.share)
    given = held_out if rows is None else held_out.rows(rows)
    erm, settings = run.reference(ErmStage("reference", run.settings.epochs)), chosen.layer_settings(run)
    sampler = Balanced(given.y)
    return fit_last_layer(run, erm, given, MeanRisk(), settings=settings, sampler=sampler, new=new, val=rest).net


def test_the_rows_that_the_early_net_disagrees_about_most_train_the_layer_of_erm(context: Make) -> None:
    chosen, run = SELF(n=15, early=0.5, layer_epochs=2), context()
    erm, early = run.reference(ErmStage("reference", 4)), run.reference(ErmStage("early", 2))
    held_out, rest, _ = parts_of_validation(run, 0.5)
    scores = disagreement(early(held_out.x).detach(), erm(held_out.x).detach())
    rows = scores.argsort(descending=True)[:15].sort().values
    actual = context()
    result = chosen.train(actual)
    assert torch.equal(layer_of(result.net), layer_of(fitted(context(), chosen, rows)))
    assert [actual.journal.reports[name].epochs for name in ("reference", "early", "fit")] == [4, 2, 2]
    assert result.history.counts("val").n == len(rest) == 40  # the other half


def test_by_loss_the_rows_of_the_largest_losses_train_it_and_there_is_no_early_net(context: Make) -> None:
    chosen, run = SELF(n=9, by="loss", layer_epochs=2), context()
    erm = run.reference(ErmStage("reference", 4))
    held_out, _, _ = parts_of_validation(run, 0.5)
    losses = torch.nn.functional.cross_entropy(erm(held_out.x).detach(), held_out.y, reduction="none")
    rows = losses.topk(9).indices.sort().values
    actual = context()
    assert torch.equal(layer_of(chosen.train(actual).net), layer_of(fitted(context(), chosen, rows)))
    assert list(actual.journal.reports) == ["reference", "fit"]


def test_all_rows_are_class_balanced_fine_tuning(context: Make) -> None:
    chosen = SELF(n=10_000, layer_epochs=2)
    assert torch.equal(layer_of(chosen.train(context()).net), layer_of(fitted(context(), chosen)))


def test_the_baseline_trains_a_new_layer_on_all_held_out_rows(context: Make) -> None:
    chosen = CBLastLayer(layer_epochs=2)
    result = chosen.train(context())
    assert torch.equal(layer_of(result.net), layer_of(fitted(context(), chosen, new=True)))
    assert not torch.equal(layer_of(result.net), layer_of(fitted(context(), chosen)))
    assert result.history.counts("val").n == 40


def test_rows_of_one_class_are_reported(context: Make) -> None:
    result = SELF(n=1, layer_epochs=1).train(context())
    assert result.warnings[0].startswith("The 1 rows with the highest scores have none of ")


@pytest.mark.parametrize("name", ["self", "cb_last_layer"])
def test_validation_without_groups_is_enough(context: Make, moons: Task, name: str) -> None:
    val = moons.splits["val"]
    blank = replace(val, groups=Groups(torch.zeros_like(val.member), val.groups.names))
    chosen = method(name, layer_epochs=2)
    given, without = (
        chosen.train(context(task=one)).net for one in (moons, replace(moons, splits={**moons.splits, "val": blank}))
    )
    assert torch.equal(layer_of(given), layer_of(without))


def test_a_method_called_self_is_set_and_shown_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert method("self", n=7).n == 7  # type: ignore[attr-defined]
    small = [
        "task.sizes=[40,8,8,40]",
        "task.eval_size=20",
        "fit.epochs=2",
        "self.n=12",
        "early.lr=0.01",
        "layer_epochs=2",
    ]
    flags = [flag for one in small for flag in ("--set", one)]
    assert main(["run", "four_moons", "self", "--use-groups", "test", *flags]) == 0
    assert "self" in capsys.readouterr().out
    settings = {"sizes": [40, 8, 8, 40], "eval_size": 20, "epochs": 2, "self.n": 12, "layer_epochs": 2}
    record = execute(RunSpec(task="four_moons", method="self", settings=settings), out=tmp_path)
    assert record.plan["method"]["n"] == 12
    assert record.group_use == "none"
    assert main(["methods", "self"]) == 0
    assert "selective last-layer" in capsys.readouterr().out.lower()
    with pytest.raises(UserError, match=r"^self\.n must be a whole number"):
        RunSpec(task="four_moons", method="self", settings={"self.n": 0})
