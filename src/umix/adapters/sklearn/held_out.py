"""Evaluation of a fit on held-out rows: the epoch that a rule selects, and the rates at that epoch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from umix.bench.runs.record import known_rule
from umix.core.epoch_counts import Counts
from umix.core.judging import worst_unit
from umix.core.rates import per_group
from umix.core.selection import RULES, Choice, Decide, best_choice
from umix.data.groups import Groups
from umix.errors import UserError


def chosen_rule(select: str | None, *, groups: bool) -> str:
    """The rule ``select``; by default the worst group, or the worst class where there are no groups."""
    if select is None:
        return "worst" if groups else "worst_class"
    if known_rule(select) == "worst" and not groups:
        raise UserError("select='worst' must know the groups, but none are given; select worst_class or average.")
    return select


def selected(val: Counts, rule: str, decide: Decide, *, method: str) -> Choice:
    """The epoch and decision that ``rule`` selects; raises where no epoch of ``method`` has a score under that rule."""
    if np.isnan(RULES[rule](val)).all():
        raise UserError(
            f"select={rule!r} must have a score on held-out rows, but method={method!r} gives none; select worst_class or average."
        )
    return best_choice(val, rule, decide)


def rates_at(choice: Choice, counts: Counts, classes: NDArray[Any], groups: Groups | None) -> dict[str, Any]:
    """The average, the worst group (None without groups) and the rate of every class and group; NaN for one without rows."""
    epoch, val = choice.epoch, counts.decided(choice.decision)
    by_class, by_group = per_group(val.class_hits[epoch], val.class_sizes), per_group(val.hits[epoch], val.sizes)
    worst = worst_unit(val.units(epoch))
    return {
        "average": float(val.all_hits[epoch] / val.n),
        "worst": None if worst.index is None else worst.rate,
        "classes": dict(zip(classes.tolist(), by_class.tolist(), strict=True)),
        "groups": dict(zip(groups.names if groups else (), by_group.tolist(), strict=True)),
    }
