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
        have = "has" if summary.n_too_small == 1 else "have"
        judged = summary.n_judged - len(stand_ins)
        found.append(
            f"{counted(judged, 'group')} judged; {counted(summary.n_too_small, 'group')} {have} fewer than {min_group} test "
            "examples and cannot be judged."
        )
    return " ".join(found)


def collapse_words(summary: Summary) -> str:
    """The sentence about a net that predicts one class for everything."""
    return f"The selected net has collapsed: it predicts {summary.collapsed!r} for every validation example."
