"""Sentences about which groups were judged, the same in every table and on the page."""

from umix.bench.runs.record import Summary
from umix.core.words import counted


def judged_words(summary: Summary, min_group: int) -> str:
    """How many groups the worst one is the worst of, in a sentence or two; empty where all are judged."""
    found = [collapse_words(summary)] if summary.collapsed is not None else []
    if summary.level != "groups":
        stand_in = "each group column alone stands" if summary.level == "margins" else "the classes stand"
        found.append(f"No group has {min_group} test examples: {stand_in} in for the groups.")
    elif summary.n_too_small:
        have = "has" if summary.n_too_small == 1 else "have"
        found.append(
            f"Worst of {counted(summary.n_judged, 'judged group')}; {counted(summary.n_too_small, 'group')} {have} fewer than "
            f"{min_group} test examples and cannot be judged."
        )
    return " ".join(found)


def collapse_words(summary: Summary) -> str:
    """The sentence about a net that predicts one class for everything."""
    return f"The selected net has collapsed: it predicts {summary.collapsed!r} for every validation example."
