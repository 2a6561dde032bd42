"""``eta="auto"``: how much uncertainty should count, chosen on validation without group labels.

Large weights on the examples that ERM gets wrong help a minority if the labels are right. If they
are noise, large weights ruin the model (a limitation that the paper names). So values of eta are
tried in rising order, each by a fit like the final one: first with every example's own uncertainty,
then with the mean of its class, which label noise within a class does not change. An epoch of a
trial is admissible if validation accuracy is at most ``budget`` below the best of the first stage.
The trial with the best score in an admissible epoch wins. The score is in ``core.weight_choice``:
accuracy on the examples that the first stage was certain of, on those that it was uncertain of, and
in the worst class. Eta is not raised further once a trial has no admissible epoch or scores clearly
below an earlier one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from torch import Tensor

from umix.core.weight_choice import trial_rates
from umix.training.objective import Objective
from umix.training.trainer import Trainer
from umix.training.validation_trial import ValidationTrial

Pool = Literal["example", "class"]
ETAS = (1.0, 3.0, 10.0, 30.0)
_BEHIND = 0.02  # larger etas are not tried after a score that is this far below the best of smaller ones
_UNCERTAIN = 0.5  # share of wrong epochs in the window from which on a validation example is called uncertain


@final
@dataclass(frozen=True)
class TrialResult:
    """A tried setting and its best admissible epoch; ``score`` is NaN if no epoch was admissible."""

    eta: float
    pool: Pool
    score: float
    parts: tuple[float, ...]
    change: float  # of average validation accuracy, compared with the first stage

    @property
    def admissible(self) -> bool:
        return not np.isnan(self.score)

    def __str__(self) -> str:
        certain, uncertain, worst = ("none" if np.isnan(part) else f"{part:.1%}" for part in self.parts)
        return (
            f"validation accuracy {certain} on what ERM was certain of, {uncertain} on what it was not, {worst} in the worst "
            f"class, {100 * self.change:+.1f} points on average"
        )


#: The objective that a trial minimises with given eta and pool.
Candidate = Callable[[float, Pool], Objective]


def settle(
    candidate: Candidate,
    trainer: Trainer,
    *,
    uncertainty: Tensor,
    baseline: float,
    budget: float,
    etas: Sequence[float],
    pools: Sequence[Pool],
    content: str,
) -> tuple[float, Pool]:
    """The eta and pool that do best on validation; the choice and its reason are saved as decisions of the run.

    ``uncertainty`` [n_val] is that of the first stage on validation examples, ``baseline`` its best
    accuracy there. ``content`` identifies everything else that decides what a candidate is, so that
    runs can share trials.
    """
    tried: list[TrialResult] = []
    for pool in pools:
        best = -np.inf
        for eta in etas:
            trial = ValidationTrial(
                trainer.splits["val"],
                uncertainty >= _UNCERTAIN,
                n_classes=trainer.task.n_classes,
                batch_size=trainer.settings.batch_size,
            )
            trainer.trial(candidate(eta, pool), trial, stage=f"trial-{pool}-{eta:g}", content=content)
            tried.append(_judged(trial, eta, pool, baseline=baseline, budget=budget))
            if not tried[-1].admissible or tried[-1].score < best - _BEHIND:
                break
            best = max(best, tried[-1].score)
    admissible = [result for result in tried if result.admissible]
    limit = f"{100 * budget:g} points below ERM's {baseline:.1%}"
    if not admissible:
        reason = f"each of {len(tried)} trials fell more than {limit} on validation, so all examples weigh alike"
        trainer.warn(f"eta=auto weighs no example up: {reason}; what ERM gets wrong here looks like noise.")
        trainer.decisions |= {"eta": 0.0, "pool": "example", "reason": reason}
        return 0.0, "example"
    chosen = max(admissible, key=lambda result: result.score)
    over = len(tried) - len(admissible)
    reason = f"{chosen}; best of {len(tried)} trials, of which {over} fell more than {limit}"
    trainer.decisions |= {"eta": chosen.eta, "pool": chosen.pool, "reason": reason}
    return chosen.eta, chosen.pool


def _judged(trial: ValidationTrial, eta: float, pool: Pool, *, baseline: float, budget: float) -> TrialResult:
    parts, score, average = trial_rates(trial.hits, trial.sizes)
    score = np.where(average >= baseline - budget, score, np.nan)
    if np.isnan(score).all():
        return TrialResult(eta, pool, np.nan, (np.nan, np.nan, np.nan), float(average.max() - baseline))
    epoch = int(np.nanargmax(score))
    return TrialResult(
        eta, pool, float(score[epoch]), tuple(parts[:, epoch].tolist()), float(average[epoch] - baseline)
    )
