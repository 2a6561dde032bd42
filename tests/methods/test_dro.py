"""CVaR-DRO and χ²-DRO: what they are at the ends of alpha."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from umix import RunSpec, execute
from umix.methods.dro import Chi2DRO, CVaRDRO
from umix.methods.erm import ERM
from umix.models.net import Net
from umix.training.context import Context

Make = Callable[..., Context]
BOTH = pytest.mark.parametrize("kind", [CVaRDRO, Chi2DRO], ids=lambda kind: kind.name)


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


@BOTH
def test_alpha_one_is_erm(context: Make, kind: type[CVaRDRO | Chi2DRO]) -> None:
    robust, erm = kind(alpha=1).train(context()).net, ERM().train(context()).net
    torch.testing.assert_close(parameters(robust), parameters(erm), atol=1e-6, rtol=0)


@BOTH
def test_batches_of_one_example_are_erm_for_every_alpha(context: Make, kind: type[CVaRDRO | Chi2DRO]) -> None:
    fit = {"batch_size": 1, "epochs": 1, "lr": 0.01}
    robust, erm = kind(alpha=0.1).train(context(fit=fit)).net, ERM().train(context(fit=fit)).net
    torch.testing.assert_close(parameters(robust), parameters(erm), atol=1e-6, rtol=0)


def test_a_tiny_alpha_is_the_worst_example_of_every_batch_in_both(context: Make) -> None:
    nets = [kind(alpha=0.01).train(context()).net for kind in (CVaRDRO, Chi2DRO)]
    torch.testing.assert_close(parameters(nets[0]), parameters(nets[1]), atol=1e-5, rtol=0)


@BOTH
def test_an_auto_run_is_the_run_with_the_chosen_alpha(tmp_path: Path, kind: type[CVaRDRO | Chi2DRO]) -> None:
    given = {"fit.epochs": 5}
    auto = execute(RunSpec(task="four_moons", method=kind.name, settings={"alpha": "auto"} | given), out=tmp_path)
    chosen = {"alpha": auto.choices["alpha"]}
    again = execute(RunSpec(task="four_moons", method=kind.name, settings=chosen | given), out=tmp_path)
    assert auto.split_counts == again.split_counts
    assert again.choices == {}
    assert list(again.stages) == ["fit"]
    tried = {one["candidate"] for one in auto.choices["candidates"]}
    assert tried == {f"{kind.name} alpha={alpha}" for alpha in (1, 0.8, 0.5, 0.2, 0.1)}


def test_auto_shares_its_first_stage_with_umix(tmp_path: Path) -> None:
    for method, settings in {"umix": {"length": 3}, "cvar_dro": {"alpha": "auto"}}.items():
        record = execute(RunSpec(task="four_moons", method=method, settings={"fit.epochs": 3} | settings), out=tmp_path)
    assert record.stages["trajectory"].reused
