"""``eta="auto"``: how much uncertainty should count, found on validation without group labels.

Large weights on what ERM gets wrong lift a minority where the labels are right, and turn the model around where they are noise
(the paper's own limitation). So settings of rising eta are tried, each by a fit like the final one, once with every example's own
uncertainty and once with its class's mean, which noise within a class cannot disturb. An epoch of a trial is admissible if
validation accuracy is at most ``budget`` below the best of the first stage; the setting with the best admissible score wins
(``core.weight_choice``: accuracy on what the first stage was certain of, uncertain of, and of the worst class). Eta is not raised
further once a setting breaks the budget or falls behind.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from torch import Tensor

from umix.core.weight_choice import trial_rates
from umix.training.objective import Objective
from umix.training.trainer import Trainer
from umix.training.trial import Trial

Pool = Literal["example", "class"]
ETAS = (1.0, 3.0, 10.0, 30.0)
_BEHIND = 0.02  # a score this far below the best of smaller etas ends the climb
_UNCERTAIN = 0.5  # share of the window in which a validation example was wrong


@final
@dataclass(frozen=True)
class Tried:
    """A setting and the best admissible epoch of its trial; ``score`` is NaN where no epoch was."""

    eta: float
    pool: Pool
    score: float
    parts: tuple[float, ...]
    change: float  # of the validation average against the first stage

    @property
    def admissible(self) -> bool:
        return not np.isnan(self.score)

    def __str__(self) -> str:
        certain, uncertain, worst = ("none" if np.isnan(part) else f"{part:.1%}" for part in self.parts)
        return (
            f"validation accuracy {certain} on what ERM was certain of, {uncertain} on what it was not, {worst} in the worst "
            f"class, {100 * self.change:+.1f} points on average"
        )


#: The objective of a fit with these weights: what a trial minimises, given eta and pool.
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
    """The eta and pool that do best on validation, written down with the reason as a decision of the run.

    ``uncertainty`` [n_val] is the first stage's on validation examples, ``baseline`` its best accuracy there; ``content`` names
    everything else that decides what a candidate is, so that runs may share trials.
    """
    tried: list[Tried] = []
    for pool in pools:
        best = -np.inf
        for eta in etas:
            trial = Trial(
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


def _judged(trial: Trial, eta: float, pool: Pool, *, baseline: float, budget: float) -> Tried:
    parts, score, average = trial_rates(trial.hits, trial.sizes)
    score = np.where(average >= baseline - budget, score, np.nan)
    if np.isnan(score).all():
        return Tried(eta, pool, np.nan, (np.nan, np.nan, np.nan), float(average.max() - baseline))
    epoch = int(np.nanargmax(score))
    return Tried(eta, pool, float(score[epoch]), tuple(parts[:, epoch].tolist()), float(average[epoch] - baseline))
