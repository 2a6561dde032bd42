"""The first words of a report: where the chosen model is least accurate, what it gains over the baseline, and how sure that is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from umix.bench.runs.folds import seed_summaries
from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import GroupRate, Summary
from umix.bench.runs.unit_titles import unit_titles
from umix.core.statistics import FEW_EXAMPLES, FEW_SEEDS, Interval, Paired, Spread, paired
from umix.core.words import counted
from umix.reports.arrange import THRESHOLD
from umix.reports.comparison import BASELINE, different_pairs, drawn, lowest, mean_interval, missing_folds, run_doubts
from umix.reports.page.group_words import group_words
from umix.reports.sentences import collapse_words, judged_words, pooled_words
from umix.reports.tables.text_table import percents

Evidence = Literal["strong", "moderate", "weak"]
_MANY_SEEDS = 5


@final
@dataclass(frozen=True)
class NamedRate:
    """One group of one method: its mean rate over seeds and Wilson's interval, whose ends are averaged over seeds."""

    name: str
    words: str  # the name with its columns
    size: int
    rate: float
    interval: Interval

    def __str__(self) -> str:
        return (
            f"{self.words}: {_percent(self.rate)} of {counted(self.size, 'test example')} right (95 % interval "
            f"{_percent(self.interval.low)} to {_percent(self.interval.high)})"
        )


@final
@dataclass(frozen=True)
class Headline:
    """The recommended ``method``, its worst group, what it gains over the baseline, and the sentences that say so."""

    method: str
    kind: str  # group or class
    worst: NamedRate
    average: Spread
    gain: Spread | None  # of the worst rate over the baseline's
    over_threshold: Spread | None  # the same over the baseline's with a chosen threshold
    cost: Spread | None  # of the average
    evidence: Evidence
    sentences: tuple[str, ...]
    notes: tuple[str, ...]  # sentences of less weight: a second method, small groups, models that failed
    reasons: tuple[str, ...]


def headline(runs: Mapping[str, Sequence[RunRecord]], *, select: str | None, baseline: str | None) -> Headline:
    """The headline of a task whose ``runs`` all have a score under the rule ``select``.

    It recommends the method that validation prefers among those that use no group labels in training; the best one that uses
    them is named second. Test rates do not choose what is recommended.
    """
    named = [baseline, f"{baseline}{THRESHOLD}"] if baseline is not None else []
    others = {label: records for label, records in runs.items() if label not in named} or {
        label: records for label, records in runs.items() if label != baseline or len(runs) == 1
    }
    method = _recommended(others, select)
    summaries = {label: seed_summaries(records, select) for label, records in runs.items()}
    own, records = summaries[method], runs[method]
    kind = "group" if records[0].groups else "class"
    worst = _worst_of(records[0], own)
    sentences = [f"The {'chosen ' * (len(runs) > 1)}model ({method}) is least accurate for {worst}."]
    rivals = [label for label in named if label in runs and label != method]
    pairs = {label: different_pairs(records, runs[label]) for label in rivals} if method != baseline else {}
    differences = {
        label: paired(
            [lowest(own[seed]) for seed in seeds],
            [lowest(summaries[label][seed]) for seed in seeds],
            rng=drawn(records[0], f"worst over {runs[label][0].method}"),  # the table has the same interval
        )
        for label, seeds in pairs.items()
        if seeds
    }
    gains = [difference.spread for difference in differences.values()]
    cost = None
    if differences:
        against = summaries[str(baseline)]
        changes = [_number(own[seed].average) - _number(against[seed].average) for seed in pairs[str(baseline)]]
        cost = Spread.of(changes)
        sentences += _compared(records[0], method, own, {label: summaries[label] for label in differences})
    else:
        alone = (
            "no other method was run" if method == baseline else "no ordinary model (erm) was run with the same seed"
        )
        sentences.append(
            f"On average it gets {_percent(_average(own))} right. There is nothing to compare with: {alone}."
        )
    notes = _second({label: rows for label, rows in others.items() if label != method}, summaries, records[0])
    notes += _small_groups(records[0], next(iter(own.values())))
    if (folds := records[0].folds) is not None and len(records) > len(own):
        notes.append(f"{pooled_words(folds)} Epochs, predictions and examples below are those of one fold.")
    notes += [words for label, rows in runs.items() for words in missing_folds(label, rows)]
    notes += [] if kind == "group" else ["This task has no groups, so the least accurate class is shown."]
    notes += [
        f"{label}: {collapse_words(s)}" for label, rows in summaries.items() for s in rows.values() if s.collapsed
    ][:2]
    doubted = run_doubts(records, worst.size)
    evidence, reasons = _evidence(differences, doubted, worst.size, kind)
    return Headline(
        method=method,
        kind=kind,
        worst=worst,
        average=Spread.of([_number(summary.average) for summary in own.values()]),
        gain=gains[0] if gains else None,
        over_threshold=gains[1] if len(gains) > 1 else None,
        cost=cost,
        evidence=evidence,
        sentences=tuple(sentences),
        notes=tuple(notes),
        reasons=tuple(reasons),
    )


def _recommended(runs: Mapping[str, Sequence[RunRecord]], select: str | None) -> str:
    """The method with the best validation score, on average over seeds, among those without group labels if there are any."""
    free = {label: records for label, records in runs.items() if records[0].group_use != "training"}
    return max(free or runs, key=lambda label: _score(runs[label], select))


def _score(records: Sequence[RunRecord], select: str | None) -> float:
    known = [record.has(record.rule(select)) for record in records]
    scores = [record.validation_score(select) if has else -math.inf for record, has in zip(records, known, strict=True)]
    return float(np.mean(scores))


def _worst_of(record: RunRecord, summaries: Mapping[int, Summary], name: str | None = None) -> NamedRate:
    """The group that is lowest on average over seeds among those large enough to count, or the one called ``name``."""
    found: dict[str, list[GroupRate]] = {}
    for summary in summaries.values():
        for group, rate in summary.judged_rates.items():
            found.setdefault(group, []).append(rate)
    if not found or (name is not None and name not in found):
        return NamedRate(name or "–", name or "–", 0, math.nan, Interval(math.nan, math.nan))
    means = {group: float(np.mean([rate.hits / rate.size for rate in rates])) for group, rates in found.items()}
    chosen = name or min(means, key=means.__getitem__)
    rates = found[chosen]
    return NamedRate(chosen, group_words(record, chosen), rates[0].size, means[chosen], mean_interval(rates))


def _compared(
    record: RunRecord, method: str, own: Mapping[int, Summary], rivals: Mapping[str, Mapping[int, Summary]]
) -> list[str]:
    """What the method gains in the baseline's worst group, what a threshold alone would gain there, and the averages.

    ``rivals`` are the baseline and, where there is such a row, the same runs with a chosen threshold.
    """
    (baseline, against), *others = rivals.items()
    worst, before = _worst_of(record, own), _worst_of(record, against)
    same = _worst_of(record, own, before.name)
    ordinary = f"An ordinary model ({baseline})" if baseline.split(" ")[0] == BASELINE else f"The baseline ({baseline})"
    gain = _points(100 * (same.rate - before.rate))
    if worst.name == before.name:
        sentences = [f"{ordinary} gets {_percent(before.rate)} of them right; {method} gets {gain}."]
    else:
        sentences = [f"{ordinary} is least accurate for {before}; {method} gets {_percent(same.rate)} there, {gain}."]
    for label, summaries in others:
        there = _worst_of(record, summaries, before.name)
        more = _points(100 * (same.rate - there.rate))
        sentences.append(
            f"Choosing only the threshold ({label}) gives {_percent(there.rate)} there; {method} gets {more}."
        )
    averages = _percent(_average(own)), _percent(_average(against))
    return [*sentences, f"On average {method} gets {averages[0]} right and {baseline} {averages[1]}."]


def _second(
    others: Mapping[str, Sequence[RunRecord]], summaries: Mapping[str, Mapping[int, Summary]], recommended: RunRecord
) -> list[str]:
    """The best of the methods that use group labels in training, if the recommended one uses none."""
    aware = {label: records for label, records in others.items() if records[0].group_use == "training"}
    if not aware or recommended.group_use == "training":
        return []
    label = max(aware, key=lambda label: _score(aware[label], None))
    return [f"With group labels in training, {label} is least accurate for {_worst_of(recommended, summaries[label])}."]


def _small_groups(record: RunRecord, summary: Summary) -> list[str]:
    words = judged_words(_without_collapse(summary), record.min_group, unit_titles(record)) if record.groups else ""
    return [words] if words else []


def _without_collapse(summary: Summary) -> Summary:
    """``summary`` without its collapse, which the headline tells of every method."""
    return summary.model_copy(update={"collapsed": None})


def _evidence(
    differences: Mapping[str, Paired], doubted: Sequence[str], size: int, kind: str
) -> tuple[Evidence, list[str]]:
    """How strong the evidence for a change of the worst rate is, and why.

    ``differences`` are to the baseline and, where there is such a row, to the baseline with a threshold. The former may go either
    way; a method that is not better than a threshold has nothing to show for itself.
    """
    reasons = [reason.replace("worst group", f"worst {kind}") for reason in doubted]
    if not differences:
        return "weak", [*reasons, "nothing to compare with"]
    intervals = {label: difference.interval for label, difference in differences.items()}
    clear = True
    for place, (label, interval) in enumerate(intervals.items()):
        shown = f"{percents(interval, sign=True)} points"
        if math.isnan(interval.low):
            unclear = f"the gain over {label} may be chance: with a single seed there is no interval"
        elif interval.low <= 0 <= interval.high:
            unclear = f"the gain over {label} may be chance: its interval over seeds is {shown}"
        else:
            unclear = f"{label} alone does better: the gain over it is {shown}" if place and interval.high < 0 else ""
        reasons += [unclear] if unclear else []
        clear = clear and not unclear
    common = min(difference.seeds for difference in differences.values())
    if 2 <= common < _MANY_SEEDS:
        reasons.append(f"with {common} seeds no test can reach p < {2 / 2**common:.3g}")
    if size < FEW_EXAMPLES or common < FEW_SEEDS or not clear:
        return "weak", reasons
    first, *others = intervals
    reasons = [
        f"the worst {kind} changes by {percents(intervals[first], sign=True)} points over {common} seeds",
        *(f"against {label} by {percents(intervals[label], sign=True)} points" for label in others),
        f"the worst {kind} has {counted(size, 'test example')}",
        *reasons,
    ]
    return ("strong" if common >= _MANY_SEEDS else "moderate"), reasons


def _average(summaries: Mapping[int, Summary]) -> float:
    return float(np.mean([_number(summary.average) for summary in summaries.values()]))


def _points(change: float) -> str:
    if math.isnan(change):
        return "an unknown change"
    if abs(change) < 0.05:
        return "the same"
    return f"{abs(change):.1f} points {'more' if change > 0 else 'less'}"


def _percent(rate: float) -> str:
    return "an unknown share" if math.isnan(rate) else f"{100 * rate:.1f} %"


def _number(rate: float | None) -> float:
    return math.nan if rate is None else rate
