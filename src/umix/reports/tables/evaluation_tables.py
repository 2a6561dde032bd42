"""A run on new data as tables for people: rates beside those on test, what has moved, which inputs matter."""

from umix.bench.evaluation.evaluated import ColumnDrift, ColumnImportance, Evaluated, Importance, NewRate
from umix.bench.runs.record import RunRecord
from umix.bench.runs.unit_titles import unit_titles
from umix.core.drift import LARGE
from umix.core.statistics import Interval
from umix.core.words import counted
from umix.reports.tables.text_table import Entry, TextTable, percents

_GROUPS, _DRIFTS, _COLUMNS = 6, 4, 8  # rows that are shown of each
#: What the importance of a column means.
MEANING = (
    "Percentage points of accuracy that are lost when the column's values are shuffled between rows (mean ± standard deviation of "
    "{repeats} shuffles of {rows}). About 0: the model does without it, or another column says the same; below 0: "
    "its values mislead the model there."
)


def evaluation_tables(record: RunRecord, evaluated: Evaluated) -> list[TextTable]:
    """Everything that is said of a run on new data."""
    found = evaluated.importance
    return [
        rates_table(record, evaluated),
        drift_table(evaluated),
        *([] if found is None else [importance_table(record, found, most=_COLUMNS)]),
    ]


def rates_table(record: RunRecord, evaluated: Evaluated) -> TextTable:
    """The worst group, the average and the six worst other groups, with those on test and the shares of rows."""
    titles, rates, worst = unit_titles(record), evaluated.rates, evaluated.worst_group
    classes = {name for name in rates if name in record.unit_names[-len(record.classes) :]}
    has_groups = len(classes) < len(rates)
    units = [name for name, one in rates.items() if name != worst and (name not in classes or not has_groups)]
    units.sort(key=lambda name: (not rates[name].judged, rates[name].rate))
    rows = []
    if worst is not None:
        rows.append(_row(f"worst group: {titles.get(worst, worst)}", rates[worst], best=True))
    n, test = f"{evaluated.rows:,}", evaluated.test
    cells = (_percent(evaluated.average), "", _percent(test.average), n, "", "")
    rows.append([Entry(text, best=True) for text in ("average", *cells)])
    for name in units[:_GROUPS]:
        title = titles.get(name, name)
        rows.append(_row(f"  {title}" if rates[name].judged else f"  ({title})", rates[name]))
    notes = [f"and {len(units) - _GROUPS} more groups"] if len(units) > _GROUPS else []
    if worst is not None and test.worst_group is not None and worst != test.worst_group:
        notes.append(f"Worst group on test: {titles[test.worst_group]} ({_percent(test.worst)}).")
    if worse := [
        titles.get(name, name) for name, one in rates.items() if one.below_test and (one.judged or not classes)
    ]:
        notes.append(f"Clearly worse than on test (95 % intervals do not overlap): {'; '.join(worse)}.")
    if any(not rates[name].judged for name in units[:_GROUPS]):
        notes.append(f"In brackets: fewer than {counted(record.min_group, 'row')}, shown but does not decide.")
    header = ["accuracy, %", "new", "95 % interval", "on test", "n", "% of rows", "of training"]
    return TextTable(f"{evaluated.run} on {evaluated.data}", header, rows, [*notes, *evaluated.notes])


def _row(title: str, one: NewRate, *, best: bool = False) -> list[Entry]:
    cells = [_percent(one.rate), percents(Interval(one.low, one.high)), _percent(one.test_rate), f"{one.size:,}"]
    cells += [_percent(one.share), _percent(one.train_share)]
    return [Entry(text, best=best) for text in (title, *cells)]


def drift_table(evaluated: Evaluated) -> TextTable:
    """Label, groups and predictions, and the inputs that have moved most."""
    inputs = [one for one in evaluated.drift if one.kind == "input"]
    others = [one for one in evaluated.drift if one.kind != "input"]
    shown = sorted([*others, *inputs[:_DRIFTS]], key=lambda one: -one.moved)
    rows = [_drift_row(one) for one in shown]
    large = sum(one.large for one in evaluated.drift)
    compared, how_many = counted(len(evaluated.drift), "column"), f"{large or 'none'} {'is' if large == 1 else 'are'}"
    notes = [
        "Rows moved: the share that would have to have another value for all shares to be as before. "
        f"Large: {100 * LARGE:.0f} % or more, beyond chance (chi-squared test over {compared}); {how_many}. "
        "Predictions and confidence are compared with those on test."
    ]
    if len(inputs) > _DRIFTS:
        notes.insert(0, f"and {counted(len(inputs) - _DRIFTS, 'input')} that moved less")
    return TextTable("Moved since training", ["", "rows moved, %", "", "most", "before, %", "now, %"], rows, notes)


def _drift_row(one: ColumnDrift) -> list[Entry]:
    title = one.column if one.kind == "input" else one.kind
    cells = (_percent(one.moved), "large" if one.large else "", one.where, _percent(one.before), _percent(one.after))
    return [Entry(text, best=one.large) for text in (title, *cells)]


def importance_table(record: RunRecord, found: Importance, *, most: int) -> TextTable:
    """The columns that matter most, over all rows and for the worst group, with what the numbers mean."""
    header, worst = ["input", "all rows"], found.worst_group
    columns = sorted(found.columns, key=lambda one: -max(abs(one.all), abs(one.worst or 0)))
    if worst is not None:
        header.append(f"{unit_titles(record).get(worst, worst)} (n = {found.worst_rows:,})")
    rows = [_importance_row(one, with_worst=worst is not None) for one in columns[:most]]
    notes = [MEANING.format(repeats=found.repeats, rows=counted(found.rows, "row"))]
    if len(columns) > most:
        rest = max(max(abs(one.all), abs(one.worst or 0)) for one in columns[most:])
        notes.insert(0, f"and {counted(len(columns) - most, 'input')} of at most {100 * rest:.1f} points")
    return TextTable(f"Which inputs matter on {found.data}", header, rows, notes)


def _importance_row(one: ColumnImportance, *, with_worst: bool) -> list[Entry]:
    cells = [(one.all, one.all_std), *([(one.worst, one.worst_std)] if with_worst else [])]
    return [Entry(one.column), *(Entry(f"{100 * (mean or 0):.1f} ± {100 * (std or 0):.1f}") for mean, std in cells)]


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.1f}"
