"""Findings about single input columns: splits and identifiers among them, constants, gaps, numbers that are read as texts.

The thresholds, and why:

- A column with at most ``MOST_FOLDS`` values that is named like a split, or holds only the words of splits, is taken for one.
- A column is taken for an identifier if it differs in every one of more than ``MANY_VALUES`` rows, or if it is named like one and
  has more than ``MANY_VALUES`` values. A ``shop_id`` of 20 shops is an ordinary category.
- An identifier repeats if at least ``MANY_REPEATED`` of the rows of val and test have a value of a training row. A name such as
  ``patient`` or ``user_name`` is one of those who have several rows; then ``FEW_OWNERS`` values are enough.
- A column with more than ``MOST_MISSING`` of its values missing says little but whether it is known.
- A text looks like numbers if all of its values do, or at least ``MOST_NUMBERS`` of them with more than ``FEW_NUMBERS`` different
  ones: a category such as 1, 2 and "3 or more" has few.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from umix.core.words import counted
from umix.data.checks.finding import Finding
from umix.data.rows.column_kinds import as_kind, is_missing, is_text, reads_as
from umix.data.rows.role_columns import SPLIT_CODES, SPLIT_WORDS, Rows, texts
from umix.errors import Setting

if TYPE_CHECKING:
    import polars

MOST_FOLDS = 20
MANY_VALUES = 100
MANY_REPEATED, FEW_OWNERS = 0.01, 20
MOST_MISSING = 0.9
MOST_NUMBERS, FEW_NUMBERS = 0.9, 20
_FIRST = 10_000  # rows that are looked at before all are
_SPACES = 2  # between the words of a text; names and codes have fewer
_SPLIT_NAMES = {"split", "splits", "fold", "folds", "partition", "subset", "set"}
_MARKS = {"train", "training", "val", "valid", "validation", "test", "testing"}
_ID_NAMES = {"id", "ids", "uuid", "guid"}
_OWNERS = {
    "account", "client", "customer", "device", "employee", "family", "household", "member", "participant", "patient",
    "person", "student", "subject", "user",
}  # fmt: skip
_NUMBERS = {"code", "key", "name", "no", "nr", "number"}
# A number with a sign of a currency or of percent, with separated thousands, or behind the apostrophe of a spreadsheet.
_LIKE_NUMBER = (
    r"^\s*['’]?\s*[$€£]?\s*[+-]?(?:[0-9]+(?:[.,][0-9]+)?|[0-9]{1,3}(?:[.,\s'’][0-9]{3})+(?:[.,][0-9]+)?)\s*[%$€£]?\s*$"
)
_NAMED = 3  # values in a sentence
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def split_columns(table: "polars.DataFrame") -> list[Finding]:
    """The inputs that seem to say which split a row is in."""
    return [finding for column in table.iter_columns() for finding in _split_column(column)]


def _split_column(column: "polars.Series") -> list[Finding]:
    name, words = column.name, _words(column.name)
    named = bool(_SPLIT_NAMES.intersection(words))
    marked = len(words) > 1 and words[0] in ("is", "in") and words[1] in _MARKS
    if column.dtype.is_nested() or not (named or marked or is_text(column)):
        return []  # numbers mean splits only under the name of a split
    values = column.unique(maintain_order=False).head(MOST_FOLDS + 2)
    names = sorted(set(texts(values).str.to_lowercase().drop_nulls().to_list()))
    if not 2 <= len(names) <= MOST_FOLDS:
        return []
    listed = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    if set(names) <= set(SPLIT_WORDS) or (named and set(names) <= set(SPLIT_CODES)):
        sentence = f"The column {name!r} looks like a split ({listed}) but is an input."
        divide = (
            "Divide the rows by it with ",
            Setting("split", name),
            " or leave it out with ",
            Setting("drop", name),
        )
        return [Finding("look", name, sentence, (*divide, "."))]
    if (named and all(value.isdecimal() for value in names)) or (marked and len(names) == 2):
        sentence = f"The column {name!r} looks like the number of a split ({listed}) but is an input."
        return [Finding("look", name, sentence, ("Leave it out with ", Setting("drop", name), "."))]
    return []


def identifiers(table: "polars.DataFrame") -> list[Finding]:
    """The inputs that seem to name the row, or the person or thing that it is about."""
    n = len(table)
    findings = []
    for column in table.iter_columns():
        if n <= MANY_VALUES or column.dtype.is_temporal() or column.dtype.is_nested():
            continue
        name = column.name
        named = bool(_ID_NAMES.intersection(_words(name)))
        if column.dtype.is_float() and not named:
            continue  # measurements differ in every row
        first = column.head(_FIRST)
        if not named and first.n_unique() < len(first):
            continue  # not different in every row
        spaces = texts(first).str.strip_chars().str.count_matches(r"\s+")
        if not named and 2 * int((spaces >= _SPACES).sum()) > len(first):
            continue  # texts of several words
        distinct = column.n_unique()
        if distinct == n:
            sentence = f"The column {name!r} is different in every row but is an input: it seems to only name the row."
        elif named and distinct > MANY_VALUES:
            sentence = (
                f"The column {name!r} looks like an identifier ({distinct:,} values in {n:,} rows) but is an input."
            )
        else:
            continue
        findings.append(Finding("look", name, sentence, ("Make it the id with ", Setting("id", name), ".")))
    return _one_id(findings)


def repeated_ids(table: "polars.DataFrame", rows: Mapping[str, Rows]) -> list[Finding]:
    """The columns that seem to name a person or thing with several rows, some in training and others in val or test."""
    import numpy as np

    judged = np.concatenate([rows["val"], rows["test"]])
    findings = []
    for column in table.iter_columns():
        *before, last = _words(column.name) or [""]
        owned = last in _OWNERS or (last in _ID_NAMES | _NUMBERS and bool(_OWNERS.intersection(before)))
        if not (owned or last in _ID_NAMES) or column.dtype.is_nested() or column.dtype.is_temporal():
            continue
        distinct = column.n_unique()
        known = column.gather(judged).drop_nulls()
        n = int(known.is_in(column.gather(rows["train"]).drop_nulls().unique().implode()).sum())
        if distinct <= (FEW_OWNERS if owned else MANY_VALUES) or n < max(1, MANY_REPEATED * len(judged)):
            continue
        sentence = (
            f"The column {column.name!r} looks like an identifier that repeats ({distinct:,} values in {len(column):,} rows): "
            f"{n:,} of {counted(len(judged), 'row')} in val and test have a value that training rows have too, so the rates may be "
            "too good."
        )
        fix = (
            "If rows with one value belong together, keep them in one split: divide the rows with ",
            Setting("split_by", column.name),
            " and in no other way.",
        )
        findings.append(Finding("look", column.name, sentence, fix))
    return findings


def _one_id(findings: list[Finding]) -> list[Finding]:
    """The same findings, where only the first column is proposed as the id: a table has one, the others are dropped."""
    return findings[:1] + [
        Finding(each.severity, each.subject, each.sentence, ("Leave it out with ", Setting("drop", each.subject), "."))
        for each in findings[1:]
    ]


def constant_columns(names: Sequence[str]) -> list[Finding]:
    """A finding about the inputs ``names``, which are constant or empty in training and therefore not used."""
    if not names:
        return []
    fix = ("If that is as it should be, name them with ", Setting("drop", ",".join(names)), ".")
    return [Finding("look", names[0], f"Constant in training and left out: {', '.join(names)}.", fix)]


def missing_values(table: "polars.DataFrame", *, constant: Sequence[str] = ()) -> list[Finding]:
    """The inputs that are missing in most rows; those in ``constant`` are left out, they are not used anyway."""
    findings = []
    for column in table.iter_columns():
        missing = int(is_missing(column).sum())
        if column.name not in constant and missing > MOST_MISSING * len(column):
            share = f"{missing / len(column):.1%}"
            sentence = (
                f"The column {column.name!r} is missing in {missing:,} of {counted(len(column), 'row')} ({share})."
            )
            fix = ("Unless it matters whether it is known, leave it out with ", Setting("drop", column.name), ".")
            findings.append(Finding("look", column.name, sentence, fix))
    return findings


def number_texts(table: "polars.DataFrame") -> list[Finding]:
    """The inputs that are read as texts, although their values, or nearly all of them, look like numbers."""
    return [finding for column in table.iter_columns() if is_text(column) for finding in _number_texts(column)]


def _number_texts(column: "polars.Series") -> list[Finding]:
    import polars

    name, text = column.name, column.filter(~is_missing(column)).cast(polars.String)
    for some in (text.head(_FIRST), text):
        like = some.str.contains(_LIKE_NUMBER)
        if not len(some) or like.sum() < MOST_NUMBERS * len(some):
            return []
    if reads_as(text) != "text":
        return []
    if like.all():
        example = text.filter(as_kind(text, "number").is_null())[0]
        sentence = f"The column {name!r} is read as texts, but its values look like numbers ({example!r})."
        fix = ("Write them as plain numbers, such as 1234.5 or 1234,5, unless they are names.",)
        return [Finding("look", name, sentence, fix)]
    if text.filter(like).n_unique() <= FEW_NUMBERS:
        return []
    others = text.filter(~like)
    values = others.unique().sort().to_list()
    listed = ", ".join(map(repr, values[:_NAMED])) + (", …" if len(values) > _NAMED else "")
    are = "is no number" if len(others) == 1 else "are no numbers"
    sentence = (
        f"The column {name!r} is read as texts, because {len(others):,} of {len(text):,} values {are} ({listed})."
    )
    return [Finding("look", name, sentence, ("Correct these, or leave them empty.",))]


def _words(name: str) -> list[str]:
    """The words in a column's name.

    >>> _words("customerID"), _words("is_train"), _words("Row Id")
    (['customer', 'id'], ['is', 'train'], ['row', 'id'])
    """
    return [word.lower() for word in _WORD.findall(name)]
