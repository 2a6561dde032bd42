"""One run as a table for the terminal."""

import math

from rich.markup import escape
from rich.table import Table

from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import GroupRate, Summary
from umix.core.selection import DECIDING
from umix.core.statistics import wilson
from umix.core.words import quoted
from umix.reports.comparison import RATES, TITLES
from umix.reports.judged_words import collapse_words, judged_words
from umix.reports.regret import lowest
from umix.reports.tables.text_table import percents

_MOST_CLASSES = 20
_MOST_BIASES = 6
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


def column_words(record: RunRecord) -> str:
    """How many columns of a table were read as what; empty for other data and in runs of earlier versions."""
    types = record.column_types
    if not types:
        return ""
    names = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts"}
    left_out = f"; constant and left out: {types['constant']}" if "constant" in types else ""
    return f"Columns read as {', '.join(f'{word}: {types.get(name, 0)}' for name, word in names.items())}{left_out}."


def choice_words(record: RunRecord, summary: Summary) -> str:
    """How ``summary`` decides classes and what argmax would give, in a sentence; empty where argmax was asked for."""
    if record.decide == "argmax" or summary.select not in DECIDING:
        return ""
    if summary.biases is None:
        return "Decision: argmax; this run keeps no counts of other decisions."
    if not any(summary.biases.values()):
        return "Decision: argmax, the best on validation."
    if summary.threshold is not None:
        chosen = f"{quoted(record.classes[1])} is predicted from a probability of {summary.threshold:.2g} on"
    else:
        shown = [f"{quoted(name)} {_signed(bias)}" for name, bias in summary.biases.items() if bias][:_MOST_BIASES]
        chosen = f"added to the logits before the largest is predicted: {', '.join(shown)}"
        chosen += ", …" if len(summary.biases) > _MOST_BIASES else ""
    plain, kind = lowest(record.summary(summary.select, "argmax")), "group" if record.groups else "class"
    return f"Decision: {chosen} (chosen on validation); argmax would give {100 * plain:.1f} % in the worst {kind}."


def _signed(bias: float) -> str:
    """``bias`` with two digits behind the point, or so many that it is not shown as 0."""
    return f"{bias:+.2f}" if abs(bias) >= 0.005 else f"{bias:+.1g}"


def decision_words(record: RunRecord) -> str:
    """What a run decided for what was left open, in sentences; empty where it decided nothing."""
    decided = record.decisions
    findings = [str(value["words"]) for value in decided.values() if isinstance(value, dict) and "words" in value]
    if "chosen" in decided:  # a contest between methods says it itself
        skipped = [f"Not tried: {decided['not tried']}"] if "not tried" in decided else []
        found = [f"{words[:1].upper()}{words[1:].removesuffix('.')}." for words in findings]
        others = [decided["others"]] if "others" in decided else []
        return "\n".join([decided["chosen"], *others, *skipped, *found])
    settings = {
        name: value for name, value in decided.items() if name != "reason" and not isinstance(value, dict | list)
    }
    chosen, reason = ", ".join(f"{name}={value}" for name, value in settings.items()), decided.get("reason")
    return "; ".join([f"auto: {chosen}" + (f" ({reason})" if reason else "")] * bool(chosen) + findings)
