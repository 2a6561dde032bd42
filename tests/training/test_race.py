"""Races: rounds, dropping out, and going on after a stop."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import umix.training.race as module
from umix.core.selection import best_score
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.methods.parts.mixup_risk import FleetMixup, MixupRisk
from umix.nets.mlp import MLP, Linear
from umix.training.fit_settings import FitSettings
from umix.training.race import Lane, Round, race, rounds_of
from umix.training.trainer import Trainer

N = 200


def task() -> Task:
    rng = np.random.default_rng(0)
    splits = {}
    for name in ("train", "val", "test"):
        y = rng.integers(0, 2, N)
        x = torch.from_numpy(rng.normal(size=(N, 4)) + 0.7 * y[:, None]).float()
        splits[name] = Split(x, torch.from_numpy(y), Groups(torch.zeros(N, 0).bool(), ()))
    return Task("two", splits, ("0", "1"))


def trainer(cache=None, *, net=None, **settings) -> Trainer:
    return Trainer(task(), net or Linear(), FitSettings(epochs=8, batch_size=32, **settings), cache=cache)


def fleet(members: int = 6) -> Lane:
    weights = torch.stack([torch.ones(N) * (1 + member) for member in range(members)], dim=1)
    return Lane(
        tuple(f"m{member}" for member in range(members)), FleetMixup(MixupRisk(weights=weights, sigma=0.5, alpha=0.5))
    )


def alone(members: int = 6) -> list[Lane]:
    made = []
    for member in range(members):
        objective = MixupRisk(weights=torch.ones(N) * (1 + member), sigma=0.5, alpha=0.5)
        made.append(Lane((f"m{member}",), objective))
    return made


def by_class(results):
    return {name: best_score(result.counts, "worst_class") for name, result in results.items()}


def test_rounds_halve_the_candidates_down_to_two():
    assert rounds_of(epochs=20, candidates=40)[:2] == (Round(2, 20), Round(5, 10))
    assert rounds_of(epochs=20, candidates=3)[-1].keep == 2
    assert rounds_of(epochs=20, candidates=1)[-1].keep == 1


@pytest.mark.parametrize("epochs", [1, 2, 3, 7, 100])
def test_rounds_end_within_the_epochs_and_in_rising_order(epochs):
    ends = [one.until for one in rounds_of(epochs=epochs, candidates=16)]
    assert ends == sorted(set(ends))
    assert 1 <= ends[0] <= ends[-1] <= epochs


@pytest.mark.parametrize("lanes", [[fleet()], alone()], ids=["fleet", "alone"])
def test_those_that_drop_out_train_less(lanes):
    results = race(trainer(), lanes, by_class, content="test")
    epochs = sorted(result.counts.epochs for result in results.values())
    assert epochs == [1, 1, 1, 2, 6, 6]  # of 8: judged after 1, 2, 4 and 6


def test_a_candidate_that_stays_is_trained_to_the_end():
    def first_is_worst(results):
        return {name: -float(result.counts.class_hits[0, 0]) for name, result in results.items()}

    plain = race(trainer(), alone(), first_is_worst, content="test")
    worst = min(plain, key=lambda name: plain[name].counts.epochs)
    assert race(trainer(), alone(), first_is_worst, content="test", stays={worst})[worst].counts.epochs == 6


def test_a_fleet_counts_what_nets_of_their_own_count():
    stacked = race(trainer(), [fleet(2)], by_class, content="test")
    single = race(trainer(), alone(2), by_class, content="test")
    for name, result in stacked.items():
        assert abs(result.counts.decided_hits - single[name].counts.decided_hits).max() <= 2


@pytest.mark.parametrize("make", [lambda: [fleet()], alone], ids=["fleet", "alone"])
@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_killed_race_goes_on_and_ends_the_same(tmp_path, monkeypatch, make, after):
    whole = race(trainer(tmp_path / "whole"), make(), by_class, content="test")
    calls, real = [0], module.fit

    def dies(*arguments, **options):
        calls[0] += 1
        if calls[0] > after:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(module, "fit", dies)
    if len(make()) > 1 or after < 4:
        with pytest.raises(KeyboardInterrupt):
            race(trainer(tmp_path / "killed"), make(), by_class, content="test")
    monkeypatch.setattr(module, "fit", real)
    again = race(trainer(tmp_path / "killed"), make(), by_class, content="test")
    for name, result in whole.items():
        assert (result.counts.decided_hits == again[name].counts.decided_hits).all()


def test_a_race_that_is_killed_between_two_rounds_leaves_no_net(tmp_path, monkeypatch):
    real = module.thin_checkpoint

    def dies(*arguments, **options):
        real(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "thin_checkpoint", dies)
    with pytest.raises(KeyboardInterrupt):
        race(trainer(tmp_path), [fleet()], by_class, content="test")
    monkeypatch.setattr(module, "thin_checkpoint", real)
    race(trainer(tmp_path), [fleet()], by_class, content="test")
    assert not list(tmp_path.rglob("checkpoint.safetensors"))


def test_a_finished_race_is_reused_and_other_content_is_not(tmp_path):
    first, second, third = (trainer(tmp_path) for _ in range(3))
    race(first, [fleet()], by_class, content="test")
    race(second, [fleet()], by_class, content="test")
    race(third, [fleet()], by_class, content="other")
    assert [one.reports["race"].reused for one in (first, second, third)] == [False, True, False]


def test_a_race_counts_again_where_rows_that_are_in_margins_alone_have_other_values(tmp_path):
    def of_sexes(*sexes: int) -> Trainer:
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
        return Trainer(replace(made, splits=splits), Linear(), FitSettings(epochs=8, batch_size=32), cache=tmp_path)

    first, second, third = of_sexes(0, 1), of_sexes(1, 0), of_sexes(0, 1)
    for one in (first, second, third):
        race(one, [fleet(2)], by_class, content="test")
    assert [one.reports["race"].reused for one in (first, second, third)] == [False, False, True]


@pytest.mark.parametrize("make", [lambda: [fleet()], alone], ids=["fleet", "alone"])
def test_a_finished_race_keeps_counts_but_no_nets(tmp_path, make):
    race(trainer(tmp_path), make(), by_class, content="test")
    assert list(tmp_path.rglob("race.safetensors"))
    assert not list(tmp_path.rglob("checkpoint.safetensors"))


@pytest.mark.parametrize("make", [lambda: [fleet()], alone], ids=["fleet", "alone"])
def test_a_race_with_another_score_goes_on_where_a_finished_one_dropped_others(tmp_path, make):
    race(trainer(tmp_path), make(), by_class, content="test")
    names = [name for lane in make() for name in lane.names]
    places = iter(range(10**6))

    def last_first(results):
        return {name: float(next(places)) for name in results}  # another order than that of the first race

    results = race(trainer(tmp_path), make(), last_first, content="test")
    assert set(results) == set(names)
    assert max(result.counts.epochs for result in results.values()) == 6


def test_a_part_of_a_fleet_goes_on_as_it_would_have_in_the_whole(monkeypatch):
    """Without halving, the survivors end with the same counts as with it."""
    halved = race(trainer(), [fleet()], by_class, content="test")
    monkeypatch.setattr(module, "rounds_of", lambda epochs, candidates: (Round(6, 6),))
    full = race(trainer(), [fleet()], by_class, content="test")
    for name, result in halved.items():
        known = result.counts.epochs
        assert abs(result.counts.decided_hits - full[name].counts.decided_hits[:known]).max() <= 1


def test_gradients_of_members_are_clipped_one_by_one():
    """A member with huge weights must not shorten the steps of another."""
    weights = torch.stack([torch.ones(N), 1e6 * torch.ones(N)], dim=1)
    huge = FleetMixup(MixupRisk(weights=weights, sigma=0.5, alpha=0.5))
    clipped = trainer(net=MLP(hidden=(4,)), clip_norm=0.5)
    both = race(clipped, [Lane(("a", "b"), huge)], by_class, content="test")
    single = Lane(("a",), MixupRisk(weights=torch.ones(N), sigma=0.5, alpha=0.5))
    one = race(trainer(net=MLP(hidden=(4,)), clip_norm=0.5), [single], by_class, content="test")
    assert abs(both["a"].counts.decided_hits - one["a"].counts.decided_hits).max() <= 2


def test_uncertain_examples_are_counted_apart():
    uncertain = torch.arange(N) < 50
    results = race(trainer(), [fleet(2)], by_class, content="test", uncertain=uncertain)
    result = results["m0"]
    assert result.n_uncertain == 50
    assert (result.uncertain_hits <= 50).all()
    assert (result.uncertain_hits <= result.counts.decided_hits.sum(axis=2)).all()
