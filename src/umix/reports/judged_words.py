"""Sentences about which groups were judged, the same in every table and on the page."""

from umix.bench.runs.summary import Summary
from umix.core.words import counted


def judged_words(summary: Summary, min_group: int) -> str:
    """How many groups the worst one is the worst of, in a sentence or two; empty where all are judged."""
    found = [collapse_words(summary)] if summary.collapsed is not None else []
    stand_ins = [name for name in summary.judged if name not in summary.groups]
    if stand_ins:
        shown = ", ".join(stand_ins[:4]) + (f" and {len(stand_ins) - 4} more" if len(stand_ins) > 4 else "")
        stand = "stands in for its groups" if len(stand_ins) == 1 else "stand in for their groups"
        found.append(f"Some classes have no group of {min_group} test examples; {shown} {stand}.")
    if summary.n_too_small:
        judged = summary.n_judged - len(stand_ins)
        empty = sum(group.size == 0 for group in summary.groups.values())
        found.append(
            f"{counted(judged, 'group') if judged else 'No group'} judged; {counted(summary.n_too_small, 'group')} "
            f"{_have(summary.n_too_small)} fewer than {min_group} test examples and "
            f"{f'{empty} {_have(empty)} none' if empty else 'cannot be judged'}."
        )
    return " ".join(found)


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def collapse_words(summary: Summary) -> str:
    """The sentence about a net that predicts one class for everything."""
    return f"The selected net has collapsed: it predicts {summary.collapsed!r} for every validation example."
