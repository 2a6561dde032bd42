"""DPE: what a member minimises, on which rows, and what becomes of the ensemble."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import umix
from umix.bench.runs.load_net import load_net
from umix.core.streams import stream
from umix.core.subsets import balanced_subset
from umix.data.benchmarks.four_moons import FourMoons
from umix.methods.dpe import DPE, similarity
from umix.methods.parts.layer_fit import parts_of_validation
from umix.models.prototypes import PrototypeHead
from umix.training.context import Context
from umix.training.stage import ErmStage

Make = Callable[..., Context]


def head_of(method: DPE, run: Context) -> PrototypeHead:
    head = method.train(run).net.head
    assert isinstance(head, PrototypeHead)
    return head


def test_a_member_takes_the_steps_of_numpy(context: Make) -> None:
    """Two full-batch steps on the first member's subset, with the gradient by central differences."""
    method = DPE(members=1, layer_epochs=2, layer_lr=0.1, by="class")
    run = context(fit={"batch_size": 10_000})
    found = head_of(method, run)
    held_out, _, _ = parts_of_validation(run, 0.5)
    z = run.features(run_again(context), held_out).double().numpy()
    z, y = (z - z.mean(0)) / np.where(z.std(0) > 0, z.std(0), 1), held_out.y.numpy()
    rng = stream(0, "dpe", "member", 0)
    rows = balanced_subset(y, rng=rng)
    z, y = z[rows] / np.linalg.norm(z[rows], axis=1, keepdims=True), y[rows]
    flat = np.append(rng.normal(0.0, 0.01, (2, z.shape[1])).ravel(), 1.0)

    def risk(numbers: np.ndarray) -> float:
        p, s = numbers[:-1].reshape(2, -1), numbers[-1]
        near = p / np.linalg.norm(p, axis=1, keepdims=True)
        logits = -30 * abs(s) * np.linalg.norm(z[:, None] - near, axis=2)
        ce = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(y)), y]
        return float(ce.mean() + 10 * (p**2).sum(1).mean())

    velocity = np.zeros_like(flat)
    for _ in range(2):
        slope = np.array([(risk(flat + e) - risk(flat - e)) / 2e-7 for e in 1e-7 * np.eye(len(flat))])
        velocity = 0.9 * velocity + slope
        flat = flat - 0.1 * velocity
    np.testing.assert_allclose(found.prototypes[0].detach().numpy().ravel(), flat[:-1], rtol=2e-3, atol=2e-4)
    assert found.scale[0].item() == pytest.approx(flat[-1], rel=1e-3)


def run_again(context: Make) -> torch.nn.Module:
    return context(fit={"batch_size": 10_000}).reference(ErmStage("reference", 4))


def test_similarity_is_the_absolute_mean_of_products_over_classes() -> None:
    rng = np.random.default_rng(0)
    own, others = rng.standard_normal((3, 5)), rng.standard_normal((4, 3, 5))
    expected = abs(np.mean([(own[c] @ others[:, c].T).sum() / 5 for c in range(3)]))
    assert similarity(torch.from_numpy(own), torch.from_numpy(others)).item() == pytest.approx(expected, rel=1e-12)


def test_members_before_it_change_a_member_only_with_diversity(context: Make) -> None:
    alone, apart = (head_of(DPE(members=3, diversity=d), context()).prototypes for d in (0.0, 25.0))
    assert torch.equal(alone[0], apart[0])
    assert not torch.equal(alone[1], apart[1])
    close = [float(similarity(one[2], one[:2])) for one in (alone.detach(), apart.detach())]
    assert close[1] < close[0]


@pytest.mark.parametrize(
    ("use", "by", "what"), [("val", "known", "group"), ("test", "known", "class"), ("val", "class", "class")]
)
def test_subsets_balance_groups_where_they_are_known_and_allowed(context: Make, use: str, by: str, what: str) -> None:
    result = DPE(members=1, by=by).train(context(use_groups=use))
    assert result.choices["subsets"]["words"].endswith(f"balanced by {what}")


def test_half_of_validation_is_left_for_selection(context: Make) -> None:
    run = context()
    held_out, rest, _ = parts_of_validation(run, 0.5)
    counts = DPE(members=1).train(run).history.counts("val")
    assert counts.n == len(rest) == len(run.splits["val"]) - len(held_out)


def test_a_finished_run_predicts_with_its_prototypes(tmp_path: Path) -> None:
    result = umix.train("four_moons", "dpe", out=tmp_path, members=2, fit={"epochs": 2})
    record = umix.load_run(result.record.directory)
    net, test = load_net(record), FourMoons().load().splits["test"]
    assert isinstance(net.head, PrototypeHead)
    assert isinstance(test.x, torch.Tensor)
    rate = (net(test.x).argmax(1) == test.y).double().mean().item()
    assert rate == pytest.approx(record.summary(threshold="off").average)
