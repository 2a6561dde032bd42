"""Selecting one of several candidates on validation, with what is known of the groups.

A candidate stands for an ordinary run: a method with settings. Where validation groups may be used, the worst of them decides.
Where they may not, the worst class and the average decide (the rule ``balanced``). There ERM and class
reweighting are trained beside the candidates, and no choice may lower the mean of the class rates on validation more than a point
(or its standard error) below the better of the two, each with the threshold that suits it: lifting a minority or balancing classes
does not cost that, learning noise does.
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
from umix.core.selection import Threshold, best_choice, best_score, class_floor
from umix.core.weights import inverse_frequency
from umix.core.words import duration
from umix.data.samplers import Sampler, Shuffled
from umix.models.stacked import can_stack
from umix.selection.halving import (
    MOST_FITS,
    CandidateBatch,
    StackedMixup,
    affordable,
    epochs_of,
    rounds_of,
    successive_halving,
)
from umix.selection.trial import on_features, trial_context
from umix.settings import Settings
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.mixup_risk import Mixing, MixupRisk
from umix.training.objective import MeanRisk, Objective
from umix.training.train_result import Notes
from umix.training.trajectory import Trajectory

#: The value of an option that is chosen on validation.
Auto = Literal["auto"]
#: How candidates are compared: by the worst group, or by the worst class and the average.
Rule = Literal["worst", "balanced"]

_MOST_POINTS = 40  # of the frontier that are kept
COMPARED = "candidates were compared as heads on the net's frozen features"
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
class CandidateResult:
    """How good a candidate is: the score that decides, and its raw validation rates at the epoch and threshold chosen for it.

    Where groups choose, the score is the worst rate of a group, margin or class, small groups pulled towards their class.
    """

    name: str
    score: float
    worst: float
    average: float
    epochs: int

    def as_json(self) -> dict[str, Any]:
        """This result as it is saved with the run; a score that does not exist is None."""
        return {
            "candidate": self.name,
            "score": None if np.isnan(self.score) else round(self.score, 4),
            "worst": None if np.isnan(self.worst) else round(self.worst, 4),
            "average": round(self.average, 4),
            "epochs": self.epochs,
        }


def by_score(results: Sequence[CandidateResult]) -> list[CandidateResult]:
    """The best first, those without a score last; equal ones stay in order."""
    return sorted(results, key=lambda one: -np.inf if np.isnan(one.score) else one.score, reverse=True)


@final
@dataclass(frozen=True)
class Point:
    """A candidate at one epoch and threshold: its worst rate and its average on validation."""

    name: str
    worst: float
    average: float

    def as_json(self) -> dict[str, Any]:
        return {"candidate": self.name, "worst": round(self.worst, 4), "average": round(self.average, 4)}


@final
@dataclass(frozen=True, eq=False)
class Selection:
    """The winner and the results of all candidates, best first.

    ``rule`` is the rule of the choice: ``worst`` where groups choose, else ``balanced``. ``frontier`` has the points of all
    candidates, epochs and thresholds that no other beats in both rates. ``context`` limits what the winner's epoch and threshold
    may cost as it limited the candidates in the context ``trial``. ``warnings`` are for the run's record. ``baseline`` is the best
    average of the first candidate where all were heads on frozen features, whose rates are not those of the winner trained whole.
    """

    winner: Candidate
    results: tuple[CandidateResult, ...]
    frontier: tuple[Point, ...]
    rule: Rule
    context: Context
    trial: Context
    warnings: tuple[str, ...] = ()
    baseline: float | None = None

    def including(self, result: CandidateResult) -> "Selection":
        """This selection with the result of one that was trained elsewhere, which comes first if its score is the highest."""
        first, *others = self.results
        head, other = (result, first) if result.score > first.score else (first, result)
        return replace(self, results=(head, *by_score([other, *others])))

    @property
    def reason(self) -> str:
        """Why the winner was chosen, in words."""
        return f"the best of {len(self.results)} candidates{self.compared} on validation: {self.reached}"

    @property
    def compared(self) -> str:
        """How candidates were compared, in words, if not as they are trained."""
        return "" if self.baseline is None else ", as heads on frozen features,"

    @property
    def reached(self) -> str:
        """What the winner reached on validation, in words: by the score that decided, and on average."""
        best = self.results[0]
        average = f"average {100 * best.average:.1f} %"
        if self.rule == "worst":
            return f"worst group {score_words(best)} (small groups are pulled towards their class), {average}"
        return f"score {score_words(best)} (two fifths the worst class, three fifths the average), {average}"

    def as_json(self) -> dict[str, Any]:
        """The reason of the choice, the results of all candidates and the frontier, as they are saved with the run."""
        return {
            "reason": self.reason,
            "candidates": [result.as_json() for result in self.results],
            "frontier": [point.as_json() for point in self.frontier],
            **({} if self.baseline is None else {"compared": {"words": COMPARED}}),
        }

    @property
    def notes(self) -> Notes:
        """What the run keeps: the values that were chosen for the options of its method, the reason and all results."""
        settings = {key.removeprefix(f"{self.winner.method}."): value for key, value in self.winner.settings.items()}
        return Notes(choices=settings | self.as_json(), warnings=self.warnings)


def select(
    context: Context,
    candidates: Sequence[Candidate],
    *,
    content: str,
    stop: float | None = None,
    trial: Context | None = None,
) -> Selection:
    """Train the ``candidates`` by successive halving and choose one of them by its validation counts.

    ``content`` identifies what decides the candidates' objectives beside their names and weights, so that runs can share what was
    trained. No round begins that would probably end after ``stop``, a time by ``time.perf_counter``. The first candidate, the
    simplest, wins if none is allowed. ``trial`` is the context that they are trained in, that of ``trial_context`` if it is None.
    Nets that cannot be stacked cost at most ``MOST_FITS`` final fits together: the last candidates are left out.
    """
    if trial is not None:
        return _select(context, trial, candidates, content=content, stop=stop)
    with trial_context(context) as trial:
        return _select(context, trial, candidates, content=content, stop=stop)


def _select(
    context: Context, trial: Context, candidates: Sequence[Candidate], *, content: str, stop: float | None
) -> Selection:
    rule: Rule = "worst" if chooses_by_groups(context) else "balanced"
    simple = [] if rule == "worst" else simple_candidates(context)
    names = {one.name for one in candidates}
    beside = [one for one in simple if one.name not in names]
    # A budget counts from ERM's average, which a frozen net reaches with its simplest head.
    budget = trial.evaluation.budget if trial is not context else None
    # What the others are compared with is trained as far as they are.
    stays = {candidates[0].name, *(one.name for one in simple)} if simple or budget is not None else set[str]()
    epochs, most_epochs = trial.final_settings.epochs, None
    if trains_alone(trial):
        most_epochs = MOST_FITS * epochs
        candidates = candidates[: max(2, affordable(epochs, stays=len(stays)) - len(beside))]
    trained = [*candidates, *beside]
    if trial is not context:
        trained = [replace(one, objective=on_features(one.objective)) for one in trained]

    def limited(counts: Mapping[str, Counts]) -> Mapping[str, Counts]:
        evaluation = trial.evaluation
        if simple:
            evaluation = replace(evaluation, class_floor=max(class_floor(counts[one.name]) for one in simple))
        if budget is not None:
            evaluation = replace(evaluation, floor=_best_average(counts[candidates[0].name]) - budget)
        return {name: replace(one, evaluation=evaluation) for name, one in counts.items()}

    def scores(counts: Mapping[str, Counts]) -> dict[str, float]:
        return {name: best_score(one, rule) for name, one in limited(counts).items()}

    if estimate := _estimate(context, trial, len(trained), stays=len(stays), most_epochs=most_epochs):
        context.progress.note(estimate)
    counts = successive_halving(
        trial,
        _batches(trial, trained),
        scores,
        content=content + _digest(trained),
        stop=stop,
        stays=stays,
        most_epochs=most_epochs,
    )
    final, judged = scores(counts), limited(counts)
    evaluation = judged[candidates[0].name].evaluation
    baseline = None if trial is context else _best_average(counts[candidates[0].name])
    floor = evaluation.floor if trial is context else context.evaluation.floor
    context, trained_in = context.evaluated_by(replace(evaluation, floor=floor)), trial.evaluated_by(evaluation)
    results = [result_of(one.name, judged[one.name], final[one.name], rule) for one in candidates]
    ranked = by_score(results)
    warnings: tuple[str, ...] = ()
    if np.isnan(ranked[0].score):
        warnings = (
            f"All {len(candidates)} candidates cost too much accuracy on validation, so {candidates[0].name} is trained: what ERM "
            "gets wrong here looks like noise.",
        )
    winner = next(candidate for candidate in candidates if candidate.name == ranked[0].name)
    points = _frontier({one.name: judged[one.name] for one in candidates}, rule)
    return Selection(winner, tuple(ranked), points, rule, context, trained_in, warnings, baseline)


def _estimate(context: Context, trial: Context, nets: int, *, stays: int, most_epochs: int | None) -> str:
    """What comparing so many ``nets`` takes, in words, where it takes long; nothing where they are stacked or trees."""
    if trial is not context:
        return (
            f"Comparing {nets} candidates as heads on the frozen features of {context.net.title}, which is pretrained: its weights "
            "are the same for every seed. The winner is trained whole."
        )
    if most_epochs is None:
        return ""
    final = trial.final_settings.epochs
    epochs = epochs_of(rounds_of(final, nets), 0, nets, stays=stays, most=most_epochs)
    seconds = [row["seconds"] for log in context.journal.logs.values() for row in log.rows()]
    time = f", about {duration(epochs * float(np.mean(seconds)))}" if seconds else ""
    return f"Trying {nets} candidates, one net after another: at most {epochs} epochs, {epochs / final:.1f} final fits{time}."


def _best_average(counts: Counts) -> float:
    """The best accuracy of an epoch on validation, by argmax."""
    return float(counts.all_hits.max() / max(1, counts.n))


def score_words(result: CandidateResult) -> str:
    """The score of ``result`` in percent; in words where it has none."""
    return "costs too much" if np.isnan(result.score) else f"{100 * result.score:.1f} %"


def simple_candidates(context: Context) -> list[Candidate]:
    """ERM and class reweighting: what every choice without groups is compared with."""
    train = context.splits["train"]
    balanced = inverse_frequency(train.y, sample_weight=train.weight).to(context.device)
    return [
        Candidate(ERM, "erm", {}, MeanRisk()),
        Candidate(REWEIGHT, "reweight", {"reweight.by": "class"}, BatchRisk(weights=balanced), weights=balanced),
    ]


def limited_cost(context: Context, baseline: float, budget: float | None = None) -> Context:
    """``context``, where no choice may lower validation accuracy further below ``baseline``, that of ERM, than the budget allows.

    ``budget`` overrides that of the run; without any there is no limit.
    """
    allowed = context.evaluation.budget if budget is None else budget
    floor = None if allowed is None else baseline - allowed
    return context.evaluated_by(replace(context.evaluation, budget=allowed, floor=floor))


def chooses_by_groups(context: Context) -> bool:
    """Whether known validation groups may choose, and some are large enough to."""
    groups = context.splits["val"].groups
    sizes = torch.cat([groups.sizes, groups.in_margins.sum(dim=0)])
    return context.evaluation.groups_choose(sizes.cpu().numpy())


def result_of(name: str, counts: Counts, score: float, rule: str, *, threshold: Threshold = "tuned") -> CandidateResult:
    """The result of a candidate with these validation counts, at the epoch and threshold that ``rule`` chooses."""
    choice = best_choice(counts, rule, threshold)
    at = counts.at_threshold(choice.threshold).only([choice.epoch])
    average = float(at.all_hits[0] / max(1, at.n))
    return CandidateResult(name, score, float(worst_rates(at, rule)[0]), average, counts.epochs)


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


def _frontier(counts: Mapping[str, Counts], rule: str) -> tuple[Point, ...]:
    """The frontier of all candidates, epochs and thresholds on validation."""
    points: list[Point] = []
    for name, one in counts.items():
        every = one.every_threshold
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


def trains_alone(context: Context) -> bool:
    """Whether every candidate is a net that is trained by itself, because it cannot be stacked.

    On several processes no net is stacked, but what is tried must not depend on how many there are.
    """
    return "gradients" in context.net.offers and not can_stack(context.fresh_net())


def _batches(context: Context, candidates: Sequence[Candidate]) -> list[CandidateBatch]:
    """Candidates that differ only in the weights of examples are stacked where the net can be; others are trained alone."""
    stackable = can_stack(context.fresh_net()) and context.engine.processes == 1
    stacked: list[tuple[Candidate, tuple[float, float, Mixing], Tensor]] = []
    batches: list[CandidateBatch] = []
    n = len(context.splits["train"])
    for candidate in candidates:
        weighted = (
            _as_weights(candidate.objective, n) if stackable and isinstance(candidate.sampler, Shuffled) else None
        )
        if weighted is None:
            batches.append(CandidateBatch((candidate.name,), candidate.objective, candidate.sampler))
        else:
            weights, how = weighted
            stacked.append((candidate, how, weights))
    for (sigma, alpha, mixing), members in groupby(sorted(stacked, key=lambda one: one[1]), key=lambda one: one[1]):
        together = list(members)
        weights = torch.stack([weights.float() for _, _, weights in together], dim=1).to(context.device)
        objective = StackedMixup(MixupRisk(sigma=sigma, alpha=alpha, mixing=mixing), weights)
        batches.append(CandidateBatch(tuple(candidate.name for candidate, _, _ in together), objective))
    return batches


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


def resolve_auto(
    method: Settings, context: Context, candidates: Sequence[Candidate], *, erm: Trajectory | None = None
) -> Selection:
    """The selection among ``candidates``, which stand for the options that ``method`` leaves open.

    ``erm`` is the trajectory of an ERM fit, from whose accuracy the run's budget is counted; without it there is no limit.
    """
    if erm is not None:
        context = limited_cost(context, max(erm.val_rates()))
    open_options = {key.removeprefix(f"{one.method}.") for one in candidates for key in one.settings}
    return select(context, candidates, content=method.model_dump_json(exclude=open_options))
