"""One run as a table for the terminal."""

import math
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from umix.bench.record import GroupRate, RunRecord, Summary
from umix.core.statistics import wilson
from umix.report.comparison import RATES, TITLES
from umix.report.grid import percents

_MOST_CLASSES = 20


def run_table(record: RunRecord, summary: Summary) -> Table:
    """One run: the named rates, and each group's rate with Wilson's interval and its sizes."""
    run = f"{escape(Path(record.task).name)} · {record.method} · seed {record.seed}"
    table = Table(
        title=f"{run} · epoch {summary.epoch} selected by {summary.select} on val",
        title_justify="left",
        caption_justify="left",
    )
    for name in ("test rate", "percent", "95 % interval", "n test", "n train"):
        table.add_column(name, justify="left" if name == "test rate" else "right")
    for rate in RATES:
        value = getattr(summary, rate)
        table.add_row(TITLES[rate], "–" if value is None else f"{100 * value:.1f}", "", "", "")
    table.add_section()
    if record.groups:
        for (name, group), n_train in zip(summary.groups.items(), record.train_sizes, strict=True):
            table.add_row(escape(name), *_rate_and_size(group), str(n_train))
        return table
    lowest = sorted(summary.classes.items(), key=lambda item: math.inf if item[1].rate is None else item[1].rate)
    for name, found in lowest[:_MOST_CLASSES]:
        table.add_row(escape(f"class {name}"), *_rate_and_size(found), "")
    table.caption = "The worst group is unknown: this task has no groups."
    if len(lowest) > _MOST_CLASSES:
        table.caption += f" The {_MOST_CLASSES} lowest of {len(lowest)} classes are shown."
    return table


def _rate_and_size(group: GroupRate) -> tuple[str, str, str]:
    interval = percents(wilson(group.hits, group.size))
    return "–" if group.rate is None else f"{100 * group.rate:.1f}", interval, str(group.size)
