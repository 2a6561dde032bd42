"""What a search climbs: a function of validation counts alone."""

from umix.core.selection import RULES, Counts, best_epoch
from umix.errors import Setting, UserError


def rule_of(val: Counts, select: str | None) -> str:
    """The rule that judges: ``select``; without one, the worst group or, where there are none, the worst class."""
    return select or ("worst" if (val.sizes > 0).any() else "worst_class")


def validation_score(val: Counts, select: str | None) -> float:
    """The score of the epoch that the rule ``select`` chooses.

    ``last`` says which epoch and not how good it is: its score is the worst group's or class's there.
    """
    rule = rule_of(val, select)
    try:
        epoch = best_epoch(val, rule)
    except ValueError:
        raise UserError(
            Setting("select", rule),
            " must have a score on validation, but this task gives it none; select worst_class or average.",
        ) from None
    return float(RULES[rule_of(val, None) if rule == "last" else rule](val)[epoch])
