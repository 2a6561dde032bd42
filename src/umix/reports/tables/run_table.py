"""One run as a table for the terminal."""

import math

from rich.markup import escape
from rich.table import Table

from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import GroupRate, Summary
from umix.core.statistics import wilson
from umix.core.words import quoted
from umix.reports.comparison import RATES, TITLES
from umix.reports.sentences import collapse_words, judged_words
from umix.reports.tables.text_table import percents

_MOST_CLASSES = 20
_FIFTHS = ("least uncertain", "second", "third", "fourth", "most uncertain")


def run_table(record: RunRecord, summary: Summary) -> Table:
    """One run: the named rates, then the rate of every group with Wilson's interval and its sizes.

    Where there are several group columns, the groups of each column alone come first. Groups that are too small to judge are grey.
    """
    run = f"{escape(record.title)} · {record.method} · seed {record.seed}"
    table = Table(
        title=f"{run} · epoch {summary.epoch + 1} of {record.counts['val'].epochs} selected by {summary.select} on val",
        title_justify="left",
        caption_justify="left",
    )
    sizes = ("n test", "n train") if record.groups else ("n test",)
    for name in ("test rate", "percent", "95 % interval", *sizes):
        table.add_column(name, justify="left" if name == "test rate" else "right")
    for rate in RATES if record.groups else ("average", "worst"):
        value, unknown = getattr(summary, rate), "–" if record.groups else "unknown"
        title = TITLES[rate] + (_which(summary) if rate == "worst" else "")
        worst = summary.unit_rates.get(summary.worst_group or "") if rate == "worst" else None
        shown = (unknown if value is None else f"{100 * value:.1f}",) if worst is None else _rate_and_size(worst)
        table.add_row(title, *shown)
    table.add_section()
    if record.groups:
        _add_groups(table, record, summary)
        table.caption = escape(judged_words(summary, record.min_group)) or None
        return table
    _add_classes(table, record, summary)
    return table


def _add_groups(table: Table, record: RunRecord, summary: Summary) -> None:
    for column, rates in summary.margins.items():
        table.add_row(f"[italic]by {escape(column)}[/italic]")
        for name, rate in rates.items():
            _add_group(table, name, rate, str(_train_size(record, column, name)))
        table.add_section()
    if summary.margins:
        table.add_row(f"[italic]by {escape(' × '.join(summary.margins))}[/italic]")
    for (name, group), n_train in zip(summary.groups.items(), record.train_sizes, strict=True):
        if group.size or n_train:
            _add_group(table, name, group, str(n_train))


def _add_classes(table: Table, record: RunRecord, summary: Summary) -> None:
    """The lowest classes, and the fifths of uncertainty, of a run without groups."""
    lowest = sorted(summary.classes.items(), key=lambda item: math.inf if item[1].rate is None else item[1].rate)
    for name, found in lowest[:_MOST_CLASSES]:
        table.add_row(escape(f"class {quoted(name)}"), *_rate_and_size(found))
    caption = "The worst group is unknown: this task has no groups."
    if summary.collapsed is not None:
        caption = f"{collapse_words(summary)} {caption}"
    if summary.quintiles is None:
        if not len(record.counts["test"].quintile_rates):
            caption += f" {record.method} has no first stage that tells how uncertain test examples are."
    else:
        table.add_section()
        n = sum(found.size for found in summary.classes.values())
        for place, quintile in zip(_FIFTHS, summary.quintiles, strict=True):
            table.add_row(f"{place} fifth", f"{100 * quintile:.1f}", "", f"{n / 5:.0f}")
        caption += " Fifths: test examples in order of how often the first stage got them wrong, ties shared."
    if len(lowest) > _MOST_CLASSES:
        caption += f" The {_MOST_CLASSES} lowest of {len(lowest)} classes are shown."
    table.caption = escape(caption)


def _add_group(table: Table, name: str, rate: GroupRate, n_train: str) -> None:
    shown = name if rate.judged else f"({name})"
    table.add_row(escape(shown), *_rate_and_size(rate), n_train, style=None if rate.judged else "bright_black")


def _train_size(record: RunRecord, column: str, name: str) -> int:
    """The training examples of a margin."""
    sizes = zip(record.margins, record.train_margin_sizes, strict=True)
    return next(size for margin, size in sizes if (margin.column, margin.name) == (column, name))


def _which(summary: Summary) -> str:
    """The name of the worst group; nothing where there is none."""
    return "" if summary.worst_group is None else f": {escape(summary.worst_group)}"


def _rate_and_size(group: GroupRate) -> tuple[str, str, str]:
    interval = percents(wilson(group.hits, group.size))
    return "–" if group.rate is None else f"{100 * group.rate:.1f}", interval, str(group.size)
