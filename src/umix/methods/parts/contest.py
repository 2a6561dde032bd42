"""A contest: candidates race on validation, and the best one for what is known of the groups is chosen.

A candidate stands for an ordinary run: a method with settings. Where validation groups may be used, the worst of them decides.
Where they may not, the examples that ERM was certain of, those that it was not, and the worst class decide together
(``trust_scores``). There ERM and class reweighting are trained beside the candidates, and no choice may lower the mean of the
class rates on validation more than a point (or its standard error) below the better of the two, each with the threshold that suits
it: lifting a minority or balancing classes does not cost that, relearning noise does.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import groupby
from typing import Any, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from umix.core.epoch_counts import Counts
from umix.core.rates import frontier, per_group
from umix.core.selection import UNCERTAIN, Decide, best_choice, best_score, class_floor, trust_scores, within_limits
from umix.core.weights import inverse_frequency
from umix.data.samplers import Sampler, Shuffled
from umix.methods.method import Method
from umix.methods.parts.batch_risk import BatchRisk
from umix.methods.parts.mixup_risk import FleetMixup, Mixing, MixupRisk
from umix.nets.fleet import can_stack
from umix.training.objective import MeanRisk, Objective
from umix.training.race import Lane, RaceResult, race
from umix.training.trainer import Trainer
from umix.training.trajectory import Trajectory

#: The value of an option that a contest chooses.
Auto = Literal["auto"]

_MOST_POINTS = 40  # of the frontier that are kept
_CLEARLY = 0.01  # by how much a candidate's score must beat the first one's where groups do not decide
ERM, REWEIGHT = "erm", "reweight by=class"  # the names of the simple candidates


@final
@dataclass(frozen=True, eq=False)
class Candidate:
    """What a net is trained to minimise, and the run that does the same: a ``method`` with ``settings``.

    ``weights`` [n] are kept with the run if the candidate wins.
    """

    name: str
    method: str
    settings: Mapping[str, Any]
    objective: Objective
    sampler: Sampler = field(default_factory=Shuffled)
    weights: Tensor | None = None

    def with_settings(self, more: Mapping[str, Any]) -> "Candidate":
        """This candidate, whose run needs ``more`` settings."""
        return replace(self, settings={**self.settings, **more})


@final
@dataclass(frozen=True)
class Standing:
    """How far a candidate came: the score that decides, and its raw validation rates at the epoch and decision chosen for it.

    Where groups choose, the score is the worst rate of a group, margin or class, small groups pulled towards their class.
    """

    name: str
    score: float
    worst: float
    average: float
    epochs: int

    def as_json(self) -> dict[str, Any]:
        """This standing as it is saved with the run; a score that does not exist is None."""
        return {
            "candidate": self.name,
            "score": None if np.isnan(self.score) else round(self.score, 4),
            "worst": None if np.isnan(self.worst) else round(self.worst, 4),
            "average": round(self.average, 4),
            "epochs": self.epochs,
        }


def by_score(standings: Sequence[Standing]) -> list[Standing]:
    """The best first, those without a score last; equal ones stay in order."""
    return sorted(standings, key=lambda one: -np.inf if np.isnan(one.score) else one.score, reverse=True)


@final
@dataclass(frozen=True)
class Point:
    """A candidate at one epoch and decision: its worst rate and its average on validation."""

    name: str
    worst: float
    average: float

    def as_json(self) -> dict[str, Any]:
        return {"candidate": self.name, "worst": round(self.worst, 4), "average": round(self.average, 4)}


@final
@dataclass(frozen=True, eq=False)
class Verdict:
    """The winner of a contest and the standings of all candidates, best first.

    ``rule`` is the rule of its final choice: ``worst`` where groups choose, else ``worst_class``. ``frontier`` has the points of
    all candidates, epochs and decisions that no other beats in both rates. ``plain`` are standings by argmax.
    """

    winner: Candidate
    standings: tuple[Standing, ...]
    plain: Mapping[str, Standing]
    frontier: tuple[Point, ...]
    rule: Literal["worst", "worst_class"]

    def including(self, standing: Standing) -> "Verdict":
        """This verdict with the standing of one that was not in the race; it comes first if its score is higher than all others."""
        first, *others = self.standings
        head, other = (standing, first) if standing.score > first.score else (first, standing)
        return replace(self, standings=(head, *by_score([other, *others])))

    @property
    def unit(self) -> str:
        """What the worst rate is of."""
        return "group" if self.rule == "worst" else "class"

    @property
    def reason(self) -> str:
        """Why the winner was chosen, in words."""
        best = self.standings[0]
        return (
            f"best of {len(self.standings)} candidates on validation by {self.by}: {score_words(best)}; {best.average:.1%} on "
            "average"
        )

    @property
    def by(self) -> str:
        """What decided, in words."""
        if self.rule == "worst":
            return "the worst group, where groups of few examples are pulled towards the rate of their class"
        return (
            "the mean of three rates (what ERM was sure of, what it was not, the worst class), where the first candidate stays "
            "unless another is a point better"
        )

    def as_json(self) -> dict[str, Any]:
        """The reason of the choice, all standings and the frontier, as they are saved with the run."""
        return {
            "reason": self.reason,
            "standings": [standing.as_json() for standing in self.standings],
            "frontier": [point.as_json() for point in self.frontier],
        }


def contest(
    trainer: Trainer,
    candidates: Sequence[Candidate],
    *,
    uncertain: Tensor,
    content: str,
    time: float | None = None,
) -> Verdict:
    """Race the ``candidates`` and choose one of them by its validation counts.

    ``uncertain`` [n_val] says which validation examples the first stage was uncertain of. ``content`` identifies what decides the
    candidates' objectives beside their names and weights, so that runs can share races. After ``time`` seconds no further round
    begins. The first candidate, the simplest, wins if none is allowed, and where groups do not choose also if none is clearly
    better: what cannot be told from noise is not worth a more complicated method.
    """
    rule: Literal["worst", "worst_class"] = "worst" if chooses_by_groups(trainer) else "worst_class"
    simple = [] if rule == "worst" else simple_candidates(trainer)
    names = {one.name for one in candidates}
    raced = [*candidates, *(one for one in simple if one.name not in names)]

    def scores(results: Mapping[str, RaceResult]) -> dict[str, float]:
        if rule == "worst":
            return {name: best_score(result.counts, rule) for name, result in results.items()}
        floor = max(class_floor(results[one.name].counts) for one in simple)
        return {name: _trust(_limited(result, floor)) for name, result in results.items()}

    lanes, identity = _lanes(trainer, raced), content + _digest(raced)
    # What the others are compared with is trained as far as they are.
    stays = set() if rule == "worst" else {candidates[0].name, *(one.name for one in simple)}
    results = race(trainer, lanes, scores, content=identity, uncertain=uncertain, time_limit=time, stays=stays)
    if simple:
        floor = max(class_floor(results[one.name].counts) for one in simple)
        trainer.judging = replace(trainer.judging, class_floor=floor)
        results = {name: _limited(result, floor) for name, result in results.items()}
    final = scores(results)
    standings = [standing_of(one.name, results[one.name].counts, final[one.name], rule) for one in candidates]
    ranked = by_score(standings)
    if np.isnan(ranked[0].score):
        trainer.warn(
            f"All of {len(candidates)} candidates cost too much accuracy on validation: {candidates[0].name} is trained; what ERM "
            "gets wrong here looks like noise."
        )
    elif rule == "worst_class" and ranked[0].score < standings[0].score + _CLEARLY:
        ranked = [standings[0], *(one for one in ranked if one is not standings[0])]
    winner = next(candidate for candidate in candidates if candidate.name == ranked[0].name)
    plain = {
        name: standing_of(name, result.counts, float("nan"), rule, decide="argmax") for name, result in results.items()
    }
    return Verdict(winner, tuple(ranked), plain, _frontier({name: results[name] for name in names}, rule), rule)


def score_words(standing: Standing) -> str:
    """The score of ``standing`` in percent; in words where it has none."""
    return "over the budget" if np.isnan(standing.score) else f"{standing.score:.1%}"


def simple_candidates(trainer: Trainer) -> list[Candidate]:
    """ERM and class reweighting: what every choice without groups is compared with."""
    train = trainer.splits["train"]
    balanced = inverse_frequency(train.y, by=train.weight).to(trainer.device)
    return [
        Candidate(ERM, "erm", {}, MeanRisk()),
        Candidate(REWEIGHT, "reweight", {"reweight.by": "class"}, BatchRisk(weights=balanced), weights=balanced),
    ]


def _limited(result: RaceResult, floor: float) -> RaceResult:
    judging = replace(result.counts.judging, class_floor=floor)
    return replace(result, counts=replace(result.counts, judging=judging))


def limit_cost(trainer: Trainer, baseline: float, budget: float | None = None) -> None:
    """Let no choice of this run lower validation accuracy further below ``baseline``, that of ERM, than the budget allows.

    ``budget`` overrides that of the run.
    """
    judging = trainer.judging if budget is None else replace(trainer.judging, budget=budget)
    floor = judging.floor_below(baseline, groups_choose=chooses_by_groups(trainer))
    trainer.judging = replace(trainer.judging, floor=floor)


def chooses_by_groups(trainer: Trainer) -> bool:
    """Whether known validation groups may choose, and some are large enough to."""
    groups = trainer.splits["val"].groups
    sizes = torch.cat([groups.sizes, groups.in_margins.sum(dim=0)])
    return trainer.judging.groups_choose(sizes.cpu().numpy())


def _trust(result: RaceResult) -> float:
    """The best score of an epoch and decision that is allowed where no groups choose; NaN if none is."""
    every, hits = result.counts.every_decision, result.uncertain_hits.T.reshape(-1)
    scores = within_limits(trust_scores(every, hits, result.n_uncertain), every)
    return float("nan") if np.isnan(scores).all() else float(np.nanmax(scores))


def standing_of(name: str, counts: Counts, score: float, rule: str, *, decide: Decide = "biases") -> Standing:
    """The standing of a candidate with these validation counts, at the epoch and decision that ``rule`` chooses."""
    choice = best_choice(counts, rule, decide)
    at = counts.decided(choice.decision).only([choice.epoch])
    average = float(at.all_hits[0] / max(1, at.n))
    return Standing(name, score, float(worst_rates(at, rule)[0]), average, counts.epochs)


def worst_rates(counts: Counts, rule: str) -> NDArray[np.float64]:
    """The lowest raw rate of a group or margin under the rule ``worst``, else that of a class, [epochs].

    Groups that are too small for their rate to be judged alone are left out, unless all are.
    """
    units = counts.units()
    if rule == "worst" and units.large.any():
        rates = per_group(units.hits, units.sizes)[:, units.large]
    else:
        rates = per_group(counts.class_hits, counts.class_sizes)[:, counts.class_sizes > 0]
    return np.asarray(rates.min(axis=1)) if rates.shape[1] else np.full(counts.epochs, np.nan)


def _frontier(results: Mapping[str, RaceResult], rule: str) -> tuple[Point, ...]:
    """The frontier of all candidates, epochs and decisions on validation."""
    points: list[Point] = []
    for name, result in results.items():
        every = result.counts.every_decision
        worst, average = worst_rates(every, rule), every.all_hits / max(1, every.n)
        points += [Point(name, float(worst[k]), float(average[k])) for k in frontier(worst, average)]
    chosen = frontier([point.worst for point in points], [point.average for point in points])
    if len(chosen) > _MOST_POINTS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, _MOST_POINTS).round().astype(int)]
    return tuple(points[k] for k in chosen)


def _digest(candidates: Sequence[Candidate]) -> str:
    """A hash of every tensor that the candidates' objectives and samplers hold: weights, groups."""
    content = hashlib.sha256()
    for candidate in candidates:
        for part in (candidate.objective, candidate.sampler):
            names: list[str] = [one.name for one in fields(part)] if is_dataclass(part) else []
            for value in (getattr(part, name) for name in names):
                if isinstance(value, Tensor):
                    content.update(value.cpu().contiguous().numpy().tobytes())
    return content.hexdigest()


def _lanes(trainer: Trainer, candidates: Sequence[Candidate]) -> list[Lane]:
    """Candidates that differ only in the weights of examples run as a fleet where the net can be stacked; others run alone."""
    stackable = can_stack(trainer.fresh_net()) and trainer.engine.processes == 1
    fleets: list[tuple[Candidate, tuple[float, float, Mixing], Tensor]] = []
    lanes: list[Lane] = []
    n = len(trainer.splits["train"])
    for candidate in candidates:
        found = _as_weights(candidate.objective, n) if stackable and isinstance(candidate.sampler, Shuffled) else None
        if found is None:
            lanes.append(Lane((candidate.name,), candidate.objective, candidate.sampler))
        else:
            weights, how = found
            fleets.append((candidate, how, weights))
    for (sigma, alpha, mixing), members in groupby(sorted(fleets, key=lambda one: one[1]), key=lambda one: one[1]):
        together = list(members)
        weights = torch.stack([weights.float() for _, _, weights in together], dim=1).to(trainer.device)
        objective = FleetMixup(MixupRisk(weights=weights, sigma=sigma, alpha=alpha, mixing=mixing))
        lanes.append(Lane(tuple(candidate.name for candidate, _, _ in together), objective))
    return lanes


def _as_weights(objective: Objective, n: int) -> tuple[Tensor, tuple[float, float, Mixing]] | None:
    """``objective`` as weights [n] and a kind of mixup (sigma, alpha, what is mixed); None if it is none."""
    plain: tuple[float, float, Mixing] = (0.0, 1.0, "input")
    weights = objective.example_weights
    if weights is None:
        return None
    if not isinstance(objective, MixupRisk):
        return weights.cpu().expand(n), plain
    if objective.per_example or objective.mixing == "cutmix":
        return None
    return weights.cpu().expand(n), (objective.sigma, objective.alpha, objective.mixing)


def settle(
    method: Method, trainer: Trainer, candidates: Sequence[Candidate], *, erm: Trajectory | None = None
) -> Candidate:
    """The candidate that wins on validation; the run keeps its settings, the reason and the standings.

    ``erm`` is the trajectory of an ERM fit. It says what a choice may cost on average, and where no groups may choose, which
    validation examples are uncertain. Without it known groups must choose. A single candidate wins without a race.
    """
    if len(candidates) == 1:
        return candidates[0]
    if erm is None:
        uncertain = torch.zeros(len(trainer.splits["val"]), dtype=torch.bool)
    else:
        limit_cost(trainer, max(erm.val_rates()))
        uncertain = erm.val_uncertainty(start=0, length=erm.epochs) >= UNCERTAIN
    open_options = {key.removeprefix(f"{method.name}.") for candidate in candidates for key in candidate.settings}
    verdict = contest(trainer, candidates, uncertain=uncertain, content=method.model_dump_json(exclude=open_options))
    return keep_verdict(method, trainer, verdict)


def keep_verdict(method: Method, trainer: Trainer, verdict: Verdict) -> Candidate:
    """The winner of ``verdict``; the run keeps what it has decided for the options of ``method``, the reason and the standings."""
    settings = {key.removeprefix(f"{method.name}."): value for key, value in verdict.winner.settings.items()}
    trainer.decisions |= settings | verdict.as_json()
    return verdict.winner
