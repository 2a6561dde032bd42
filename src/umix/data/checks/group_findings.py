"""Findings about groups and classes: those with too few rows to be judged, and group columns that need care.

A rate of fewer than ``FEW_EXAMPLES`` rows has an interval of about ±0.15 or more, which hides most differences between methods. A
class is called rare if it has fewer rows than that in val or test, or less than ``RARE`` of the training rows (with many classes:
less than a tenth of an even share). A group column with more than ``MANY_VALUES`` values makes groups that nobody reads one by one.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from umix.core.statistics import FEW_EXAMPLES
from umix.core.words import counted
from umix.data.checks.finding import Finding
from umix.data.rows.role_columns import texts
from umix.errors import Setting

if TYPE_CHECKING:
    import polars

RARE = 0.01
MANY_VALUES = 20
_NAMED = 3  # classes in a sentence
#: Rows by split and name: of groups, or of classes.
Counts = Mapping[str, Mapping[str, int]]


def too_small(counts: Counts) -> dict[str, list[str]]:
    """The splits among val and test in which each name has too few rows to be judged; only names that have such a split.

    >>> too_small({"train": {"a": 5, "b": 5}, "val": {"a": 30, "b": 29}, "test": {"a": 99, "b": 99}})
    {'b': ['val']}
    """
    judged = [split for split in ("val", "test") if split in counts]
    names = counts[judged[0]] if judged else {}
    few = {name: [split for split in judged if counts[split][name] < FEW_EXAMPLES] for name in names}
    return {name: splits for name, splits in few.items() if splits}


def small_groups(counts: Counts, titles: Mapping[str, str]) -> list[Finding]:
    """A finding if some groups have too few rows in val or test to be judged; ``titles`` says what groups are called."""
    small = too_small(counts)
    if not small:
        return []
    total = len(next(iter(counts.values())))
    size, split, name = min((counts[split][name], split, name) for name, splits in small.items() for split in splits)
    title = titles.get(name, name)
    sentence = f"{title!r} has only {counted(size, 'row')} in {split}: its rate is shown, but decides only if clearly the worst."
    if len(small) > 1:
        sentence = (
            f"{len(small)} of {counted(total, 'group')} have fewer than {FEW_EXAMPLES} rows in val or test, the smallest {title!r} "
            f"with {size} in {split}: their rates are shown, but decide only if clearly the worst."
        )
    fix = ("Name fewer columns in ", Setting("groups"), ", merge some of their values, or bring more rows.")
    return [Finding("look", "groups", sentence, fix)]


def absent_classes(counts: Counts) -> list[Finding]:
    """A finding for each of val and test that has no row of some class."""
    found = []
    for split in ("val", "test"):
        absent = [name for name, size in counts.get(split, {}).items() if not size]
        if absent:
            more = f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else ""
            named = ", ".join(map(repr, absent[:_NAMED]))
            sentence = f"{split} has no row of {named}{more}: no rate is known for it."
            fix = ("Put rows of every class into each split (", Setting("split"), "), or bring more rows.")
            found.append(Finding("look", split, sentence, fix))
    return found


def rare_classes(counts: Counts) -> list[Finding]:
    """A finding if some classes have few rows in val or test, or a small share of the training rows."""
    train = counts.get("train", {})
    total, least = sum(train.values()), min(RARE, 0.1 / max(1, len(train)))
    few = {name: splits for name, splits in too_small(counts).items() if all(counts[split][name] for split in splits)}
    shown = []
    for name, size in train.items():
        if name in few:
            shown.append(f"{name!r} with {counts[few[name][0]][name]} in {few[name][0]}")
        elif size < least * total:
            shown.append(f"{name!r} with {size:,} of {total:,} ({size / total:.2%}) in train")
    if not shown:
        return []
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    are = "is" if len(shown) == 1 else "are"
    listed = ", ".join(shown[:_NAMED])
    sentence = f"{len(shown)} of {len(train)} classes {are} rare: {listed}{more}; rates of rare classes say little."
    return [Finding("look", "classes", sentence, ("Bring more rows of them, or merge them with other classes.",))]


def group_columns(frame: "polars.DataFrame", groups: Sequence[str]) -> list[Finding]:
    """The group columns that have blanks or very many values."""
    found = []
    for name in groups:
        values = texts(frame[name])
        blank, distinct = values.null_count(), values.drop_nulls().n_unique()
        if blank:
            sentence = (
                f"The group column {name!r} is blank in {blank:,} of {counted(len(values), 'row')} ({blank / len(values):.1%}), "
                "whose group is unknown."
            )
            found.append(Finding("look", name, sentence, ("Fill the blanks if the groups can be known.",)))
        if distinct > MANY_VALUES:
            sentence = (
                f"The group column {name!r} has {distinct:,} values, which make more groups than anybody can read."
            )
            fix = ("Cut it into a few ranges or merge values, or leave it out of ", Setting("groups"), ".")
            found.append(Finding("look", name, sentence, fix))
    return found
