"""UMIX with the uncertainty of an ensemble (the paper's appendix)."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from umix.bench.spec.run_spec import RunSpec
from umix.errors import UserError
from umix.methods.parts.uncertainty_weights import ensemble_members, ensemble_uncertainty
from umix.methods.umix import UMIX
from umix.models.net import Net
from umix.training.context import Context
from umix.training.evaluate import correctness
from umix.training.stage import ErmStage

Make = Callable[..., Context]


def ensemble(**settings: object) -> UMIX:
    return UMIX(**{"uncertainty": "ensemble", "length": 3, **settings})


def wrong(net: Net, run: Context) -> torch.Tensor:
    return (~correctness(net, run.splits["train"], batch_size=32)).float()


def test_one_member_is_wrong_or_right(context: Make) -> None:
    run, alone = context(), context()
    u = ensemble_uncertainty(run, ensemble_members(1, 4)).train(1)
    assert torch.equal(u, wrong(alone.reference(ErmStage("member-0", 4)), alone))


def test_uncertainty_is_the_share_of_members_that_are_wrong(context: Make) -> None:
    result, alone = ensemble().train(context()), context()
    masks = torch.stack([wrong(alone.reference(ErmStage(f"member-{member}", 4)), alone) for member in range(3)])
    assert 0 < masks.mean() < 1
    assert (masks != masks[0]).any()  # members start differently and see other orders
    assert torch.allclose(result.per_example["uncertainty"], masks.mean(dim=0))


def test_a_member_is_erm_with_a_stream_of_its_own(context: Make) -> None:
    one, other = (context().reference(ErmStage(f"member-{member}", 4)) for member in (0, 1))
    assert not any(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_members_train_for_the_epochs_of_the_fit_unless_the_stage_says_otherwise(context: Make) -> None:
    run = context(fit={"epochs": 3})
    ensemble(length=2).train(run)
    assert {name: report.epochs for name, report in run.journal.reports.items()} == {
        "member-0": 3,
        "member-1": 3,
        "fit": 3,
    }
    run = context(fit={"epochs": 3}, stages={"ensemble": {"epochs": 1, "lr": 0.5}})
    ensemble(length=2).train(run)
    assert {name: report.epochs for name, report in run.journal.reports.items()} == {
        "member-0": 1,
        "member-1": 1,
        "fit": 3,
    }


def test_members_are_shared_between_runs_and_a_larger_ensemble_trains_the_new_ones_only(
    context: Make, tmp_path: Path
) -> None:
    def reused(name: str, **settings: object) -> list[bool]:
        run = context(directory=tmp_path / name, cache=tmp_path / "stages")
        ensemble(**settings).train(run)
        return [report.reused for stage, report in run.journal.reports.items() if stage != "fit"]

    assert reused("first", length=2) == [False, False]
    assert reused("second", length=2, eta=3.0) == [True, True]
    assert reused("third", length=3) == [True, True, False]


def test_of_members_only_weights_and_uncertainties_are_left_and_no_file_in_the_run_folder(
    context: Make, tmp_path: Path
) -> None:
    result = ensemble(length=2).train(context(directory=tmp_path / "run", cache=tmp_path / "stages"))
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["checkpoint.safetensors", "weights"]
    assert set(result.per_example) == {"uncertainty", "weight"}


def test_start_and_record_do_not_matter_to_an_ensemble(context: Make) -> None:
    nets = [ensemble(length=2, **other).train(context()).net for other in ({}, {"start": 9, "record": "epoch_end"})]
    assert all(torch.equal(a, b) for a, b in zip(*(net.parameters() for net in nets), strict=True))


def test_the_plan_knows_the_settings_of_the_members() -> None:
    settings = {"uncertainty": "ensemble", "ensemble.lr": 0.5, "ensemble.epochs": 2}
    plan = RunSpec(task="four_moons", method="umix", settings=settings).plan
    assert plan.stages == {"ensemble": {"lr": 0.5, "epochs": 2}}
    with pytest.raises(UserError, match=r"ensemble\.lr must be"):
        RunSpec(task="four_moons", method="umix", settings={"ensemble.lr": 0})
    with pytest.raises(UserError, match=r"Unknown setting of umix 'member-0\.lr'"):
        RunSpec(task="four_moons", method="umix", settings={"member-0.lr": 1})
