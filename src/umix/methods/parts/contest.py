"""A contest: candidates race on validation, and the best one for what is known of the groups is chosen.

A candidate stands for an ordinary run: a method with settings. Where validation groups may be used, the worst of them decides.
Where they may not, the examples that ERM was certain of, those that it was not, and the worst class decide together
(``core.weight_choice``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from umix.core.losses import cross_entropy
from umix.core.rates import per_group
from umix.core.selection import Choice, best_choice, best_score
from umix.core.weight_choice import trust_scores
from umix.data.samplers import Sampler, Shuffled
from umix.methods.parts.batch_risk import BatchRisk
from umix.methods.parts.fleet_mixup import FleetMixup
from umix.methods.parts.mixers import Mixing
from umix.methods.parts.weight_family import Weighting
from umix.methods.parts.weighted_mixup import WeightedMixup, any_pair
from umix.nets.fleet import can_stack
from umix.training.objective import MeanRisk, Objective
from umix.training.race import Lane, race
from umix.training.race_counts import RaceResult
from umix.training.trainer import Trainer


@final
@dataclass(frozen=True, eq=False)
class Candidate:
    """What a net is trained to minimise, and the run that does the same: a ``method`` with ``settings``.

    ``weights`` [n] are kept with the run if the candidate wins; ``weighting`` says how they were made, if from uncertainty.
    """

    name: str
    method: str
    settings: Mapping[str, Any]
    objective: Objective
    sampler: Sampler = field(default_factory=Shuffled)
    weights: Tensor | None = None
    weighting: Weighting | None = None


@final
@dataclass(frozen=True)
class Standing:
    """How far a candidate came: its score, and its validation rates at the epoch and decision chosen for it."""

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
            "worst": round(self.worst, 4),
            "average": round(self.average, 4),
            "epochs": self.epochs,
        }


@final
@dataclass(frozen=True, eq=False)
class Verdict:
    """The winner of a contest and the standings of all candidates, best first; ``by`` says in words what decided."""

    winner: Candidate
    standings: tuple[Standing, ...]
    by: str
    unit: str

    def as_json(self) -> dict[str, Any]:
        """The reason of the choice and all standings, as they are saved with the run."""
        return {"reason": self.reason, "standings": [standing.as_json() for standing in self.standings]}

    @property
    def reason(self) -> str:
        """Why the winner was chosen, in words."""
        best, others = self.standings[0], len(self.standings) - 1
        return (
            f"best of {others + 1} candidates by {self.by}: {best.worst:.1%} in the worst {self.unit} of validation, "
            f"{best.average:.1%} on average"
        )


def contest(
    trainer: Trainer,
    candidates: Sequence[Candidate],
    *,
    uncertain: Tensor,
    content: str,
) -> Verdict:
    """Race the ``candidates`` and choose one of them by its validation counts.

    ``uncertain`` [n_val] says which validation examples the first stage was uncertain of. ``content`` identifies everything that
    decides the candidates' objectives beside their names, so that runs can share races. The first candidate wins ties, and it wins
    if none is within the budget.
    """
    by_groups = chooses_by_groups(trainer)

    def score(result: RaceResult) -> float:
        return best_score(result.counts, "worst") if by_groups else _trust(result)

    lanes = _lanes(trainer, candidates)
    results = race(trainer, lanes, score, content=content, uncertain=uncertain)
    rule = "worst" if by_groups else "worst_class"
    standings = [_standing(candidate.name, results[candidate.name], score, rule) for candidate in candidates]
    ranked = sorted(standings, key=lambda one: -np.inf if np.isnan(one.score) else one.score, reverse=True)
    if np.isnan(ranked[0].score):
        trainer.warn(
            f"None of {len(candidates)} candidates kept validation accuracy within the budget: {candidates[0].name} is trained; "
            "what ERM gets wrong here looks like noise."
        )
    winner = next(candidate for candidate in candidates if candidate.name == ranked[0].name)
    by = "the worst validation group" if by_groups else "a rule that sees no groups"
    return Verdict(winner, tuple(ranked), by, "group" if by_groups else "class")


def limit_cost(trainer: Trainer, baseline: float, budget: float | None = None) -> None:
    """Let no choice of this run lower validation accuracy further below ``baseline``, that of ERM, than the budget allows.

    ``budget`` overrides that of the run.
    """
    judging = trainer.judging if budget is None else replace(trainer.judging, budget=budget)
    sizes = trainer.splits["val"].groups.sizes.cpu().numpy()
    floor = judging.floor_below(baseline, groups_decide=judging.groups_decide(sizes))
    trainer.judging = replace(trainer.judging, floor=floor)


def chooses_by_groups(trainer: Trainer) -> bool:
    """Whether known validation groups may choose, and there are any."""
    return trainer.judging.choose and bool((trainer.splits["val"].groups.sizes > 0).any())


def _trust(result: RaceResult) -> float:
    counts = result.counts
    every, hits = counts.every_decision, result.uncertain_hits.T.reshape(-1)
    scores = trust_scores(every, hits, result.n_uncertain)
    floor = -np.inf if counts.judging.floor is None else counts.judging.floor
    allowed = scores[every.all_hits / max(1, every.n) >= floor - 1e-12]
    return float(allowed.max()) if len(allowed) else float("nan")


def _standing(name: str, result: RaceResult, score: Any, rule: str) -> Standing:
    counts = result.counts
    choice: Choice = best_choice(counts, rule)
    at = counts.decided(choice.decision)
    units = at.units(choice.epoch)
    judged = units.judged if units.judged.any() and rule == "worst" else None
    rates = (
        per_group(at.class_hits[choice.epoch], at.class_sizes)[at.class_sizes > 0]
        if judged is None
        else per_group(units.hits, units.sizes)[judged]
    )
    average = at.all_hits[choice.epoch] / max(1, at.n)
    return Standing(
        name, score(result), float(rates.min()) if len(rates) else float("nan"), float(average), counts.epochs
    )


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
        objective = FleetMixup(weights=weights, sigma=sigma, alpha=alpha, mixing=mixing)
        lanes.append(Lane(tuple(candidate.name for candidate, _, _ in together), objective))
    return lanes


def _as_weights(objective: Objective, n: int) -> tuple[Tensor, tuple[float, float, Mixing]] | None:
    """``objective`` as weights [n] and a kind of mixup (sigma, alpha, what is mixed); None if it is none."""
    plain: tuple[float, float, Mixing] = (0.0, 1.0, "input")
    if isinstance(objective, MeanRisk):
        return torch.ones(n), plain
    if isinstance(objective, BatchRisk) and objective.loss is cross_entropy and objective.risk_of is torch.mean:
        return torch.ones(n) if objective.weights is None else objective.weights.cpu(), plain
    mixes = isinstance(objective, WeightedMixup) and objective.pairing is any_pair and not objective.per_example
    if mixes and isinstance(objective, WeightedMixup) and objective.mixing != "cutmix":
        return objective.weights.cpu(), (objective.sigma, objective.alpha, objective.mixing)
    return None
