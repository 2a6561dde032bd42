"""Methods side by side, over seeds: spreads of the named rates, intervals, and paired differences to a baseline."""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np

from umix.bench.runs.folds import by_seed, pooled_oracle, seed_summaries
from umix.bench.runs.record import RunRecord, known_rule
from umix.bench.runs.summary import GroupRate, Summary
from umix.bench.runs.unit_titles import unit_titles
from umix.core.selection import Threshold
from umix.core.statistics import Interval, Paired, Spread, doubts, paired, wilson
from umix.core.streams import stream
from umix.core.words import counted
from umix.errors import Setting, UserError, unknown

#: The rates of a row, by name: always printed under these words.
RATES = ("average", "adjusted", "group_mean", "worst")
TITLES = {"average": "average", "adjusted": "adjusted average", "group_mean": "group mean", "worst": "worst group"}
#: The method that others are compared with unless another is named.
BASELINE = "erm"


@final
@dataclass(frozen=True)
class MethodRates:
    """One method on one task over its seeds.

    ``interval`` is that of the worst group within a run, its ends averaged over seeds. ``gains`` holds what the average and the
    worst group gain over the baseline on common seeds. ``doubts`` says why not to trust the numbers yet.
    """

    method: str  # its name, without the settings that a label may add
    seeds: tuple[int, ...]
    select: str
    rates: Mapping[str, Spread]
    groups: Mapping[str, Spread]
    interval: Interval
    gains: Mapping[str, Paired]
    doubts: tuple[str, ...]
    margins: Mapping[str, Mapping[str, Spread]] = field(default_factory=dict)  # by group column
    groups_used_for: str = ""  # nothing, choosing, training, training (validation); empty if not known
    worst_groups: tuple[str, ...] = ()  # of its seeds, as people read them
    collapsed: tuple[int, ...] = ()  # seeds whose selected net predicts one class
    threshold: Threshold = "off"  # tuned, where validation chose one in some run
    fits: int = 0  # how many of its seeds' fits differ
    learner: str = ""  # the nets, or trees, of its seeds by name; empty if not known


@final
@dataclass(frozen=True)
class Comparison:
    """Cells by task and method label, the label of the baseline if there is one, and how many test examples each group has."""

    cells: Mapping[str, Mapping[str, MethodRates]]
    baseline: str | None
    sizes: Mapping[str, Mapping[str, int]]  # by task
    notes: tuple[str, ...] = field(default=())
    judged: Mapping[str, str] = field(default_factory=dict)  # by task: how many groups are judged, in words
    margin_sizes: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)  # by task and column
    min_groups: Mapping[str, int] = field(default_factory=dict)  # by task
    folds: Mapping[str, int] = field(
        default_factory=dict
    )  # by task, where rows were divided into folds: they are pooled
    titles: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # by task: what people call groups and margins

    @property
    def methods(self) -> list[str]:
        """The labels of all methods, the baseline first."""
        labels = list(dict.fromkeys(label for cells in self.cells.values() for label in cells))
        return sorted(labels, key=lambda label: label != self.baseline)

    def ranked(self, task: str) -> dict[str, MethodRates]:
        """The methods of ``task``, the best worst group first; without groups the best average."""
        cells = self.cells.get(task, {})
        ordered = {label: cells[label] for label in self.methods if label in cells}
        return dict(sorted(ordered.items(), key=lambda item: _rank(item[1])))


def _rank(cell: MethodRates) -> tuple[float, float]:
    worst, average = cell.rates["worst"].mean, cell.rates["average"].mean
    return (0.0 if math.isnan(worst) else -worst, 0.0 if math.isnan(average) else -average)


def compare(
    runs: Mapping[str, Mapping[str, Sequence[RunRecord]]], *, select: str | None = None, baseline: str | None = None
) -> Comparison:
    """Records by task and method label as numbers, under what the rule ``select`` chooses on validation.

    Methods whose runs have no score under the rule are left out and named in the notes. Without ``baseline`` it is ERM, where
    that was run.
    """
    if select is not None:
        known_rule(select)
    labels = list(dict.fromkeys(label for methods in runs.values() for label in methods))
    if baseline is not None and baseline not in labels:
        raise unknown("baseline", baseline, labels)
    chosen = baseline or default_baseline(labels)
    notes = [] if chosen else [f"No differences: {BASELINE} was not run; name another method as the baseline."]
    cells: dict[str, dict[str, MethodRates]] = {}
    for task, methods in runs.items():
        scored = {
            label: [run for run in records if select is None or run.has(select)] for label, records in methods.items()
        }
        missing = [label for label, records in scored.items() if not records]
        notes += [f"{task}: {', '.join(missing)} left out: no score under the rule {select}."] if missing else []
        summaries = {label: seed_summaries(records, select) for label, records in scored.items()}
        notes += [f"{task}: {words}" for label, records in scored.items() for words in missing_folds(label, records)]
        rivals, against = scored.get(chosen or "", []), summaries.get(chosen or "", {})
        here = {
            label: _cell(records, summaries[label], [] if label == chosen else rivals, against)
            for label, records in scored.items()
            if records
        }
        cells |= {task: here} if here else {}
    if not cells:
        raise UserError(
            Setting("select", f"{select}"), " must have a score in some run, but no run here has one; try average."
        )
    first = {task: next(iter(methods.values()))[0] for task, methods in runs.items()}
    pooled = {
        task: pooled_oracle(next(iter(by_seed(next(iter(methods.values()))).values())))
        for task, methods in runs.items()
    }  # their sizes are all that counts
    sizes = {task: {name: rate.size for name, rate in summary.groups.items()} for task, summary in pooled.items()}
    oracles = {task: summary for task, summary in pooled.items() if summary.groups}
    judged = {task: _small_words(summary, first[task].min_group) for task, summary in oracles.items()}
    margin_sizes = {
        task: {column: {name: rate.size for name, rate in rates.items()} for column, rates in summary.margins.items()}
        for task, summary in oracles.items()
    }
    least = {task: record.min_group for task, record in first.items()}
    folds = {
        task: first[task].folds or 1
        for task, methods in runs.items()
        if any(len(of_seed) > 1 for records in methods.values() for of_seed in by_seed(records).values())
    }
    titles = {task: unit_titles(record) for task, record in first.items()}
    return Comparison(cells, chosen, sizes, tuple(notes), judged, margin_sizes, least, folds, titles)


def missing_folds(label: str, records: Sequence[RunRecord]) -> list[str]:
    """A sentence for every seed of which not all folds are finished."""
    return [
        f"{label}, seed {seed}: only {len(runs)} of {runs[0].folds} folds are finished, and only their rows are counted."
        for seed, runs in by_seed(records).items()
        if len(runs) < (runs[0].folds or 1)
    ]


def _small_words(summary: Summary, min_group: int) -> str:
    """How many groups are judged only where their interval is clear, in a sentence; empty where all are large."""
    sizes = [group.size for group in summary.groups.values() if group.size]
    small = sum(size < min_group for size in sizes)
    if not small:
        return ""
    have = "has" if small == 1 else "have"
    return (
        f"{small} of {counted(len(sizes), 'group')} {have} fewer than {min_group} test examples: judged only where the 95 % "
        "interval lies wholly below that of the worst larger group."
    )


def default_baseline(labels: Collection[str]) -> str | None:
    """ERM, or its first kind where all have settings in their labels, as ``erm net=mlp``; None where it was not run."""
    kinds = (label for label in labels if label.split(" ")[0] == BASELINE)
    return BASELINE if BASELINE in labels else next(kinds, None)


def drawn(record: RunRecord, purpose: str, *, seed: int = 0) -> np.random.Generator:
    """The generator of a number about ``record``'s task and method: whatever else is in the table, it is the same number."""
    return stream(seed, f"{Path(record.task).name}/{record.method}", purpose)


def different_pairs(records: Sequence[RunRecord], rivals: Sequence[RunRecord]) -> list[int]:
    """The seeds that both have; of those whose two fits are copies of another seed's only the first."""
    own, others = _fits(records), _fits(rivals)
    pairs = {
        seed: (tuple(fits.values()), tuple(others[seed].values()))
        for seed, fits in own.items()
        if fits.keys() == others.get(seed, {}).keys()  # the same folds
    }
    first = {pair: seed for seed, pair in reversed(pairs.items())}
    return [seed for seed, pair in pairs.items() if first[pair] == seed]


def different_fits(records: Sequence[RunRecord]) -> int:
    """How many of the seeds' fits differ: a learner without chance gives the same for every seed."""
    return len({tuple(fits.values()) for fits in _fits(records).values()})


def _fits(records: Sequence[RunRecord]) -> dict[int, dict[int | None, str]]:
    """The fit of every fold, by seed."""
    return {seed: {run.fold: _fit(run) for run in runs} for seed, runs in by_seed(records).items()}


def run_doubts(records: Sequence[RunRecord], worst_size: int | None) -> list[str]:
    """Why the numbers of these runs should not be trusted yet; a fold is a fit on other rows and counts as a seed does."""
    seeds = len(by_seed(records))
    if seeds == 1:
        return doubts(seeds=len(records), worst_size=worst_size)
    return doubts(seeds=seeds, fits=different_fits(records), worst_size=worst_size)


def lowest(summary: Summary) -> float:
    """The rate of the worst judged group, or of the worst class where there are no groups."""
    rates = [group.rate for group in summary.judged_rates.values() if group.rate is not None]
    return min(rates, default=float("nan"))


def over_seeds(values: Sequence[float], fits: int) -> Spread:
    """The spread of a number of each run, of which so many ``fits`` differ; copies of one fit have no deviation."""
    spread = Spread.of(values)
    return spread if fits > 1 else Spread(spread.mean, math.nan)


def _fit(record: RunRecord) -> str:
    """What two runs share only if they are the same fit: losses and hits of every epoch; the run's key if it has no losses."""
    if not any(loss is not None for loss in record.split_counts["val"].tail_losses):
        return record.key
    counts = [(split.tail_losses, split.hits, split.class_hits) for split in record.split_counts.values()]
    return hashlib.sha256(repr(counts).encode()).hexdigest()


def _cell(
    records: Sequence[RunRecord],
    own: Mapping[int, Summary],
    rivals: Sequence[RunRecord],
    against: Mapping[int, Summary],
) -> MethodRates:
    first, fits, titles = records[0], different_fits(records), unit_titles(records[0])
    summaries, pairs = list(own.values()), different_pairs(records, rivals)
    gains = {
        rate: paired(
            _rates(own, rate, pairs),
            _rates(against, rate, pairs),
            rng=drawn(first, f"{rate} over {rivals[0].method}"),
        )
        for rate in ("average", "worst")
        if pairs
    }

    worst = [rate for summary in summaries if (rate := summary.judged_rates.get(summary.worst_group or ""))]

    def spread(values: Iterable[float | None]) -> Spread:
        return over_seeds([_rate(value) for value in values], fits)

    return MethodRates(
        method=first.method,
        seeds=tuple(own),
        select=summaries[0].select,
        rates={rate: spread(getattr(summary, rate) for summary in summaries) for rate in RATES},
        groups={name: spread(summary.groups[name].rate for summary in summaries) for name in summaries[0].groups},
        margins={
            column: {name: spread(summary.margins[column][name].rate for summary in summaries) for name in rates}
            for column, rates in summaries[0].margins.items()
        },
        groups_used_for=_groups_used_for(first, summaries[0].select),
        worst_groups=tuple(dict.fromkeys(titles[name] for summary in summaries if (name := summary.worst_group))),
        fits=fits,
        learner=", ".join(dict.fromkeys(run.net for run in records if run.net)),
        threshold="tuned" if any(summary.threshold_mode == "tuned" for summary in summaries) else "off",
        collapsed=tuple(seed for seed, summary in own.items() if summary.collapsed is not None),
        interval=mean_interval(worst),
        gains=gains,
        doubts=tuple(run_doubts(records, min((rate.size for rate in worst), default=None))),
    )


def _groups_used_for(record: RunRecord, rule: str) -> str:
    """What group labels were used for in ``record``, whose epoch and threshold ``rule`` chooses."""
    rules = {rule, record.rule()} if record.choices else {rule}  # candidates are chosen by the default rule
    if record.group_use == "none" and record.groups and rules & {"worst", "worst_recall"}:
        return "choosing"
    return {"none": "nothing", "training": "training", "validation": "training (validation)"}.get(record.group_use, "")


def _rates(summaries: Mapping[int, Summary], rate: str, seeds: Iterable[int]) -> list[float]:
    return [_rate(getattr(summaries[seed], rate)) for seed in seeds]


def _rate(rate: float | None) -> float:
    return float("nan") if rate is None else rate


def mean_interval(rates: Sequence[GroupRate]) -> Interval:
    """Wilson's interval of a group in each run, its ends averaged over the runs; NaN where there is no run."""
    ends = [wilson(rate.hits, rate.size) for rate in rates]
    if not ends:
        return Interval(math.nan, math.nan)
    return Interval(float(np.mean([end.low for end in ends])), float(np.mean([end.high for end in ends])))
