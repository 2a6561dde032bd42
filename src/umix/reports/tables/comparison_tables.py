"""Comparisons as tables, in percent; as CSV and JSON, with rates in [0, 1]; beside the numbers of the UMIX paper."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from umix.core.statistics import DRAWS, EXACT_SEEDS, Paired, Spread
from umix.core.words import counted
from umix.reports.comparison import RATES, TITLES, Comparison, MethodRates
from umix.reports.sentences import pooled_words
from umix.reports.tables.text_table import Entry, TextTable, marked, p_value, percent, percents

_NONE = Spread(float("nan"), float("nan"))
_RATES = (
    "Test accuracy in percent, mean ± standard deviation over seeds (another initialisation and order, the same split), at the "
    "epoch that the rule selects on validation. Average: over all test examples."
)
_ADJUSTED = "Adjusted average: group rates weighted by the groups' shares of the training split."
_INTERVAL = "CI: 95 % interval of the worst group within a run (Wilson's; its ends averaged over seeds)."
_USED_FOR = "groups used for"
_USES = (
    "Groups used for: choosing epoch, threshold or candidate by the worst validation group; training, also where only validation "
    "rows have groups."
)
#: What must be said wherever published numbers are shown.
CAVEAT = (
    "Published: Han et al., NeurIPS 2022. Its averages are not all of one kind: ERM's on Waterbirds can only be the adjusted "
    "one, UMIX's is the plain one."
)
_SHOWN = ("average", "worst")
_FAR_BELOW = 10.0  # points of average accuracy from which on a method is far below the baseline
_UNKNOWN = "The worst group is unknown: this task has no groups. umix run and umix report show its classes."
_UNPUBLISHED = "The paper has no numbers for these methods on this task."
_GAINS = (
    "Differences in percentage points, seed by seed; CI: 95 % bootstrap interval over seeds; p: two-sided sign-flip "
    "permutation test"
)
_EXACT = "exact, which with n seeds never falls below 2 / 2^n"
_DRAWN = f"from {DRAWS:,} random signs"


def comparison_tables(comparison: Comparison, *, with_published: bool = False, groups: bool = False) -> list[TextTable]:
    """For every task the rates, the differences to the baseline where there is one, and with ``groups`` the rate of each group."""
    tables: list[TextTable] = []
    for task in comparison.cells:
        tables.append(rates_table(comparison, task, with_published=with_published))
        tables += [gains_table(comparison, task)] if any(cell.gains for cell in comparison.cells[task].values()) else []
        tables += [groups_table(comparison, task)] if groups and comparison.sizes.get(task) else []
    return tables


def rates_table(comparison: Comparison, task: str, *, with_published: bool = False) -> TextTable:
    """Methods as rows, the best worst group first: seeds, the named rates, what groups were used for, the published numbers."""
    cells = comparison.ranked(task)
    learners = list(dict.fromkeys(cell.learner for cell in cells.values()))
    columns = [[Entry(cell.learner) for cell in cells.values()]] if len(learners) > 1 else []
    columns += [marked([cell.rates[rate] for cell in cells.values()]) for rate in RATES]
    columns.append([Entry(percents(cell.interval)) for cell in cells.values()])
    header = [
        "method",
        "seeds",
        *(["learner"] if len(learners) > 1 else []),
        *(TITLES[rate] for rate in RATES),
        "95 % CI",
    ]
    if any(cell.groups_used_for for cell in cells.values()):
        header.append(_USED_FOR)
        columns.append([Entry(cell.groups_used_for) for cell in cells.values()])
    numbers = [published(task, cell.method) for cell in cells.values()] if with_published else []
    if any(numbers):
        header += ["paper's average", "paper's worst"]
        columns += [[Entry(percent(one.get(rate, _NONE))) for one in numbers] for rate in _SHOWN]
    rules, folds = list(dict.fromkeys(cell.select for cell in cells.values())), comparison.folds.get(task)
    by_folds = f" × {folds} folds" if folds else ""
    return TextTable(
        f"{task}: test rates, selected by {', '.join(rules)}",
        header,
        [
            [Entry(label), Entry(f"{len(cell.seeds)}{by_folds}"), *(column[k] for column in columns)]
            for k, (label, cell) in enumerate(cells.items())
        ],
        [
            *([pooled_words(folds)] if folds else []),
            *([f"{_RATES} {_ADJUSTED}", _INTERVAL] if comparison.sizes.get(task) else [_RATES, _UNKNOWN]),
            *([_USES] if _USED_FOR in header else []),
            *([f"Learner of every method: {learners[0]}."] if len(learners) == 1 and learners[0] else []),
            *threshold_notes(cells),
            *filter(None, [comparison.judged.get(task)]),
            *_worst_groups(cells),
            *([CAVEAT if any(numbers) else _UNPUBLISHED] if with_published else []),
            *_warnings(cells, comparison.baseline),
        ],
    )


def threshold_notes(cells: Mapping[str, MethodRates]) -> list[str]:
    """Which methods predict the most probable class and which by a chosen threshold; nothing where all do the former."""
    plain = [label for label, cell in cells.items() if cell.threshold == "off"]
    if len(plain) == len(cells):
        return []
    tuned = [label for label, cell in cells.items() if cell.threshold != "off"]
    chosen = f"Threshold (biases of more than two classes) chosen on validation with the epoch: {', '.join(tuned)}."
    return [f"Most probable class predicted: {', '.join(plain)}. {chosen}" if plain else chosen]


def _worst_groups(cells: Mapping[str, MethodRates]) -> list[str]:
    """Which group is the worst of each method."""
    named = [f"{label}: {'; '.join(cell.worst_groups)}" for label, cell in cells.items() if cell.worst_groups]
    return [f"Worst group of {'. '.join(named)}."] if named else []


def cautions(cells: Mapping[str, MethodRates], baseline: str | None) -> list[str]:
    """A sentence for every method whose net predicts one class only, and for every method far below the baseline on average."""
    collapsed = [
        f"{label} has collapsed in {counted(len(cell.collapsed), 'seed')}: the selected net predicts one class."
        for label, cell in cells.items()
        if cell.collapsed
    ]
    costs = {label: -100 * cell.gains["average"].spread.mean for label, cell in cells.items() if cell.gains}
    far = [
        f"{label} is {cost:.1f} points below {baseline} on average."
        for label, cost in costs.items()
        if round(cost, 6) > _FAR_BELOW
    ]
    return collapsed + far


def _warnings(cells: Mapping[str, MethodRates], baseline: str | None, about_task: str = "") -> list[str]:
    said = [f"Warning: {about_task}{caution}" for caution in cautions(cells, baseline)]
    return said + _doubts(cells, about_task)


def gains_table(comparison: Comparison, task: str) -> TextTable:
    """Methods as rows: what average and worst group gain over the baseline on common seeds."""
    cells = {label: cell for label, cell in _ordered(comparison, task).items() if cell.gains}
    columns = [column for rate in _SHOWN for column in _gain_columns([cell.gains[rate] for cell in cells.values()])]
    one_pair = task in comparison.folds and all(cell.gains["average"].seeds < 2 for cell in cells.values())
    alone = ["Folds are pooled before they are compared: an interval needs several seeds."] if one_pair else []
    fewer = [_fewer(label, cell, comparison.cells[task][str(comparison.baseline)]) for label, cell in cells.items()]
    return TextTable(
        f"{task}: differences to {comparison.baseline}",
        ["method", "average", "95 % CI", "p", "worst group", "95 % CI", "p"],
        [[Entry(label), *(column[k] for column in columns)] for k, label in enumerate(cells)],
        [
            f"{_GAINS}, {_signs([cell.gains['average'].seeds for cell in cells.values()])}.",
            *filter(None, fewer),
            *alone,
        ],
    )


def _fewer(label: str, cell: MethodRates, baseline: MethodRates) -> str:
    """Why there are fewer differences than seeds, in words; empty where there are not."""
    common, pairs = len({*cell.seeds} & {*baseline.seeds}), cell.gains["average"].seeds
    if pairs < common:
        return f"{label}: {counted(common, 'seed')}, but {counted(pairs, 'different pair')} of fits; copies count once."
    return f"{label}: {counted(common, 'seed')} in common." if common < len(cell.seeds) else ""


def _signs(seeds: Sequence[int]) -> str:
    """Whether the tests of pairs of so many seeds counted all signs or drew some."""
    if max(seeds) <= EXACT_SEEDS:
        return _EXACT
    if min(seeds) > EXACT_SEEDS:
        return _DRAWN
    return f"{_EXACT} (beyond {EXACT_SEEDS} seeds {_DRAWN})"


def _gain_columns(gains: Sequence[Paired]) -> list[list[Entry]]:
    return [
        [Entry(percent(gain.spread, sign=True)) for gain in gains],
        [Entry(percents(gain.interval, sign=True)) for gain in gains],
        [Entry(p_value(gain.p_flip)) for gain in gains],
    ]


def groups_table(comparison: Comparison, task: str) -> TextTable:
    """Groups as rows: how many test examples they have, and the rate of each method; each group column alone comes first."""
    cells, least = _ordered(comparison, task), comparison.min_groups.get(task, 1)
    titles = comparison.titles[task]
    margins = comparison.margin_sizes.get(task, {})
    rows: list[list[Entry]] = []
    for column, sizes in margins.items():
        rows.append([Entry(f"by {column}"), Entry(""), *(Entry("") for _ in cells)])
        for name, size in sizes.items():
            spreads = [cell.margins[column][name] for cell in cells.values()]
            rows.append(
                [Entry(_group_name(titles[f"{name} ({column})"], size, least)), Entry(str(size)), *marked(spreads)]
            )
    if margins:
        rows.append([Entry(f"by {' × '.join(margins)}"), Entry(""), *(Entry("") for _ in cells)])
    for name, size in comparison.sizes[task].items():
        spreads = [cell.groups[name] for cell in cells.values()]
        rows.append([Entry(_group_name(titles[name], size, least)), Entry(str(size)), *marked(spreads)])
    small = any(size < least for size in comparison.sizes[task].values())
    notes = [f"In brackets: fewer than {least} test examples, judged only if clearly the worst."] if small else []
    return TextTable(f"{task}: test rates of the groups", ["group", "n test", *cells], rows, notes)


def _group_name(name: str, size: int, least: int) -> str:
    return name if size >= least else f"({name})"


def paper_table(comparison: Comparison, *, with_published: bool = False) -> TextTable:
    """Methods as rows, and per task average and worst group: the layout of the paper's table 1."""
    methods = comparison.methods
    parts = {
        task: (cells, [published(task, cells[label].method) if label in cells else {} for label in methods])
        for task, cells in comparison.cells.items()
    }
    rules = dict.fromkeys(cell.select for cells in comparison.cells.values() for cell in cells.values())
    warnings = [
        said
        for task in parts
        for said in _warnings(_ordered(comparison, task), comparison.baseline, about_task=f"{task}: ")
    ]
    title = f"Test rates, selected by {', '.join(rules)}"
    return _side_by_side(title, methods, parts, [_RATES], warnings, with_published=with_published)


def rules_tables(comparisons: Mapping[str, Comparison], *, with_published: bool = False) -> list[TextTable]:
    """For every task methods as rows, and per rule average and worst group: what knowing the validation groups is worth.

    With the rules ``worst`` and ``average`` this is the paper's table 2, from one set of runs.
    """
    tasks = dict.fromkeys(task for comparison in comparisons.values() for task in comparison.cells)
    return [_rules_table(comparisons, task, with_published=with_published) for task in tasks]


def _rules_table(comparisons: Mapping[str, Comparison], task: str, *, with_published: bool) -> TextTable:
    by_rule = {rule: _ordered(comparison, task) for rule, comparison in comparisons.items()}
    methods = list(dict.fromkeys(label for cells in by_rule.values() for label in cells))
    parts = {
        rule: (
            cells,
            [published_for_rule(task, cells[label].method, rule) if label in cells else {} for label in methods],
        )
        for rule, cells in by_rule.items()
    }
    notes = [_RATES, "Validation groups are known to the rule worst only."]
    said = [
        f"Warning: by {rule}, {caution}"
        for rule, cells in by_rule.items()
        for caution in cautions(cells, comparisons[rule].baseline)
    ]
    warnings = dict.fromkeys([*said, *(doubt for cells in by_rule.values() for doubt in _doubts(cells))])
    title = f"{task}: test rates by selection rule"
    return _side_by_side(title, methods, parts, notes, warnings, with_published=with_published)


def _side_by_side(
    title: str,
    methods: Sequence[str],
    parts: Mapping[str, tuple[Mapping[str, MethodRates], Sequence[Mapping[str, Spread]]]],
    notes: Sequence[str],
    warnings: Iterable[str],
    *,
    with_published: bool,
) -> TextTable:
    """Methods as rows, and for each part our average and worst group, then the paper's where it has any."""
    header, lacking = ["method"], []
    columns: list[list[Entry]] = []
    for name, (cells, found) in parts.items():
        ours = [cells[label].rates if label in cells else {} for label in methods]
        header += [f"{name}: {TITLES[rate]}" for rate in _SHOWN]
        columns += [marked([rates.get(rate, _NONE) for rates in ours]) for rate in _SHOWN]
        if with_published and any(found):
            header += [f"{name}: paper's {rate}" for rate in _SHOWN]
            columns += [marked([rates.get(rate, _NONE) for rates in found]) for rate in _SHOWN]
        elif with_published:
            lacking.append(name)
    told = [CAVEAT] if with_published and len(lacking) < len(parts) else []
    told += [f"{', '.join(lacking)}: the paper has no numbers for these methods."] if lacking else []
    rows = [[Entry(label), *(column[k] for column in columns)] for k, label in enumerate(methods)]
    return TextTable(title, header, rows, [*notes, *told, *warnings])


def _ordered(comparison: Comparison, task: str) -> dict[str, MethodRates]:
    cells = comparison.cells.get(task, {})
    return {label: cells[label] for label in comparison.methods if label in cells}


def _doubts(cells: Mapping[str, MethodRates], about_task: str = "") -> list[str]:
    """A warning for every doubt, with the methods that it is about."""
    about: dict[str, list[str]] = {}
    for label, cell in cells.items():
        for doubt in cell.doubts:
            about.setdefault(doubt, []).append(label)
    return [f"Warning: {about_task}{doubt} ({', '.join(labels)})." for doubt, labels in about.items()]


def as_csv(comparisons: Sequence[Comparison], *, with_published: bool = False) -> str:
    """One line per rule, task and method, every number in a column of its own; empty where there is none."""
    import polars

    rows = [row for comparison in comparisons for row in flat(comparison, with_published=with_published)]
    return polars.DataFrame(rows, infer_schema_length=None).write_csv()


def as_json(comparisons: Sequence[Comparison], *, with_published: bool = False) -> str:
    """The rows of the CSV as objects, and the rates of the groups."""
    rows: list[dict[str, Any]] = []
    for comparison in comparisons:
        cells = [cell for methods in comparison.cells.values() for cell in methods.values()]
        for row, cell in zip(flat(comparison, with_published=with_published), cells, strict=True):
            groups = {name: {"mean": _number(s.mean), "std": _number(s.std)} for name, s in cell.groups.items()}
            rows.append(row | {"seeds": list(cell.seeds), "doubts": list(cell.doubts), "groups": groups})
    notes = list(dict.fromkeys(note for comparison in comparisons for note in comparison.notes))
    content = {"baseline": comparisons[0].baseline, "notes": notes, "rows": rows}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def flat(comparison: Comparison, *, with_published: bool = False) -> list[dict[str, Any]]:
    """One row per task and method: names and numbers."""
    return [
        _flat(task, label, cell, with_published=with_published)
        | ({"n_folds": comparison.folds[task]} if task in comparison.folds else {})
        for task, cells in comparison.cells.items()
        for label, cell in cells.items()
    ]


def _flat(task: str, label: str, cell: MethodRates, *, with_published: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"task": task, "method": label, "learner": cell.learner}
    row |= {"select": cell.select, "threshold": cell.threshold, "groups_used_for": cell.groups_used_for}
    row |= {"seeds": " ".join(map(str, cell.seeds)), "n_seeds": len(cell.seeds), "n_fits": cell.fits}
    for rate in RATES:
        row |= {f"{rate}_mean": _number(cell.rates[rate].mean), f"{rate}_std": _number(cell.rates[rate].std)}
    row |= {"worst_low": _number(cell.interval.low), "worst_high": _number(cell.interval.high)}
    row |= _gains(cell.gains)
    if with_published:
        for rate, spread in published(task, cell.method).items():
            row |= {f"published_{rate}_mean": spread.mean, f"published_{rate}_std": _number(spread.std)}
    return row | {"doubts": "; ".join(cell.doubts)}


def _gains(gains: Mapping[str, Paired]) -> dict[str, float | int | None]:
    row: dict[str, float | int | None] = {}
    for rate, gain in gains.items():
        row |= {f"{rate}_gain_seeds": gain.seeds}
        row |= {f"{rate}_gain_mean": _number(gain.spread.mean), f"{rate}_gain_std": _number(gain.spread.std)}
        row |= {f"{rate}_gain_low": _number(gain.interval.low), f"{rate}_gain_high": _number(gain.interval.high)}
        row |= {f"{rate}_gain_p_flip": _number(gain.p_flip), f"{rate}_gain_p_sign": _number(gain.p_sign)}
    return row


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)


@cache
def _published_numbers() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        (resources.files("umix.reports") / "published.json").read_text(encoding="utf-8")
    )
    return content


def published(task: str, method: str) -> dict[str, Spread]:
    """``average`` and ``worst`` of the method on the task as rates, as far as the paper has them; empty where it has none.

    The deviation is NaN where the paper prints none.

    >>> published("waterbirds", "umix")["worst"]
    Spread(mean=0.9, std=0.011)
    """
    rates = _published_numbers()["methods"].get(method, {}).get(task, {})
    return {rate: Spread(_share(mean), math.nan if std is None else _share(std)) for rate, (mean, std) in rates.items()}


def published_for_rule(task: str, method: str, rule: str) -> dict[str, Spread]:
    """The same for UMIX selected with validation groups known (rule ``worst``) or not (``average``), the paper's table 2."""
    rates = _published_numbers()["validation_groups"].get(task, {}).get(rule, {}) if method == "umix" else {}
    return {rate: Spread(_share(mean), math.nan) for rate, mean in rates.items()}


def _share(percent: float) -> float:
    return round(percent / 100, 6)
