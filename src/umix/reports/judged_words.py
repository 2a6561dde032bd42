"""Sentences about which groups were judged, the same in every table and on the page."""

from umix.bench.runs.summary import Summary
from umix.core.words import counted

_SHOWN = 4  # names in a sentence


def judged_words(summary: Summary, min_group: int) -> str:
    """Which groups the worst one is the worst of, in a few sentences; empty where it is simply all of them."""
    found = [collapse_words(summary)] if summary.collapsed is not None else []
    units = summary.unit_rates
    classes = list(units)[-len(summary.classes) :]
    stand_ins = [name for name in summary.judged if name in classes]
    if stand_ins:
        stand = "stands in for its groups" if len(stand_ins) == 1 else "stand in for their groups"
        found.append(f"Some classes have no group of {min_group} test examples; {_names(stand_ins)} {stand}.")
    certain = [name for name in summary.judged if units[name].size < min_group and name not in stand_ins]
    if certain:
        sizes = ", ".join(f"{name} (n = {units[name].size})" for name in certain[:_SHOWN])
        more = f" and {len(certain) - _SHOWN} more" if len(certain) > _SHOWN else ""
        verb = "is small but counts" if len(certain) == 1 else "are small but count"
        which = "its 95 % interval lies" if len(certain) == 1 else "their 95 % intervals lie"
        found.append(f"{sizes}{more} {verb}: {which} wholly below that of the worst larger group.")
    if summary.n_too_small:
        n_known = sum(group.size > 0 for group in summary.groups.values())
        have = "has" if summary.n_too_small == 1 else "have"
        found.append(
            f"{summary.n_too_small} of {counted(n_known, 'group')} {have} fewer than {min_group} test examples: shown, not judged."
        )
    return " ".join(found)


def _names(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def collapse_words(summary: Summary) -> str:
    """The sentence about a net that predicts one class for everything."""
    return f"The selected net has collapsed: it predicts {summary.collapsed!r} for every validation example."
