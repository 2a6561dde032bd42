"""Successive halving: rounds, dropping out, and going on after a stop."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import umix.selection.halving as module
from umix.core.selection import best_score
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.models.mlp import MLP, Linear
from umix.selection.halving import SELECTION, CandidateBatch, Round, StackedMixup, rounds_of, successive_halving
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.mixup_risk import MixupRisk

N = 200


def task() -> Task:
    rng = np.random.default_rng(0)
    splits = {}
    for name in ("train", "val", "test"):
        y = rng.integers(0, 2, N)
        x = torch.from_numpy(rng.normal(size=(N, 4)) + 0.7 * y[:, None]).float()
        splits[name] = Split(x, torch.from_numpy(y), Groups(torch.zeros(N, 0).bool(), ()))
    return Task("two", splits, ("0", "1"))


def context(cache=None, *, net=None, **settings) -> Context:
    return Context(task(), net or Linear(), FitSettings(epochs=8, batch_size=32, **settings), cache=cache)


def stacked(members: int = 6) -> CandidateBatch:
    weights = torch.stack([torch.ones(N) * (1 + member) for member in range(members)], dim=1)
    names = tuple(f"m{member}" for member in range(members))
    return CandidateBatch(names, StackedMixup(MixupRisk(sigma=0.5, alpha=0.5), weights))


def alone(members: int = 6) -> list[CandidateBatch]:
    made = []
    for member in range(members):
        objective = MixupRisk(weights=torch.ones(N) * (1 + member), sigma=0.5, alpha=0.5)
        made.append(CandidateBatch((f"m{member}",), objective))
    return made


def by_class(results):
    return {name: best_score(result, "worst_class") for name, result in results.items()}


def test_rounds_halve_the_candidates_down_to_two():
    assert rounds_of(epochs=20, candidates=40)[:2] == (Round(2, 20), Round(5, 10))
    assert rounds_of(epochs=20, candidates=3)[-1].keep == 2
    assert rounds_of(epochs=20, candidates=1)[-1].keep == 1


@pytest.mark.parametrize("epochs", [1, 2, 3, 7, 100])
def test_rounds_end_within_the_epochs_and_in_rising_order(epochs):
    ends = [one.until for one in rounds_of(epochs=epochs, candidates=16)]
    assert ends == sorted(set(ends))
    assert 1 <= ends[0] <= ends[-1] <= epochs


@pytest.mark.parametrize("batches", [[stacked()], alone()], ids=["stacked", "alone"])
def test_those_that_drop_out_train_less(batches):
    results = successive_halving(context(), batches, by_class, content="test")
    epochs = sorted(result.epochs for result in results.values())
    assert epochs == [1, 1, 1, 2, 6, 6]  # of 8: judged after 1, 2, 4 and 6


def test_a_candidate_that_stays_is_trained_to_the_end():
    def first_is_worst(results):
        return {name: -float(result.class_hits[0, 0]) for name, result in results.items()}

    plain = successive_halving(context(), alone(), first_is_worst, content="test")
    worst = min(plain, key=lambda name: plain[name].epochs)
    again = successive_halving(context(), alone(), first_is_worst, content="test", stays={worst})
    assert again[worst].epochs == 6


class Positions:
    """Progress that keeps where the stage is after every step."""

    began = 0.0

    def __init__(self):
        self.shares, self.at, self.total, self.ended = [], 0, 0, 0

    def start(self, stage, *, total, done):
        self.at, self.total = done, total

    def advance(self, steps):
        self.at += steps
        self.shares.append(self.at / self.total)

    def finish(self):
        self.ended += 1

    def note(self, message): ...


@pytest.mark.parametrize("batches", [[stacked()], alone()], ids=["stacked", "alone"])
def test_all_rounds_are_one_stage_that_goes_from_its_beginning_to_its_end(batches):
    progress = Positions()
    successive_halving(replace(context(), progress=progress), batches, by_class, content="test")
    assert progress.shares == sorted(progress.shares)
    assert progress.shares[0] < 0.2
    assert (progress.shares[-1], progress.ended) == (1.0, 1)


@pytest.mark.parametrize(("stop", "epochs"), [(0.0, 1), (math.inf, 6)], ids=["past", "far"])
def test_no_round_begins_that_would_end_too_late(stop, epochs):
    results = successive_halving(context(), alone(), by_class, content="test", stop=stop)
    assert max(result.epochs for result in results.values()) == epochs


def test_stacked_nets_count_what_nets_of_their_own_count():
    together = successive_halving(context(), [stacked(2)], by_class, content="test")
    single = successive_halving(context(), alone(2), by_class, content="test")
    for name, result in together.items():
        assert abs(result.threshold_hits - single[name].threshold_hits).max() <= 2


@pytest.mark.parametrize("make", [lambda: [stacked()], alone], ids=["stacked", "alone"])
@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_killed_halving_goes_on_and_ends_the_same(tmp_path, monkeypatch, make, after):
    whole = successive_halving(context(tmp_path / "whole"), make(), by_class, content="test")
    calls, real = [0], module.fit

    def dies(*arguments, **options):
        calls[0] += 1
        if calls[0] > after:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(module, "fit", dies)
    if len(make()) > 1 or after < 4:
        with pytest.raises(KeyboardInterrupt):
            successive_halving(context(tmp_path / "killed"), make(), by_class, content="test")
    monkeypatch.setattr(module, "fit", real)
    again = successive_halving(context(tmp_path / "killed"), make(), by_class, content="test")
    for name, result in whole.items():
        assert (result.threshold_hits == again[name].threshold_hits).all()


def test_a_halving_that_is_killed_between_two_rounds_leaves_no_net(tmp_path, monkeypatch):
    real = module.thin_checkpoint

    def dies(*arguments, **options):
        real(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "thin_checkpoint", dies)
    with pytest.raises(KeyboardInterrupt):
        successive_halving(context(tmp_path), [stacked()], by_class, content="test")
    monkeypatch.setattr(module, "thin_checkpoint", real)
    successive_halving(context(tmp_path), [stacked()], by_class, content="test")
    assert not list(tmp_path.rglob("checkpoint.safetensors"))


def test_a_finished_halving_is_reused_and_other_content_is_not(tmp_path):
    first, second, third = (context(tmp_path) for _ in range(3))
    successive_halving(first, [stacked()], by_class, content="test")
    successive_halving(second, [stacked()], by_class, content="test")
    successive_halving(third, [stacked()], by_class, content="other")
    assert [one.journal.reports[SELECTION].reused for one in (first, second, third)] == [False, True, False]


def test_a_halving_counts_again_where_rows_that_are_in_margins_alone_have_other_values(tmp_path):
    def of_sexes(*sexes: int) -> Context:
        """Two rows of one class have these sexes and no race."""
        made = task()
        y, blank = made.splits["val"].y, (made.splits["val"].y == 0).nonzero()[:2, 0]
        sex, race, attribute = torch.arange(N) % 2, torch.zeros_like(y), torch.arange(N) % 2
        sex[blank], race[blank], attribute[blank] = torch.tensor(sexes), -1, -1
        groups = Groups.cells(
            y,
            attribute,
            labels=["0", "1"],
            attributes=["f, a", "m, a"],
            columns=["y", "sex", "race"],
            values=[("f", "a"), ("m", "a")],
            by_column=[(sex, ["f", "m"]), (race, ["a"])],
        )
        splits = {name: replace(split, groups=groups) for name, split in made.splits.items()}
        return Context(replace(made, splits=splits), Linear(), FitSettings(epochs=8, batch_size=32), cache=tmp_path)

    first, second, third = of_sexes(0, 1), of_sexes(1, 0), of_sexes(0, 1)
    for one in (first, second, third):
        successive_halving(one, [stacked(2)], by_class, content="test")
    assert [one.journal.reports[SELECTION].reused for one in (first, second, third)] == [False, False, True]


@pytest.mark.parametrize("make", [lambda: [stacked()], alone], ids=["stacked", "alone"])
def test_a_finished_halving_keeps_counts_but_no_nets(tmp_path, make):
    successive_halving(context(tmp_path), make(), by_class, content="test")
    assert list(tmp_path.rglob("selection.safetensors"))
    assert not list(tmp_path.rglob("checkpoint.safetensors"))


@pytest.mark.parametrize("make", [lambda: [stacked()], alone], ids=["stacked", "alone"])
def test_a_halving_with_another_score_goes_on_where_a_finished_one_dropped_others(tmp_path, make):
    successive_halving(context(tmp_path), make(), by_class, content="test")
    names = [name for batch in make() for name in batch.names]
    places = iter(range(10**6))

    def last_first(results):
        return {name: float(next(places)) for name in results}  # another order than that of the first halving

    results = successive_halving(context(tmp_path), make(), last_first, content="test")
    assert set(results) == set(names)
    assert max(result.epochs for result in results.values()) == 6


def test_a_part_of_a_stack_goes_on_as_it_would_have_in_the_whole(monkeypatch):
    """Without halving, the survivors end with the same counts as with it."""
    halved = successive_halving(context(), [stacked()], by_class, content="test")
    monkeypatch.setattr(module, "rounds_of", lambda epochs, candidates: (Round(6, 6),))
    full = successive_halving(context(), [stacked()], by_class, content="test")
    for name, result in halved.items():
        known = result.epochs
        assert abs(result.threshold_hits - full[name].threshold_hits[:known]).max() <= 1


def test_gradients_of_members_are_clipped_one_by_one():
    """A member with huge weights must not shorten the steps of another."""
    weights = torch.stack([torch.ones(N), 1e6 * torch.ones(N)], dim=1)
    huge = StackedMixup(MixupRisk(sigma=0.5, alpha=0.5), weights)
    clipped = context(net=MLP(hidden=(4,)), clip_norm=0.5)
    both = successive_halving(clipped, [CandidateBatch(("a", "b"), huge)], by_class, content="test")
    single = CandidateBatch(("a",), MixupRisk(weights=torch.ones(N), sigma=0.5, alpha=0.5))
    one = successive_halving(context(net=MLP(hidden=(4,)), clip_norm=0.5), [single], by_class, content="test")
    assert abs(both["a"].threshold_hits - one["a"].threshold_hits).max() <= 2
