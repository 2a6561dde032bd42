"""Numbers and durations in sentences, names of groups and margins, made of several values, and names of kinds of candidates."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

#: How the warning of a fit begins that makes all others unimportant.
NOT_FINITE = "The parameters are not finite"
_SHORT_ANSWERS = {"yes", "no", "true", "false"}

#: What the candidates of each method are called together; the name of a candidate begins with its method.
KINDS = {
    "erm": "ordinary",
    "reweight": "class weights",
    "umix": "UMIX",
    "group_mixup": "group weights",
    "group_dro": "GroupDRO",
    "dfr": "DFR",
    "cb_last_layer": "last layer from validation",
}


def run_words(seed: int, fold: int | None = None) -> str:
    """Which run of a method on a task is meant.

    >>> run_words(0), run_words(0, 2)
    ('seed 0', 'seed 0, fold 2')
    """
    return f"seed {seed}" if fold is None else f"seed {seed}, fold {fold}"


def counted(number: int, thing: str) -> str:
    """The number with the noun ``thing`` in the singular or plural.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def duration(seconds: float) -> str:
    """A duration in words.

    >>> duration(2.34), duration(59.6), duration(125), duration(9000)
    ('2.3 s', '60 s', '2 min 5 s', '2 h 30 min')
    """
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 / 60:.0f} min"


def group_name(parts: Sequence[str]) -> str:
    """The name of the group with these values; other values make another name.

    A value that could be read as several, or holds what cannot be shown, is quoted.

    >>> group_name(["no", "f"]), group_name(["a, b", "c"]), group_name(["a", "b, c"])
    ('no, f', '"a, b", c', 'a, "b, c"')
    """
    return ", ".join(map(quoted, parts))


def bare_columns(columns: Sequence[str], values: Sequence[Sequence[str]]) -> set[str]:
    """The columns with a value that says nothing alone: it is no word, is yes or no, or is a value of another column too.

    >>> sorted(bare_columns(["passed", "sex", "city"], [["0", "1"], ["F", "M"], ["Rome", "Oslo"]]))
    ['passed', 'sex']
    """
    return {column for place, column in enumerate(columns[: len(values)]) if _says_nothing(place, values)}


def _says_nothing(place: int, values: Sequence[Sequence[str]]) -> bool:
    others = {value for at, column in enumerate(values) if at != place for value in column}
    return any(
        len(value) < 2 or value.lower() in _SHORT_ANSWERS or not any(map(str.isalpha, value)) or value in others
        for value in values[place]
    )


def group_title(parts: Mapping[str, str], bare: Collection[str]) -> str:
    """What the group with these values by column is called where people read it; values of ``bare`` columns have the column's name.

    >>> group_title({"income": "high", "sex": "F"}, {"sex"})
    'high, sex=F'
    """
    return ", ".join((f"{quoted(column)}=" if column in bare else "") + quoted(part) for column, part in parts.items())


def quoted(value: str) -> str:
    """``value``, between quotes if it has the comma of a list, a quote, or what a terminal cannot show."""
    plain = ", " not in value and '"' not in value and value.isprintable()
    return value if plain else json.dumps(value, ensure_ascii=not value.isprintable())


@final
@dataclass(frozen=True)
class Margin:
    """The examples that share ``parts``, a label and a value of one attribute ``column``."""

    column: str
    parts: tuple[str, str]

    @property
    def name(self) -> str:
        return group_name(self.parts)


def margins_of(columns: Sequence[str], values: Sequence[Sequence[str]]) -> tuple[Margin, ...]:
    """The margins of a label and two or more attribute ``columns``, which have these ``values``; none of one attribute.

    >>> margins_of(["y", "sex", "race"], [["no", "yes"], ["f", "m"], ["a"]])[1]
    Margin(column='sex', parts=('no', 'm'))
    """
    if len(columns) <= 2:
        return ()
    by_column = list(zip(columns, values, strict=True))
    return tuple(
        Margin(column, (label, value)) for column, own in by_column[1:] for label in values[0] for value in own
    )


def threshold_text(p: float) -> str:
    """A probability with two digits, and with as many more as tell it from 1.

    >>> threshold_text(0.5), threshold_text(0.0312), threshold_text(0.99872)
    ('0.5', '0.031', '0.9987')
    """
    return f"{p:.2g}" if p < 0.985 else f"{p:.{1 - math.floor(math.log10(1 - p))}f}"
