"""One run as a table for the terminal: beside an ordinary model, or alone with everything that is known of it."""

import math
from collections.abc import Mapping, Sequence

from rich.markup import escape
from rich.table import Table

from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import GroupRate, Summary
from umix.bench.runs.unit_titles import class_title, unit_titles
from umix.core.statistics import wilson
from umix.core.words import KINDS, quoted
from umix.reports.comparison import RATES, TITLES, lowest
from umix.reports.sentences import RULE_WORDS, collapse_words, judged_words, stage_words
from umix.reports.tables.text_table import Entry, TextTable, percents

_MOST_CLASSES = 20
_WORST = 10  # groups that are shown beside those of an ordinary model
_LONGEST = 24  # characters of a class in a remark
_FIFTHS = ("least uncertain", "second", "third", "fourth", "most uncertain")


def result_table(
    record: RunRecord, summary: Summary, ordinary: Summary | None = None, *, all_groups: str = ""
) -> TextTable:
    """The worst group, the average and the worst ten other groups on test, beside those of an ``ordinary`` model if there is one.

    The remarks below are about groups that are not shown (``all_groups`` says where they are) or too small.
    """
    columns = {} if ordinary is None else {"ordinary": ordinary}
    columns["chosen" if record.method == "best" else record.method] = summary
    titles, unit = unit_titles(record), "group" if record.groups else "class"
    worst = {name: _worst(shown) for name, shown in columns.items()}
    own = list(worst.values())[-1]
    rates = [shown.unit_rates for shown in columns.values()]
    units = [name for name in _worst_first(summary) if any(found != name for found in worst.values())]
    units.sort(key=lambda name: name not in worst.values())  # first the two worst groups, if they are two
    rows = []
    if own is not None:
        lowest_rates = [lowest(shown) for shown in columns.values()]
        rows.append(_row(f"worst {unit}: {titles[own]}", lowest_rates, rates[-1][own], best=True))
    averages = [Entry(_percent(shown.average), best=True) for shown in columns.values()]
    rows.append(
        [Entry("average", best=True), *averages, Entry(_commonest(record, summary)), Entry(f"{_n_test(summary):,}")]
    )
    for name in units[:_WORST]:
        title = f"({titles[name]})" if record.groups and not rates[-1][name].judged else titles[name]
        rows.append(_row(f"  {title}", [shown[name].rate for shown in rates], rates[-1][name]))
    notes = _notes(record, columns, worst, titles)
    if len(units) > _WORST:
        notes = [f"and {len(units) - _WORST} more: {all_groups}", *notes]
    return TextTable("", ["accuracy on test, %", *columns, "95 % interval", "n"], rows, notes)


def fold_table(records: Sequence[RunRecord], select: str) -> TextTable:
    """A line for every fold: its worst group and average on its own test rows, what was chosen, and its folder."""
    rows, unit = [], "group" if records[0].groups else "class"
    for record in records:
        summary = record.summary(select if record.has(select) else None)
        collapsed = " (predicts one class)" if summary.collapsed is not None else ""
        chosen = [Entry(KINDS[record.choices["method"]])] if record.method == "best" else []
        rates = [Entry(_percent(lowest(summary)) + collapsed), Entry(_percent(summary.average))]
        rows.append(
            [
                Entry(str(record.fold)),
                *rates,
                *chosen,
                Entry(record.directory.name if record.has_directory else "in memory"),
            ]
        )
    header = ["fold", f"worst {unit}, %", "average, %", *(["chosen"] if records[0].method == "best" else []), "folder"]
    return TextTable("", header, rows, [])


def _worst(summary: Summary) -> str | None:
    """The unit with the lowest rate: the worst group or, where there are no groups, the worst class."""
    if summary.groups:
        return summary.worst_group
    return next(iter(_worst_first(summary)), None)


def _worst_first(summary: Summary) -> list[str]:
    """The groups and margins that have test examples, the lowest rate first and those too small to judge last.

    Classes are among them where they stand in for groups, or where there are no groups.
    """
    units = summary.unit_rates
    classes = set(list(units)[-len(summary.classes) :])
    shown = [
        name for name, one in units.items() if one.size and (name not in classes or one.judged or not summary.groups)
    ]
    small = {name for name in shown if summary.groups and not units[name].judged}
    return sorted(shown, key=lambda name: (name in small, units[name].rate))


def _row(title: str, rates: Sequence[float | None], own: GroupRate, *, best: bool = False) -> list[Entry]:
    shown = [Entry(_percent(rate), best=best) for rate in rates]
    return [Entry(title, best=best), *shown, Entry(percents(wilson(own.hits, own.size))), Entry(f"{own.size:,}")]


def _percent(rate: float | None) -> str:
    return "–" if rate is None or math.isnan(rate) else f"{100 * rate:.1f}"


def _n_test(summary: Summary) -> int:
    return sum(one.size for one in summary.classes.values())


def _commonest(record: RunRecord, summary: Summary) -> str:
    """What always predicting the commonest class of test would give."""
    name, size = max(((name, one.size) for name, one in summary.classes.items()), key=lambda one: one[1])
    shown = class_title(record, name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…")
    return f"(always {shown}: {100 * size / max(1, _n_test(summary)):.1f})"


def _notes(
    record: RunRecord, columns: Mapping[str, Summary], worst: Mapping[str, str | None], titles: Mapping[str, str]
) -> list[str]:
    """Which group is the worst of an ordinary model, if another; which groups are too small; who predicts one class only."""
    *others, (_, summary) = columns.items()
    unit = "group" if record.groups else "class"
    notes = [
        f"Worst {unit} of the {name} model: {titles[found]}."
        for name, _ in others
        if (found := worst[name]) is not None and found != list(worst.values())[-1]
    ]
    notes += [collapse_words(other, name) for name, other in others if other.collapsed is not None]
    if record.groups:
        return [*notes, *filter(None, [judged_words(summary, record.min_group, titles)])]
    notes += [collapse_words(summary)] if summary.collapsed is not None else []
    return [*notes, "The worst group is unknown: this task has no groups."]


def run_table(record: RunRecord, summary: Summary) -> Table:
    """One run: the named rates, then the rate of every group with Wilson's interval and its sizes.

    Where there are several group columns, the groups of each column alone come first. Groups that are too small to judge are grey.
    """
    stage, by = stage_words(record, summary), RULE_WORDS.get(summary.select, summary.select)
    chosen = "the last" if summary.select == "last" else f"chosen on validation by {by}"
    table = Table(
        title=f"{escape(record.title)} · {record.method} · {record.words}" + f" · {stage}, {chosen}" * bool(stage),
        title_justify="left",
        caption_justify="left",
    )
    titles, sizes = unit_titles(record), ("n test", "n train") if record.groups else ("n test",)
    for name in ("test rate", "percent", "95 % interval", *sizes):
        table.add_column(name, justify="left" if name == "test rate" else "right")
    for rate in RATES if record.groups else ("average", "worst"):
        value, unknown = getattr(summary, rate), "–" if record.groups else "unknown"
        title = TITLES[rate] + (_which(summary, titles) if rate == "worst" else "")
        worst = summary.unit_rates.get(summary.worst_group or "") if rate == "worst" else None
        shown = (unknown if value is None else f"{100 * value:.1f}",) if worst is None else _rate_and_size(worst)
        table.add_row(title, *shown)
    table.add_section()
    if record.groups:
        _add_groups(table, record, summary, titles)
        table.caption = escape(judged_words(summary, record.min_group, titles)) or None
        return table
    _add_classes(table, record, summary)
    return table


def _add_groups(table: Table, record: RunRecord, summary: Summary, titles: Mapping[str, str]) -> None:
    for column, rates in summary.margins.items():
        table.add_row(f"[italic]by {escape(column)}[/italic]")
        for name, rate in rates.items():
            _add_group(table, titles[f"{name} ({column})"], rate, str(_train_size(record, column, name)))
        table.add_section()
    if summary.margins:
        table.add_row(f"[italic]by {escape(' × '.join(summary.margins))}[/italic]")
    for (name, group), n_train in zip(summary.groups.items(), record.train_sizes, strict=True):
        if group.size or n_train:
            _add_group(table, titles[name], group, str(n_train))


def _add_classes(table: Table, record: RunRecord, summary: Summary) -> None:
    """The lowest classes, and the fifths of uncertainty, of a run without groups."""
    rising = sorted(summary.classes.items(), key=lambda item: math.inf if item[1].rate is None else item[1].rate)
    for name, found in rising[:_MOST_CLASSES]:
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
    if len(rising) > _MOST_CLASSES:
        caption += f" The {_MOST_CLASSES} lowest of {len(rising)} classes are shown."
    table.caption = escape(caption)


def _add_group(table: Table, name: str, rate: GroupRate, n_train: str) -> None:
    shown = name if rate.judged else f"({name})"
    table.add_row(escape(shown), *_rate_and_size(rate), n_train, style=None if rate.judged else "bright_black")


def _train_size(record: RunRecord, column: str, name: str) -> int:
    """The training examples of a margin."""
    sizes = zip(record.margins, record.train_margin_sizes, strict=True)
    return next(size for margin, size in sizes if (margin.column, margin.name) == (column, name))


def _which(summary: Summary, titles: Mapping[str, str]) -> str:
    """What the worst group is called; nothing where there is none."""
    return "" if summary.worst_group is None else f": {escape(titles[summary.worst_group])}"


def _rate_and_size(group: GroupRate) -> tuple[str, str, str]:
    interval = percents(wilson(group.hits, group.size))
    return "–" if group.rate is None else f"{100 * group.rate:.1f}", interval, str(group.size)
