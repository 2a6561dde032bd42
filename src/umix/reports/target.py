"""A target for every group, such as 70 %: whether it is met, and by how much it is missed where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from umix.bench.runs.folds import seed_summaries
from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import GroupRate, Summary
from umix.bench.runs.unit_titles import class_title, unit_titles
from umix.core.statistics import wilson
from umix.errors import Setting, UserError
from umix.reports.comparison import different_fits, lowest, over_seeds
from umix.reports.tables.text_table import Entry, TextTable, marked, percents

_SHOWN = 4  # groups in a sentence


@final
@dataclass(frozen=True)
class TargetCheck:
    """What the judged groups of a run reach of a ``target``; ``rates`` are those of test by group, the lowest first.

    As text it is the sentence that ``umix run --target`` prints.
    """

    target: float
    rates: Mapping[str, GroupRate]
    titles: Mapping[str, str]
    kind: str  # group or class: what is judged

    @property
    def met(self) -> bool:
        """Whether every judged group reaches the target; not where none is judged."""
        return bool(self.rates) and not self.missed

    @property
    def missed(self) -> dict[str, float]:
        """By how much each judged group below the target misses it, the furthest first."""
        short = {name: self.target - (one.rate or 0.0) for name, one in self.rates.items()}
        return {name: by for name, by in short.items() if by > 0}

    def as_json(self) -> dict[str, Any]:
        """What ``umix run --target --json`` prints."""
        return {"target": self.target, "met": self.met, "missed": self.missed}

    def __str__(self) -> str:
        said = f"Target {100 * self.target:g} % in every {self.kind}"
        if not self.rates:
            return f"{said}: not known, no {self.kind} has enough test rows."
        if self.missed:
            parts = [f"{self.titles[name]} by {100 * by:.1f} points" for name, by in self.missed.items()]
            more = f" and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
            return f"{said}: missed in {len(parts)} of {len(self.rates)}: {', '.join(parts[:_SHOWN])}{more}."
        name, lowest_rate = next(iter(self.rates.items()))
        interval = wilson(lowest_rate.hits, lowest_rate.size)
        doubt = "" if interval.low >= self.target else f", whose 95 % interval {percents(interval)} reaches below it"
        return f"{said}: met; the lowest is {self.titles[name]}, {100 * (lowest_rate.rate or 0.0):.1f} %{doubt}."


def known_target(target: float) -> float:
    """``target``, if it is a rate."""
    if not 0 < target <= 1:
        raise UserError(Setting("target"), f" must be a rate in (0, 1], got {target:g}; 0.7 is 70 %.")
    return target


def check_target(record: RunRecord, summary: Summary, target: float) -> TargetCheck:
    """What the judged groups of ``summary`` reach of ``target``; without groups, the classes."""
    rates = {name: one for name, one in summary.judged_rates.items() if one.rate is not None}
    rising = sorted(rates.items(), key=lambda item: item[1].rate or 0.0)
    if record.groups:
        return TargetCheck(known_target(target), dict(rising), unit_titles(record), "group")
    classes = {name: class_title(record, name) for name in record.classes}
    return TargetCheck(known_target(target), dict(rising), classes, "class")


def target_table(
    task: str, methods: Mapping[str, Sequence[RunRecord]], target: float, *, select: str | None = None
) -> TextTable:
    """Methods as rows: their worst judged group, in how many seeds all reach the ``target``, and by how much it is missed."""
    worst, others = [], []
    for records in methods.values():
        summaries = list(seed_summaries(records, select).values())
        checks = [check_target(records[0], summary, target) for summary in summaries]
        worst.append(over_seeds([lowest(summary) for summary in summaries], different_fits(records)))
        missed = [max(check.missed.values()) for check in checks if check.missed]
        below = dict.fromkeys(check.titles[name] for check in checks for name in check.missed)
        others.append(
            [
                f"{sum(check.met for check in checks)} of {len(checks)}",
                f"{100 * sum(missed) / len(missed):.1f}" if missed else "–",
                "; ".join(below) or "–",
            ]
        )
    rows = [
        [Entry(label), entry, *map(Entry, texts)]
        for label, entry, texts in zip(methods, marked(worst), others, strict=True)
    ]
    notes = [
        "Test accuracy in percent. Missed by: points, of the worst judged group, mean over the seeds that miss it."
    ]
    header = ["method", "worst group", "met, seeds", "missed by", "below it"]
    return TextTable(f"{task}: target {100 * target:g} % in every group", header, rows, notes)
