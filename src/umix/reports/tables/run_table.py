"""One run as a table for the terminal."""

import math

from rich.markup import escape
from rich.table import Table

from umix.bench.runs.record import GroupRate, RunRecord, Summary
from umix.core.statistics import wilson
from umix.reports.comparison import RATES, TITLES
from umix.reports.tables.text_table import percents

_MOST_CLASSES = 20
_FIFTHS = ("least uncertain", "second", "third", "fourth", "most uncertain")


def run_table(record: RunRecord, summary: Summary) -> Table:
    """One run: the named rates, and each group's rate with Wilson's interval and its sizes."""
    run = f"{escape(record.title)} · {record.method} · seed {record.seed}"
    table = Table(
        title=f"{run} · epoch {summary.epoch} selected by {summary.select} on val",
        title_justify="left",
        caption_justify="left",
    )
    sizes = ("n test", "n train") if record.groups else ("n test",)
    for name in ("test rate", "percent", "95 % interval", *sizes):
        table.add_column(name, justify="left" if name == "test rate" else "right")
    for rate in RATES if record.groups else ("average", "worst"):
        value, unknown = getattr(summary, rate), "–" if record.groups else "unknown"
        title = TITLES[rate] + (_which(summary) if rate == "worst" else "")
        table.add_row(title, unknown if value is None else f"{100 * value:.1f}")
    table.add_section()
    if record.groups:
        for (name, group), n_train in zip(summary.groups.items(), record.train_sizes, strict=True):
            table.add_row(escape(name), *_rate_and_size(group), str(n_train))
        return table
    lowest = sorted(summary.classes.items(), key=lambda item: math.inf if item[1].rate is None else item[1].rate)
    for name, found in lowest[:_MOST_CLASSES]:
        table.add_row(escape(f"class {name}"), *_rate_and_size(found))
    table.caption = "The worst group is unknown: this task has no groups."
    if summary.quintiles is None:
        table.caption += f" {record.method} has no first stage that tells how uncertain test examples are."
    else:
        table.add_section()
        n = sum(found.size for found in summary.classes.values())
        for place, quintile in zip(_FIFTHS, summary.quintiles, strict=True):
            table.add_row(f"{place} fifth", f"{100 * quintile:.1f}", "", f"{n / 5:.0f}")
        table.caption += (
            " Fifths: test examples in order of how often the first stage got them wrong, ties shared between them."
        )
    if len(lowest) > _MOST_CLASSES:
        table.caption += f" The {_MOST_CLASSES} lowest of {len(lowest)} classes are shown."
    return table


def _which(summary: Summary) -> str:
    """The name of the worst group, the first of several; nothing where there is none."""
    rates = {name: group.rate for name, group in summary.groups.items() if group.rate is not None}
    return f": {escape(min(rates, key=rates.__getitem__))}" if rates else ""


def _rate_and_size(group: GroupRate) -> tuple[str, str, str]:
    interval = percents(wilson(group.hits, group.size))
    return "–" if group.rate is None else f"{100 * group.rate:.1f}", interval, str(group.size)
