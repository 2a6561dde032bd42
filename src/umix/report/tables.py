"""Tables for the terminal; rates become percent here and nowhere else."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from umix.bench.record import GroupRate, RunRecord, Summary
from umix.report.comparison import RATES, Row, Spread

_MOST_CLASSES = 20
_FIFTHS = ("least uncertain", "second", "third", "fourth", "most uncertain")
_TITLES = {"average": "average", "adjusted": "adjusted average", "group_mean": "group mean", "worst": "worst group"}


def percent(spread: Spread, *, sign: bool = False) -> str:
    """``84.3 ± 1.2``, in percent.

    >>> percent(Spread(0.843, 0.012))
    '84.3 ± 1.2'
    >>> percent(Spread(float("nan"), float("nan")))
    '–'
    """
    if math.isnan(spread.mean):
        return "–"
    mean = f"{100 * spread.mean:+.1f}" if sign else f"{100 * spread.mean:.1f}"
    return mean if math.isnan(spread.std) else f"{mean} ± {100 * spread.std:.1f}"


def comparison_table(rows: Sequence[Row], *, title: str, test_sizes: Mapping[str, int]) -> Table:
    """Methods as columns; the named rates, the gain over the first method and each group's rate as rows. The best rate is bold."""
    table = Table(
        title=title,
        title_justify="left",
        caption="Test accuracy in percent, mean ± standard deviation over seeds, at the epoch selected on validation. Adjusted "
        "average: group rates weighted by the groups' shares of the training split.",
        caption_justify="left",
    )
    table.add_column("", no_wrap=True)
    table.add_column("n test", justify="right")
    for row in rows:
        table.add_column(row.label, justify="right")
    for rate in RATES:
        table.add_row(_TITLES[rate], "", *_best_bold([row.rates[rate] for row in rows]))
    gains = ["" if row.worst_gain is None else percent(row.worst_gain, sign=True) for row in rows]
    table.add_row(f"worst group vs {rows[0].label}", "", *gains, end_section=True)
    for name, size in test_sizes.items():
        table.add_row(escape(name), str(size), *[percent(row.groups[name]) for row in rows])
    return table


def _best_bold(spreads: Sequence[Spread]) -> list[str]:
    best = max((spread.mean for spread in spreads if not math.isnan(spread.mean)), default=math.nan)
    return [f"[bold]{percent(spread)}[/bold]" if spread.mean == best else percent(spread) for spread in spreads]


def run_table(record: RunRecord, summary: Summary) -> Table:
    """One run: the named rates and each group's rate with its sizes."""
    run = f"{escape(Path(record.task).name)} · {record.method} · seed {record.seed}"
    table = Table(
        title=f"{run} · epoch {summary.epoch} selected by {summary.select} on val",
        title_justify="left",
    )
    for name, justify in (("test rate", "left"), ("percent", "right"), ("n test", "right"), ("n train", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for rate in RATES if record.groups else ("average", "worst"):
        value, unknown = getattr(summary, rate), "–" if record.groups else "unknown"
        table.add_row(_TITLES[rate], unknown if value is None else f"{100 * value:.1f}", "", "")
    table.add_section()
    if record.groups:
        for (name, group), n_train in zip(summary.groups.items(), record.train_sizes, strict=True):
            table.add_row(escape(name), *_rate_and_size(group), str(n_train))
        return table
    lowest = sorted(summary.classes.items(), key=lambda item: math.inf if item[1].rate is None else item[1].rate)
    for name, found in lowest[:_MOST_CLASSES]:
        table.add_row(escape(f"class {name}"), *_rate_and_size(found), "")
    table.caption = "The worst group is unknown: this task has no groups."
    if summary.quintiles is None:
        table.caption += f" {record.method} has no first stage that tells how uncertain test examples are."
    else:
        table.add_section()
        n = sum(found.size for found in summary.classes.values())
        for place, quintile in zip(_FIFTHS, summary.quintiles, strict=True):
            table.add_row(f"{place} fifth", f"{100 * quintile:.1f}", f"{n / 5:.0f}", "")
        table.caption += " Fifths: test examples in order of how often the first stage got them wrong."
    if len(lowest) > _MOST_CLASSES:
        table.caption += f" The {_MOST_CLASSES} lowest of {len(lowest)} classes are shown."
    return table


def _rate_and_size(group: GroupRate) -> tuple[str, str]:
    return "–" if group.rate is None else f"{100 * group.rate:.1f}", str(group.size)
