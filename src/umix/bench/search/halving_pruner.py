"""Successive halving of trials. Imports Optuna."""

import math
from typing import TYPE_CHECKING, final

from optuna.pruners import BasePruner

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial


@final
class HalvingPruner(BasePruner):
    """After 1, 2, 4, 8, … reports the better half of all trials that have come so far goes on, as in races.

    Optuna's SuccessiveHalvingPruner decides in the same way, but writes into the database that a trial has passed a comparison
    before it is made, so a trial that is killed then would pass it. Here a decision is a function of what was reported.
    """

    def prune(self, study: "Study", trial: "FrozenTrial") -> bool:
        step = trial.last_step
        if step is None or step < 1 or step & (step - 1):
            return False
        value = trial.intermediate_values[step]
        if math.isnan(value):
            return True
        others = [
            other.intermediate_values[step]
            for other in study.get_trials(deepcopy=False)
            if other.number != trial.number and step in other.intermediate_values
        ]
        reached = sorted((value, *(other for other in others if not math.isnan(other))), reverse=True)
        return value < reached[max(1, len(reached) // 2) - 1]
