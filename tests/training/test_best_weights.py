"""The weights of the epochs that rules select."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from umix.core.epoch_counts import Counts
from umix.core.evaluation import Evaluation
from umix.models.mlp import MLP
from umix.run_folder import weights_folder, weights_path
from umix.store import read_tensors
from umix.training.best_weights import BestWeights, scored_rules, selected_epochs
from umix.training.context import Context
from umix.training.objective import MeanRisk

Make = Callable[..., Context]


def test_without_groups_there_is_no_worst_group_to_select_by() -> None:
    val = Counts(np.zeros((1, 0)), np.zeros(0), np.array([[3, 4]]), np.array([10, 10]))
    assert scored_rules(val) == [
        "balanced",
        "average",
        "worst_class",
        "worst_recall",
        "class_difference",
        "last",
    ]


def test_the_weights_held_in_memory_are_those_of_the_files(context: Make, tmp_path: Path) -> None:
    in_memory, in_files = (context(**options).fit(MeanRisk()) for options in ({"hold": True}, {"directory": tmp_path}))
    held = in_memory.history.best.held
    assert {weights_path(tmp_path, epoch) for epoch in held} == set((tmp_path / "weights").iterdir())
    assert in_files.history.best.held == {}
    for epoch, weights in held.items():
        saved = read_tensors(weights_path(tmp_path, epoch), kind="weights")[0]
        assert weights.keys() == saved.keys()
        assert all(torch.equal(weights[name], saved[name]) for name in saved)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_weights_kept_are_those_of_the_epochs_that_all_epochs_together_select(
    seed: int, every: int, tmp_path: Path
) -> None:
    """New epochs are compared with those kept before, which must be as good as comparing all."""
    rng = np.random.default_rng(seed)
    decided = rng.integers(0, 8, (12, 5, 4))  # few values: many ties
    sizes = np.array([8, 8])
    biases = np.arange(10.0).reshape(5, 2) * [[0.0], *[[1.0]] * 4]
    val = Counts(
        decided[:, 0, :2],
        sizes,
        decided[:, 0, 2:],
        sizes,
        biases=biases,
        threshold_hits=decided,
        evaluation=Evaluation(min_group=1),
    )
    best, net = BestWeights(tmp_path, hold=True), MLP(hidden=()).build(torch.zeros(2), 2)
    for epoch in range(12):
        if epoch == 6:
            best = BestWeights(tmp_path, hold=False)  # as after a restart
        best.offer(net, epoch)
        if (epoch + 1) % every:
            continue
        best.settle(val.only(range(epoch + 1)), last=False)
        kept = {int(path.stem.removeprefix("epoch-")) for path in weights_folder(tmp_path).iterdir()}
        assert kept == selected_epochs(val.only(range(epoch + 1)))


def test_weights_that_wait_are_those_of_their_epoch_and_not_of_the_net_as_it_is_later(tmp_path: Path) -> None:
    hits, sizes = np.array([[9, 9], [1, 1]]), np.array([10, 10])
    best, net = BestWeights(tmp_path), MLP(hidden=()).build(torch.zeros(2), 2)
    before = net.head.weight.detach().clone()
    best.offer(net, 0)
    with torch.no_grad():
        net.head.weight.add_(1)
    best.offer(net, 1)
    best.settle(Counts(hits, sizes, hits, sizes), last=False)
    assert [path.name for path in weights_folder(tmp_path).iterdir()] == [weights_path(tmp_path, 0).name]
    assert torch.equal(read_tensors(weights_path(tmp_path, 0), kind="weights")[0]["head.weight"], before)


def test_a_large_net_does_not_wait() -> None:
    best = BestWeights(None, hold=True)
    assert not best.offer(MLP(hidden=()).build(torch.zeros(2), 2), 0)
    assert best.offer(MLP(hidden=(3000, 3000)).build(torch.zeros(2), 2), 1)
