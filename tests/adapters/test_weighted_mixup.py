"""Weighted mixup in a loop of one's own: the numbers of ``umix run``, the loss by hand, state dicts, and what is refused."""

import io
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from umix import IndexedDataset, Trajectory, UserError, WeightedMixup
from umix.adapters import weighted_mixup


def mixup_of(n: int = 40, **options: object) -> WeightedMixup:
    return WeightedMixup(torch.linspace(0.5, 1.5, n), **options)  # type: ignore[arg-type]


def test_a_loop_with_the_same_order_and_seed_gives_the_weights_and_the_net_of_a_run(
    same_run: Callable[..., Any],
) -> None:
    run = same_run()
    dataset = IndexedDataset(TensorDataset(run.train.x, run.train.y))
    net, trajectory = run.first_net("trajectory"), Trajectory(len(dataset))
    optimizer = run.optimizer(net)
    for epoch in range(3):
        for x, y, index in DataLoader(dataset, batch_sampler=list(run.batches("trajectory", epoch))):
            logits = net(x)
            trajectory.see(index, logits, y)
            optimizer.zero_grad()
            cross_entropy(logits, y).backward()
            optimizer.step()
        trajectory.end_epoch()
    weights = trajectory.weights(eta=run.eta)
    assert torch.equal(weights, run.weights)
    assert len(weights.unique()) > 1

    mixup, net = WeightedMixup(weights, sigma=0.5, alpha=0.5, seed=0), run.first_net("fit")
    optimizer = run.optimizer(net)
    for epoch in range(3):
        for x, y, index in DataLoader(dataset, batch_sampler=list(run.batches("fit", epoch))):
            optimizer.zero_grad()
            mixup(net, x, y, index).backward()
            optimizer.step()
        mixup.end_epoch()
    for mine, theirs in zip(net.parameters(), run.net.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("per_example", [False, True])
@pytest.mark.parametrize("own_loss", [False, True])
def test_the_loss_of_mixed_pairs_is_that_of_the_paper_computed_by_hand(own_loss: bool, per_example: bool) -> None:
    def each(logits: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(logits, y, reduction="none")

    mixup = mixup_of(sigma=1.0, per_example=per_example, loss=each if own_loss else None)
    net, x, y = nn.Linear(3, 4), torch.randn(8, 3), torch.arange(8) % 4
    index = torch.arange(8) * 5
    pairs = mixup.pairs(y, index)
    assert pairs.lam is not None
    assert pairs.pair is not None
    lam = np.broadcast_to(np.asarray(pairs.lam, dtype=np.float64), 8)
    logits = net(pairs.inputs(x))
    expected = 0.0
    for i, j in enumerate(pairs.pair.tolist()):
        mixed = lam[i] * x[i].double().numpy() + (1 - lam[i]) * x[j].double().numpy()
        z = net.weight.detach().double().numpy() @ mixed + net.bias.detach().double().numpy()
        log_p = z - np.log(np.exp(z).sum())
        w = mixup.weights.double().numpy()[index.numpy()]
        expected -= (lam[i] * w[i] * log_p[y[i]] + (1 - lam[i]) * w[j] * log_p[y[j]]) / 8
    assert pairs.loss(logits).item() == pytest.approx(expected, rel=1e-5)


def test_without_mixing_it_is_the_weighted_mean_loss() -> None:
    mixup, net = mixup_of(sigma=0.0), nn.Linear(3, 2)
    x, y, index = torch.randn(6, 3), torch.tensor([0, 1] * 3), torch.tensor([3, 1, 4, 1, 5, 9])
    expected = (mixup.weights[index] * cross_entropy(net(x), y, reduction="none")).mean()
    torch.testing.assert_close(mixup(net, x, y, index), expected)


def test_those_who_call_the_net_themselves_get_the_same_loss() -> None:
    net, x, y, index = nn.Linear(3, 2), torch.randn(6, 3), torch.tensor([0, 1] * 3), torch.arange(6)
    inputs, loss = mixup_of(sigma=1.0).mix(x, y, index)
    assert torch.equal(loss(net(inputs)), mixup_of(sigma=1.0)(net, x, y, index))


def test_features_before_a_layer_are_mixed_as_umix_mixes_features(same_run: Callable[..., Any]) -> None:
    run = same_run("features")
    mixup, net = WeightedMixup(run.weights, seed=0), run.first_net("fit")
    assert isinstance(net.head, nn.Module)
    optimizer = run.optimizer(net)
    for epoch in range(3):
        for rows in run.batches("fit", epoch):
            optimizer.zero_grad()
            mixup(net, run.train.x[rows], run.train.y[rows], torch.tensor(rows), before=net.head).backward()
            optimizer.step()
        mixup.end_epoch()
    assert not net.head._forward_pre_hooks
    for mine, theirs in zip(net.parameters(), run.net.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_cutmix_takes_the_share_of_the_image_that_stayed() -> None:
    pairs = mixup_of(sigma=1.0, mixing="cutmix").pairs(torch.tensor([0, 1]), torch.tensor([0, 1]))
    pairs.pair = torch.tensor([1, 0])
    mixed = pairs.inputs(torch.stack([torch.zeros(1, 8, 8), torch.ones(1, 8, 8)]))
    assert pairs.lam == pytest.approx(1 - mixed[0].mean().item())


def test_a_loop_goes_on_from_its_state_with_the_same_random_numbers() -> None:
    net, x, y, index = nn.Linear(3, 2), torch.randn(6, 3), torch.tensor([0, 1] * 3), torch.arange(6)
    unbroken, first = mixup_of(), mixup_of()
    for _ in range(3):
        unbroken(net, x, y, index)
        first(net, x, y, index)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = WeightedMixup(torch.ones(40), seed=7)
    second.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(second.weights, unbroken.weights)
    for mixup in (unbroken, second):
        mixup.drawn = [mixup(net, x, y, index).item() for _ in range(5)]  # type: ignore[attr-defined]
        mixup.end_epoch()
        mixup.drawn += [mixup(net, x, y, index).item() for _ in range(5)]  # type: ignore[attr-defined]
    assert unbroken.drawn == second.drawn  # type: ignore[attr-defined]
    assert len(set(unbroken.drawn)) > 5  # type: ignore[attr-defined]


def test_half_precision_logits_give_a_finite_loss_near_that_of_full_precision() -> None:
    net, x, y, index = nn.Linear(3, 2), torch.randn(6, 3), torch.tensor([0, 1] * 3), torch.arange(6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = mixup_of(sigma=1.0)(net, x, y, index)
    assert half.item() == pytest.approx(mixup_of(sigma=1.0)(net, x, y, index).item(), rel=0.05)


@pytest.mark.parametrize(
    ("weights", "options", "said"),
    [
        (torch.tensor([1.0, float("nan")]), {}, "finite"),
        (torch.tensor([1.0, -1.0]), {}, "at least 0"),
        (torch.ones(2, 2), {}, r"\[n\]"),
        (torch.ones(0), {}, r"\[n\]"),
        (None, {}, "got NoneType"),
        (Trajectory(2), {}, "got Trajectory"),
        (torch.zeros(2), {}, "above 0"),
        (torch.ones(2), {"sigma": 1.5}, "sigma"),
        (torch.ones(2), {"alpha": 0.0}, "alpha"),
        (torch.ones(2), {"mixing": "features"}, "before="),
    ],
)
def test_what_cannot_be_meant_is_refused(weights: Any, options: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        WeightedMixup(weights, **options)  # type: ignore[arg-type]


def test_an_index_beyond_the_weights_and_tokens_to_be_mixed_are_refused() -> None:
    net, y = nn.Linear(3, 2), torch.tensor([0, 1])
    with pytest.raises(UserError, match=r"0\.\.39"):
        mixup_of()(net, torch.randn(2, 3), y, torch.tensor([0, 40]))
    with pytest.raises(UserError, match="before="):
        mixup_of(sigma=1.0)(net, torch.ones(2, 3, dtype=torch.int64), y, torch.tensor([0, 1]))


def test_a_batch_that_does_not_fit_together_is_refused_in_a_sentence() -> None:
    net, x, y, index = nn.Linear(3, 2), torch.randn(4, 3), torch.tensor([0, 1, 0, 1]), torch.arange(4)
    mixup = mixup_of(sigma=1.0)
    anything: Any = mixup
    with pytest.raises(UserError, match=r"labels \[4, 1\]"):
        mixup(net, x, y[:, None], index)
    with pytest.raises(UserError, match="index of type NoneType"):
        anything(net, x, y, None)
    with pytest.raises(UserError, match=r"got 3 for 4 labels"):
        mixup(net, x[:3], y, index)
    with pytest.raises(UserError, match=r"one tensor.*got a dict"):
        anything(net, {"x": x}, y, index)
    with pytest.raises(UserError, match=r"logits .*got dict.*lambda"):
        anything(lambda x: {"logits": net(x)}, x, y, index)
    with pytest.raises(UserError, match="must be a module of the net, got 'head'"):
        anything(net, x, y, index, before="head")


def test_labels_and_logits_that_the_cross_entropy_cannot_take_are_refused() -> None:
    x, y, index = torch.randn(4, 3), torch.tensor([0, 1, 0, 1]), torch.arange(4)
    with pytest.raises(UserError, match=r"whole numbers.*float32"):
        mixup_of()(nn.Linear(3, 2), x, y.float(), index)
    with pytest.raises(UserError, match=r"\[4, 1\].*pass loss="):
        mixup_of()(nn.Linear(3, 1), x, y, index)


@pytest.mark.parametrize("per_example", [False, True])
def test_cutmix_refuses_inputs_that_are_no_images(per_example: bool) -> None:
    mixup = mixup_of(sigma=1.0, mixing="cutmix", per_example=per_example)
    with pytest.raises(UserError, match=r"images \[batch, …, height, width\].*got \[4, 9\]"):
        mixup(nn.Linear(9, 2), torch.randn(4, 9), torch.tensor([0, 1, 0, 1]), torch.arange(4))


def test_a_layer_that_is_not_used_is_refused_and_keeps_no_hook() -> None:
    net, other = nn.Linear(3, 2), nn.Linear(3, 2)
    with pytest.raises(UserError, match="0 times"):
        mixup_of(sigma=1.0)(net, torch.randn(2, 3), torch.tensor([0, 1]), torch.tensor([0, 1]), before=other)
    assert not other._forward_pre_hooks


def test_tokens_that_a_net_picks_from_after_its_last_layer_are_mixed_where_it_picks_them() -> None:
    layer, z, last = nn.Linear(3, 2), torch.randn(4, 5, 3), torch.tensor([4, 0, 2, 1])
    y, index, rows = torch.tensor([0, 1, 0, 1]), torch.arange(4), torch.arange(4)
    pairs = mixup_of(sigma=1.0).pairs(y, index)
    expected = pairs.loss(layer(pairs.inputs(z[rows, last])))
    torch.testing.assert_close(mixup_of(sigma=1.0)(lambda x: layer(x)[rows, last], z, y, index, before=layer), expected)
    with pytest.raises(UserError, match="2 outputs; pass the last layer"):
        mixup_of(sigma=1.0)(lambda x: layer(x)[:, 0, :1], z, y, index, before=layer)
    wrapped = nn.Sequential(layer)
    with pytest.raises(UserError, match=r"pass the nn\.Linear"):
        mixup_of(sigma=1.0)(lambda x: wrapped(x)[rows, last], z, y, index, before=wrapped)
    assert not wrapped._forward_hooks
    assert not wrapped._forward_pre_hooks


def test_a_state_of_another_training_set_is_refused() -> None:
    with pytest.raises(UserError, match=r"40 examples.* got one of 20"):
        mixup_of().load_state_dict(mixup_of(20).state_dict())


def test_processes_that_load_the_state_of_one_draw_different_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    y, index, state = torch.zeros(6, dtype=torch.int64), torch.arange(6), mixup_of().state_dict()

    def drawn(rank: int) -> tuple[float, ...]:
        mixup = mixup_of(sigma=1.0)
        monkeypatch.setattr(weighted_mixup, "_rank", lambda: rank)
        mixup.load_state_dict(state)
        return tuple(cast(float, mixup.pairs(y, index).lam) for _ in range(4))

    assert len({drawn(rank) for rank in range(4)}) == 4
    assert drawn(1) == drawn(1)
    monkeypatch.undo()
    unbroken = mixup_of(sigma=1.0)
    assert drawn(0) == tuple(unbroken.pairs(y, index).lam for _ in range(4))
