"""The score that a search maximises: a function of validation counts alone."""

from umix.core.epoch_counts import Counts
from umix.core.selection import Decide, best_choice, choice_score
from umix.errors import Setting, UserError


def selection_rule(val: Counts, select: str | None) -> str:
    """The selection rule: ``select`` if given, else the worst group, or the worst class if there are no groups."""
    return select or ("worst" if (val.sizes > 0).any() and val.judging.choose else "worst_class")


def validation_score(val: Counts, select: str | None, decide: Decide = "argmax") -> float:
    """The score of the epoch that the rule ``select`` chooses, with ``decide`` ``biases`` of epoch and decision together.

    The rule ``last`` chooses an epoch but has no score. Its score is the rate of the worst group or
    class in that epoch.
    """
    rule = selection_rule(val, select)
    try:
        choice = best_choice(val, rule, decide)
    except ValueError:
        raise UserError(
            Setting("select", rule),
            " must have a score on validation, but this task gives it none; select worst_class or average.",
        ) from None
    return choice_score(val, selection_rule(val, None) if rule == "last" else rule, choice)
