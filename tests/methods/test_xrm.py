"""XRM: twins on halves, labels that change, the choice of a try, and what follows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from umix.core.losses import cross_entropy
from umix.core.streams import stream, torch_stream
from umix.core.weights import class_means, importance_weights, inverse_frequency, normalized
from umix.data.batch import Batch
from umix.data.samplers import Balanced, Shuffled
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.parts.worst_group_risk import WorstGroupRisk
from umix.methods.xrm import XRM, TwinsRisk
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.training.context import Context
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import Objective, State
from umix.training.stage import SideStage, side_fit

Make = Callable[..., Context]
N, CLASSES = 24, 3
Y = torch.arange(N) % CLASSES
FIRST = torch.arange(N) % 2 == 0


def twins() -> Net:
    with torch_stream(0, "test", "init"):
        net = MLP(hidden=(8,)).build(torch.zeros(4), CLASSES)
        net.companion = MLP(hidden=(8,)).build(torch.zeros(4), CLASSES)
    return net


def batch_of(index: list[int], seed: int = 0) -> Batch:
    x = np.random.default_rng(seed).standard_normal((len(index), 4)).astype(np.float32)
    return Batch(torch.from_numpy(x), Y[index], torch.tensor(index))


def parameters(net: Net) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_a_twin_has_no_gradient_from_examples_of_the_other() -> None:
    net, objective = twins(), TwinsRisk(y=Y, first=FIRST)
    risk, _ = objective.risk(net, batch_of([0, 2, 4]), objective.init(0), np.random.default_rng(0))  # all of the net
    risk.backward()
    assert all(parameter.grad.eq(0).all() for parameter in net.companion.parameters())
    assert any(parameter.grad.ne(0).any() for parameter in net.head.parameters())


def test_labels_change_to_held_out_predictions_and_stay_changed() -> None:
    net, objective, rng = twins(), TwinsRisk(y=Y, first=FIRST), np.random.default_rng(0)
    net.companion.head.bias.data = torch.tensor([0.0, 50.0, 0.0])  # certain of class 1, for examples of the net
    state = objective.init(0)
    before = state["label"].clone()
    _, after = objective.risk(net, batch_of([0, 2, 4, 6]), state, rng)
    assert after["label"][[0, 2, 4, 6]].tolist() == [1, 1, 1, 1]
    untouched = [i for i in range(N) if i not in (0, 2, 4, 6)]
    assert torch.equal(after["label"][untouched], Y[untouched])
    assert torch.equal(state["label"], before)  # the state that was given is left as it was
    expected = cross_entropy(net(batch_of([0, 2, 4, 6]).x), torch.ones(4, dtype=torch.int64)).mean()
    net.companion.head.bias.data = torch.zeros(3)
    risk, _ = objective.risk(net, batch_of([0, 2, 4, 6]), after, rng)
    assert risk.item() == pytest.approx(expected.item(), rel=1e-6)  # the next visit is trained with the new labels


class Half(Objective):
    """The class-balanced risk of one net on the examples that it holds."""

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[torch.Tensor, State]:
        held = self.held[batch.index]
        losses, y = cross_entropy(net(batch.x), batch.y)[held], batch.y[held]
        return sum((losses[y == c].mean() for c in y.unique()), start=0 * net(batch.x).sum()), state


def test_without_flips_twins_are_two_separate_class_balanced_fits_of_halves(context: Make) -> None:
    run = context()
    y = run.task.splits["train"].y
    first = torch.from_numpy(stream(0, "twins", "halves").random(len(y)) < 0.5)
    net, state = side_fit(run, SideStage("twins", 3, ""), TwinsRisk(y=y, first=first, strength=0.0), companion=True)
    assert torch.equal(state["label"], y)
    own, _ = side_fit(context(), SideStage("twins", 3, "a"), Half(first))
    companion = net.companion
    net.companion = None
    torch.testing.assert_close(parameters(net), parameters(own), rtol=1e-4, atol=1e-6)

    class Companion(MLP):
        """Starts as the companion of the stage does."""

        def build(self, example: torch.Tensor, n_classes: int) -> Net:
            with torch_stream(0, "twins", "companion"):
                return MLP(hidden=self.hidden).build(example, n_classes)

    other, _ = side_fit(context(net=Companion(hidden=(16,))), SideStage("twins", 3, "b"), Half(~first))
    torch.testing.assert_close(parameters(companion), parameters(other), rtol=1e-4, atol=1e-6)


def asked(run: Context) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The environments, the held-out mistakes and the changed labels of the first try, from its twins."""
    y = run.task.splits["train"].y
    first = torch.from_numpy(stream(0, "twins", "halves").random(len(y)) < 0.5)
    stage = SideStage("twins", run.settings.epochs, "", "twins")
    net, state = side_fit(run, stage, TwinsRisk(y=y, first=first), companion=True)
    wrong = [run.logits(one, "train").argmax(1) != y for one in (net, net.companion)]
    return (wrong[0] | wrong[1]).long(), torch.where(first, wrong[1], wrong[0]), state["label"] != y


def test_the_environment_is_whether_a_twin_mispredicts_the_own_label_and_group_dro_follows(context: Make) -> None:
    run, other = context(), context()
    result = XRM(tries=1, step_size=0.3, adjustment=1.0).train(run)
    environment, _, _ = asked(other)
    assert torch.equal(result.per_example["environment"], environment)
    cell = 2 * run.task.splits["train"].y + environment
    assert set(cell.tolist()) == {0, 1, 2, 3}
    objective = WorstGroupRisk(step_size=0.3, adjustment=1.0, sizes=torch.bincount(cell, minlength=4), group=cell)
    assert torch.equal(parameters(result.net), parameters(other.fit(objective, sampler=Balanced(cell)).net))
    assert "twins" not in result.choices


def test_shuffled_batches_are_those_of_the_released_code(context: Make) -> None:
    run, other = context(), context()
    result = XRM(tries=1, step_size=0.3, batches="shuffled").train(run)
    cell = 2 * run.task.splits["train"].y + result.per_example["environment"]
    objective = WorstGroupRisk(step_size=0.3, adjustment=0.0, sizes=torch.bincount(cell, minlength=4), group=cell)
    assert torch.equal(parameters(result.net), parameters(other.fit(objective, sampler=Shuffled()).net))


def test_umix_follows_with_the_error_rates_of_held_out_twins(context: Make) -> None:
    run, other = context(), context()
    net = XRM(tries=1, then="umix", eta=8.0).train(run).net
    environment, wrong, _ = asked(other)
    u = class_means(wrong.float(), 2 * run.task.splits["train"].y + environment)
    weights = importance_weights(u, eta=8.0) * inverse_frequency(run.task.splits["train"].y)
    objective = MixupRisk(weights=normalized(weights), sigma=0.5, alpha=0.5)
    assert torch.equal(parameters(net), parameters(other.fit(objective).net))
    assert u[environment == 0].eq(0).all()
    assert u[environment == 1].gt(0).all()


def test_the_try_that_changes_the_most_labels_is_taken(context: Make) -> None:
    decided = XRM(tries=3).train(context()).choices["twins"]
    changed = [one["changed"] for one in decided["tries"]]
    assert len(changed) == 3
    assert decided["tries"][0]["lr"] == 0.05
    assert len({one["lr"] for one in decided["tries"]}) == 3
    best = decided["tries"][int(np.argmax(changed))]
    assert f"lr {best['lr']:.3g}" in decided["words"]
    _, _, labels = asked(context())
    assert changed[0] == pytest.approx(labels.double().mean().item())


def test_a_try_without_both_environments_in_a_class_counts_as_none_and_is_said(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    easy = replace(train, x=4 * torch.nn.functional.one_hot(train.y, 2).float())
    run = context(task=Task("easy", {**moons.splits, "train": easy}, moons.classes))
    result = XRM(strength=0.0).train(run)
    assert [one["changed"] for one in result.choices["twins"]["tries"]] == [0, 0]
    first, second = moons.classes
    assert any(f"All examples of {first}, {second} are in one of the two" in warning for warning in result.warnings)
    assert (
        result.choices["twins"]["words"]
        == "twins: none of 2 tries changed labels with both environments in every class"
    )


def test_settings_of_the_twins_override_what_is_drawn(context: Make) -> None:
    run = context(stages={"twins": {"lr": 0.02, "epochs": 2}})
    result = XRM(tries=2).train(run)
    assert [one["lr"] for one in result.choices["twins"]["tries"]] == [0.02, 0.02]
    assert [run.journal.reports[name].epochs for name in ("twins", "twins-1")] == [2, 2]


def test_twins_that_diverge_are_refused_in_a_sentence(context: Make) -> None:
    with pytest.raises(UserError, match=r"logits of the twins must be finite numbers.* try a smaller twins\.lr"):
        XRM(tries=1).train(context(stages={"twins": {"lr": 1e12}}))


def test_environment_one_is_rich_in_minority_examples(context: Make) -> None:
    run = context(fit={"epochs": 8})
    result = XRM(tries=1).train(run)
    group, environment = run.task.splits["train"].group, result.per_example["environment"].float()
    minority = (group == 1) | (group == 2)
    assert environment[minority].mean() > 2 * environment[~minority].mean()
