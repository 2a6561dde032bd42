"""What candidates are compared on: nets of their own within a limit, or heads on the frozen body of a pretrained net."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from umix import METHODS, method
from umix.bench.spec.presets import preset
from umix.core.evaluation import Evaluation
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.models.backbone import Backbone
from umix.selection.halving import MOST_FITS, SELECTION
from umix.selection.select import limited_cost
from umix.selection.trial import HEAD, on_features, trial_context
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import MeanRisk

AUTO = {
    "umix": {"eta": "auto", "pool": "auto", "length": "auto"},
    "jtt": {"identification_epochs": "auto", "upweight": "auto"},
    "group_dro": {"step_size": "auto"},
    "best": {},
}


def shortcut(n):
    """The class depends on a faint feature; a loud one agrees with it in most examples. Groups: class × loud feature."""
    rng = np.random.default_rng(0)
    splits = {}
    for name in ("train", "val", "test"):
        y = rng.integers(0, 2, n)
        place = np.where(rng.random(n) < 0.9, y, 1 - y)
        x = rng.normal(size=(n, 6))
        x[:, 0] += 1.5 * (2 * y - 1)
        x[:, 1] += 4.0 * (2 * place - 1)
        groups = Groups.cells(torch.from_numpy(y), torch.from_numpy(place), labels=["0", "1"], attributes=["a", "b"])
        splits[name] = Split(torch.from_numpy(x).float(), torch.from_numpy(y), groups)
    return Task("shortcut", splits, ("0", "1"))


class Curved(Backbone):
    """A body that cannot be stacked; ``trained`` gives it the same weights for every seed."""

    name: ClassVar[str] = "curved"
    trained: bool = False
    linear: bool = True

    @property
    def title(self) -> str:
        return "test:curved"

    def parts(self, example: Tensor, n_classes: int) -> tuple[nn.Module, nn.Module | None]:
        body = nn.Sequential(nn.Linear(example.numel(), 16), nn.Tanh())
        if self.trained:
            weights = torch.Generator().manual_seed(0)
            with torch.no_grad():
                for parameter in body.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=weights) / 2)
        return body, None if self.linear else nn.Sequential(nn.Linear(16, n_classes), nn.Tanh())


class Steps:
    """Counts the steps of every stage, and keeps the notes."""

    def __init__(self):
        self.began, self.steps, self.notes, self.stage = 0.0, {}, [], ""

    def start(self, stage, *, total, done):
        self.stage = stage

    def advance(self, steps):
        self.steps[self.stage] = self.steps.get(self.stage, 0) + steps

    def finish(self): ...

    def note(self, message):
        self.notes.append(message)


def trained(name, *, epochs=10, use_groups="train", **options):
    net, task, progress = Curved(**options), shortcut(300), Steps()
    context = Context(
        task,
        net,
        FitSettings(epochs=epochs, batch_size=100, lr=0.01, optimizer="adamw"),
        groups=METHODS[name].needs_groups is True,
        use_groups=use_groups,
        evaluation=Evaluation(choose=use_groups != "test"),
        progress=progress,
    )
    return method(name, **AUTO[name]).train(context), progress


@pytest.mark.parametrize("use_groups", ["train", "test"])
@pytest.mark.parametrize("name", ["umix", "jtt", "best"])
@pytest.mark.parametrize("epochs", [3, 30])
def test_a_choice_between_nets_that_are_trained_alone_costs_four_final_fits_with_the_first_and_the_last(
    name, epochs, use_groups
):
    result, progress = trained(name, epochs=epochs, use_groups=use_groups)
    an_epoch = 3  # steps
    assert progress.steps[SELECTION] <= MOST_FITS * epochs * an_epoch
    assert sum(progress.steps.values()) <= 4 * epochs * an_epoch or name == "jtt"  # its copies are steps too
    assert len(result.choices["candidates"]) >= 2


def test_a_choice_between_nets_that_are_trained_alone_says_what_it_will_cost_before_it_begins():
    _, progress = trained("umix", use_groups="val")
    (note,) = progress.notes
    assert note.startswith("Trying 8 candidates, one net after another: at most ")
    said = int(note.split("at most ")[1].split(" epochs")[0])
    assert 3 * said == progress.steps[SELECTION]
    assert "final fits, about " in note


@pytest.mark.parametrize("name", list(AUTO))
def test_candidates_of_a_pretrained_net_are_heads_on_its_features_and_the_winner_is_trained_whole(name):
    result, progress = trained(name, trained=True)
    assert "as heads on the frozen features of test:curved" in progress.notes[-1]
    assert "as heads on frozen features, on validation" in result.choices["reason"]
    assert "frozen" in result.choices["compared"]["words"]
    body = Curved(trained=True).parts(torch.zeros(6), 2)[0]
    assert not torch.equal(result.net.body[0].weight, body[0].weight)


def test_the_run_of_a_pretrained_net_is_that_with_the_chosen_settings():
    result, _ = trained("umix", trained=True)
    chosen = {
        name: result.choices[name] for name in ("eta", "pool", "power", "start", "length") if name in result.choices
    }
    settings = FitSettings(epochs=10, batch_size=100, lr=0.01, optimizer="adamw")
    stages = {"trajectory": {"epochs": 10}}
    again = method("umix", **chosen).train(Context(shortcut(300), Curved(trained=True), settings, stages))
    assert all(
        torch.equal(one, other) for one, other in zip(result.net.parameters(), again.net.parameters(), strict=True)
    )


@pytest.mark.parametrize("options", [{"trained": False}, {"trained": True, "linear": False}])
def test_a_body_with_random_weights_or_a_head_that_is_not_linear_is_not_frozen(options):
    context = Context(shortcut(50), Curved(**options))
    with trial_context(context) as trial:
        assert trial is context


def test_in_a_trial_a_budget_counts_from_the_simplest_head_and_the_winner_keeps_the_limit_of_the_run():
    settings = FitSettings(epochs=2, batch_size=100)
    context = Context(shortcut(300), Curved(trained=True), settings, evaluation=Evaluation(budget=0.02))
    limited = limited_cost(context, 0.9)
    result = method("umix", **AUTO["umix"]).train(context)
    assert limited.evaluation.floor == pytest.approx(0.88)
    with trial_context(limited) as trial:
        assert (trial.evaluation.floor, trial.evaluation.budget) == (None, 0.02)
    assert result.history.evaluation.floor is not None


def test_heads_are_trained_as_those_on_features_of_ones_own():
    assert FitSettings(**preset("arrays", "default")["fit"]) == HEAD


def test_boxes_are_not_cut_from_features():
    assert on_features(MixupRisk(sigma=0.5, alpha=1.0, mixing="cutmix")).mixing == "input"
    assert on_features(erm := MeanRisk()) is erm
