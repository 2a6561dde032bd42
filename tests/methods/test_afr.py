"""AFR: its reference, its weights, what it is with its parts switched off, and mixup of its last layer's features."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix import RunSpec, execute
from umix.core.weights import inverse_frequency
from umix.data.batch import Batch
from umix.data.samplers import FullBatchSampler, SubsetSampler
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.afr import AFR, NearStart
from umix.methods.parts.layer_fit import divided
from umix.models.net import Net
from umix.training.context import Context
from umix.training.last_layer import fit_last_layer, linear_head
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import MeanRisk
from umix.training.stage import SideStage, side_fit

Make = Callable[..., Context]
SHORT = {"layer_epochs": 3, "steps": 4}


def reference(run: Context, share: float = 0.8) -> tuple[Net, Tensor]:
    """The ERM net of a run and the rows that it was not shown."""
    seen, held_out = divided(run.task.splits["train"].y, share=share, seed=run.seed, what="reference")
    stage = SideStage("reference", run.settings.epochs, content=f"ERM on {share!r} of every class")
    return side_fit(run, stage, MeanRisk(), sampler=SubsetSampler(seen))[0], held_out


def layer_of(net: Net) -> Tensor:
    head = linear_head(net)
    return torch.cat([head.weight.detach(), head.bias.detach()[:, None]], dim=1)


def test_only_the_last_layer_of_the_reference_is_trained_again(context: Make) -> None:
    net, (erm, _) = AFR(**SHORT).train(context()).net, reference(context())
    for a, b in zip(net.body.parameters(), erm.body.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(layer_of(net), layer_of(erm))


def test_the_steps_are_clipped_gradient_descent_on_the_weighted_loss_of_unseen_rows(context: Make) -> None:
    run = context(fit={"epochs": 2})
    method = AFR(gamma=3.0, lam=0.2, layer_lr=0.1, **SHORT)
    found = run.logits(method.train(run).net, "test").double()
    other = context(fit={"epochs": 2})
    erm, held_out = reference(other)
    train = other.task.splits["train"]
    y, z = train.y[held_out], erm.features(train.x[held_out]).detach().double()
    p = erm(train.x[held_out]).detach().double().softmax(1)[torch.arange(len(y)), y]
    mu = (-3 * p).exp() / y.bincount()[y]
    mu /= mu.sum()
    mean, scale = z.mean(0), z.std(0, correction=0)
    scale = torch.where(scale > 0, scale, 1.0)
    head = layer_of(erm).double()
    start = torch.cat([head[:, :-1] * scale, (head[:, :-1] @ mean + head[:, -1])[:, None]], dim=1)
    x, phi = torch.cat([(z - mean) / scale, torch.ones(len(z), 1)], dim=1), start.clone()
    for _ in range(12):
        phi.requires_grad_()
        risk = mu @ cross_entropy(x @ phi.T, y, reduction="none") + 0.2 * (phi - start).square().sum()
        (gradient,) = torch.autograd.grad(risk, phi)
        phi = (phi - 0.1 * gradient / gradient.norm().clamp_min(1)).detach()
    test = (erm.features(other.task.splits["test"].x).detach().double() - mean) / scale
    torch.testing.assert_close(found, test @ phi[:, :-1].T + phi[:, -1], atol=1e-4, rtol=1e-4)


def test_without_a_shift_it_is_a_class_balanced_fit_of_the_last_layer(context: Make) -> None:
    method, run = AFR(gamma=0.0, **SHORT), context()
    erm, held_out = reference(run)
    rows = run.splits["train"].rows(held_out)
    balanced = MixupRisk(weights=inverse_frequency(rows.y), sigma=0.0, alpha=1.0)
    settings = method.layer_settings(run, batch_size=len(rows), momentum=0.0, clip_norm=1.0)
    expected = fit_last_layer(run, erm, rows, balanced, settings=settings, sampler=FullBatchSampler(4)).net
    torch.testing.assert_close(layer_of(method.train(context()).net), layer_of(expected))


def test_without_a_shift_and_with_equal_classes_it_is_a_plain_fit_of_the_last_layer() -> None:
    rng = torch.Generator().manual_seed(0)
    net, y = Net(torch.nn.Identity(), torch.nn.Linear(3, 2)), torch.arange(10) % 2
    batch = Batch(torch.randn(10, 3, generator=rng), y, torch.arange(10))
    mu = AFR(gamma=0.0).weights(torch.randn(10, 2, generator=rng), y)
    found, _ = AFR(gamma=0.0).objective(mu, net.head).risk(net, batch, {}, np.random.default_rng(0))
    torch.testing.assert_close(found, MeanRisk().risk(net, batch, {}, np.random.default_rng(0))[0])


def test_a_large_penalty_returns_erm(context: Make) -> None:
    erm, _ = reference(context())
    moved = [
        float(
            (
                layer_of(AFR(gamma=2.0, lam=lam, layer_lr=0.01, steps=50, layer_epochs=4).train(context()).net)
                - layer_of(erm)
            ).norm()
        )
        for lam in (0.0, 5.0, 50.0)
    ]
    assert moved[0] > 5 * moved[1] > 25 * moved[2] > 0


def test_mixing_features_is_the_objective_of_umix_on_the_last_layer(context: Make) -> None:
    plain, mixed = (AFR(sigma=sigma, **SHORT).train(context()).net for sigma in (0.0, 1.0))
    assert torch.equal(plain.body[0].weight, mixed.body[0].weight)
    assert not torch.equal(layer_of(plain), layer_of(mixed))
    run = context()
    erm, held_out = reference(run)
    rows = run.splits["train"].rows(held_out)
    method = AFR(sigma=1.0, alpha=0.5, **SHORT)
    mu = method.weights(run.logits(erm, rows), rows.y)
    umix = MixupRisk(weights=len(rows) * mu, sigma=1.0, alpha=0.5, mixing="features")
    settings = method.layer_settings(run, batch_size=len(rows), momentum=0.0, clip_norm=1.0)
    expected = fit_last_layer(run, erm, rows, umix, settings=settings, sampler=FullBatchSampler(4)).net
    assert torch.equal(layer_of(mixed), layer_of(expected))


def test_the_lambda_of_mixed_steps_is_logged_with_a_penalty_too(context: Make) -> None:
    run = context()
    AFR(sigma=1.0, lam=0.1, **SHORT).train(run)
    assert all(0 < row["lambda"] < 1 for row in run.journal.logs["fit"].rows())


def test_runs_with_the_same_share_share_the_reference(tmp_path: Path) -> None:
    small = {"sizes": [40, 8, 8, 40], "eval_size": 20, "epochs": 2, "hidden": [8], **SHORT}
    settings = [{"gamma": 1.0}, {"gamma": 5.0}, {"share": 0.5}]
    records = [
        execute(RunSpec(task="four_moons", method="afr", settings={**small, **one}), out=tmp_path) for one in settings
    ]
    assert [record.stages["reference"].reused for record in records] == [False, True, False]
    assert [record.group_use for record in records] == ["none"] * 3
    assert len(records[0].counts["val"].hits) == 3  # an epoch of the last layer is an epoch of the run


def test_classes_of_one_row_leave_nothing_to_hold_out(context: Make, moons: Task) -> None:
    train = moons.splits["train"].rows(torch.tensor([0, 139]))
    with pytest.raises(UserError, match="must hold training rows out, but every class has a single row, 2 in all"):
        AFR().train(context(task=replace(moons, splits={**moons.splits, "train": train})))


def test_the_penalty_is_on_the_way_from_the_parameters_before_the_first_step() -> None:
    net = Net(torch.nn.Identity(), torch.nn.Linear(2, 2))
    batch = Batch(torch.ones(1, 2), torch.tensor([0]), torch.tensor([0]))
    objective = NearStart(inner=MeanRisk(), lam=3.0, like=net.head)
    first, state = objective.risk(net, batch, objective.init(0), None)
    torch.testing.assert_close(first, MeanRisk().risk(net, batch, {}, None)[0])
    with torch.no_grad():
        net.head.bias += 2.0
    second, state = objective.risk(net, replace(batch, step=1), state, None)
    torch.testing.assert_close(second, MeanRisk().risk(net, batch, {}, None)[0] + 3 * 2 * 4)
