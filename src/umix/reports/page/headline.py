"""What a comparison says, in words: the worst group, what changed against the baseline, at what cost, and how sure that is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.core.selection import RULES
from umix.core.statistics import FEW_EXAMPLES, FEW_SEEDS, Interval, Spread, doubts, paired, wilson
from umix.core.words import counted
from umix.reports.comparison import drawn
from umix.reports.regret import lowest
from umix.reports.tables.text_table import percents

Evidence = Literal["strong", "moderate", "weak"]
_MANY_SEEDS = 5


@final
@dataclass(frozen=True)
class Headline:
    """The one method of a task that the words are about, and the words."""

    method: str
    kind: str  # group or class
    worst_name: str
    worst_size: int
    worst: Spread
    interval: Interval
    average: Spread
    gain: Spread | None  # of the worst rate over the baseline
    cost: Spread | None  # of the average
    evidence: Evidence
    sentences: tuple[str, ...]
    reasons: tuple[str, ...]


def headline(
    task: str, runs: Mapping[str, Sequence[RunRecord]], *, select: str | None, baseline: str | None
) -> Headline:
    """The headline of the method that validation prefers among those that are not the baseline."""
    scored = {label: _scored(records, select) for label, records in runs.items()}
    scored = {label: records for label, records in scored.items() if records}
    method = _preferred({label: records for label, records in scored.items() if label != baseline} or scored, select)
    records = scored[method]
    summaries = {record.seed: record.summary(select) for record in records}
    kind = "group" if records[0].groups else "class"
    name, size, interval = _worst_of(records, select)
    worst = Spread.of([lowest(summary) for summary in summaries.values()])
    average = Spread.of([_number(summary.average) for summary in summaries.values()])
    tested = counted(size, "test example")
    sentences = [
        f"On {task}, {method} gets {_percent(worst.mean)} of its worst {kind} right: {name} ({tested}, 95 % interval "
        f"{_percent(interval.low)} to {_percent(interval.high)}). Over all test examples it gets {_percent(average.mean)}."
    ]
    against = {record.seed: record.summary(select) for record in scored.get(baseline or "", [])}
    common = [seed for seed in summaries if seed in against] if method != baseline else []
    gain = cost = None
    reasons = doubts(seeds=len(summaries), worst_size=size)
    clear = False
    if common:
        rng = drawn(records[0], f"worst over {scored[str(baseline)][0].method}")  # the interval is the table's
        of_worst = paired([lowest(summaries[s]) for s in common], [lowest(against[s]) for s in common], rng=rng)
        gain = of_worst.spread
        cost = Spread.of([_number(summaries[s].average) - _number(against[s].average) for s in common])
        sentences.append(_against(str(baseline), gain, cost, kind))
        clear = not math.isnan(of_worst.interval.low) and of_worst.interval.low * of_worst.interval.high > 0
        if not clear:
            why = (
                "a single seed has no interval"
                if len(common) < 2
                else f"its interval over seeds is {percents(of_worst.interval, sign=True)} points"
            )
            reasons.append(f"the difference to {baseline} is not clear of zero: {why}")
        if 2 <= len(common) < _MANY_SEEDS:
            reasons.append(f"with {len(common)} seeds no test can reach p < {2 / 2 ** len(common):.3g}")
    else:
        alone = (
            "there is no other method to compare with"
            if method == baseline
            else "no baseline was run with the same seeds"
        )
        sentences.append(f"What that is worth is not known: {alone}.")
        reasons.append("nothing to compare with")
    enough = size >= FEW_EXAMPLES and len(common) >= FEW_SEEDS and clear
    evidence: Evidence = "weak" if not enough else "strong" if len(common) >= _MANY_SEEDS else "moderate"
    return Headline(
        method, kind, name, size, worst, interval, average, gain, cost, evidence, tuple(sentences), tuple(reasons)
    )


def _scored(records: Sequence[RunRecord], select: str | None) -> list[RunRecord]:
    return [record for record in records if select is None or record.has(select)]


def _preferred(runs: Mapping[str, Sequence[RunRecord]], select: str | None) -> str:
    """The method with the best validation score on average over seeds: test does not choose what is shown."""

    def score(label: str) -> float:
        scores = [RULES[record.rule(select)](record.counts["val"]) for record in runs[label]]
        return float(
            np.mean([np.nanmax(of_epochs) if not np.isnan(of_epochs).all() else -math.inf for of_epochs in scores])
        )

    return max(runs, key=score)


def _worst_of(records: Sequence[RunRecord], select: str | None) -> tuple[str, int, Interval]:
    """The group that is lowest on average over seeds, its size, and Wilson's interval, its ends averaged over seeds."""
    found: dict[str, list[tuple[int, int]]] = {}
    for record in records:
        summary = record.summary(select)
        for name, rate in (summary.groups or summary.classes).items():
            if rate.size:
                found.setdefault(name, []).append((rate.hits, rate.size))
    if not found:
        return "–", 0, Interval(math.nan, math.nan)
    name = min(found, key=lambda name: float(np.mean([hits / size for hits, size in found[name]])))
    ends = [wilson(hits, size) for hits, size in found[name]]
    interval = Interval(float(np.mean([end.low for end in ends])), float(np.mean([end.high for end in ends])))
    return name, found[name][0][1], interval


def _against(baseline: str, gain: Spread, cost: Spread, kind: str) -> str:
    better = "more" if gain.mean >= 0 else "less"
    words = f"That is {abs(100 * gain.mean):.1f} points {better} than {baseline} on the worst {kind}"
    if abs(cost.mean) < 0.0005:
        return f"{words}, at the same average."
    if cost.mean > 0:
        return f"{words}, and the average is {100 * cost.mean:.1f} points higher."
    return f"{words}, and the average is {-100 * cost.mean:.1f} points lower."


def _percent(rate: float) -> str:
    return "an unknown share" if math.isnan(rate) else f"{100 * rate:.1f} %"


def _number(rate: float | None) -> float:
    return math.nan if rate is None else rate
