"""What each selection rule makes of the same runs, and what it loses against an oracle that looks at the test split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from umix.bench.record import RunRecord, Summary
from umix.core.selection import ORACLE, RULES
from umix.core.statistics import Spread
from umix.report.grid import Entry, Grid, marked, percent

#: What a rule must know, beyond the labels of the validation split.
KNOWS = {"worst": "validation groups", "uncertainty_quintile": "a first stage", ORACLE: "test: no selection"}


@final
@dataclass(frozen=True)
class Outcome:
    """Test rates of the runs of one method on one task at the epochs that a rule selects, and the regret of the worst rate."""

    task: str
    method: str
    rule: str
    seeds: tuple[int, ...]
    worst: Spread
    average: Spread
    regret: Spread


def outcomes(runs: Mapping[str, Mapping[str, Sequence[RunRecord]]]) -> list[Outcome]:
    """Every rule that has a score, for every task and method, the oracle last; over the seeds where it has one."""
    return [
        _outcome(task, label, rule, [record for record in records if rule == ORACLE or record.has(rule)])
        for task, methods in runs.items()
        for label, records in methods.items()
        for rule in (*RULES, ORACLE)
        if rule == ORACLE or any(record.has(rule) for record in records)
    ]


def _outcome(task: str, label: str, rule: str, records: Sequence[RunRecord]) -> Outcome:
    chosen = [record.oracle() if rule == ORACLE else record.summary(rule) for record in records]
    oracles = [record.oracle() for record in records]
    return Outcome(
        task=task,
        method=label,
        rule=rule,
        seeds=tuple(record.seed for record in records),
        worst=Spread.of([lowest(summary) for summary in chosen]),
        average=Spread.of([float("nan") if one.average is None else one.average for one in chosen]),
        regret=Spread.of([lowest(best) - lowest(one) for best, one in zip(oracles, chosen, strict=True)]),
    )


def lowest(summary: Summary) -> float:
    """The rate of the worst group, or of the worst class where there are no groups."""
    rates = [found.rate for found in (summary.groups or summary.classes).values() if found.rate is not None]
    return min(rates, default=float("nan"))


def regret_grids(found: Sequence[Outcome], *, without_groups: Sequence[str] = ()) -> list[Grid]:
    """For every task a row per method and rule; tasks ``without_groups`` show the worst class instead of the worst group."""
    grids = []
    for task in dict.fromkeys(outcome.task for outcome in found):
        here = [outcome for outcome in found if outcome.task == task]
        worst = "worst class" if task in without_groups else "worst group"
        rows = [row for method in dict.fromkeys(o.method for o in here) for row in _rows(here, method)]
        notes = [
            f"Test accuracy in percent, mean ± standard deviation over seeds. Regret: how far the {worst} stays below that of "
            f"{ORACLE}, which picks the epoch by the {worst} of the test split itself: a bound, not a way to select."
        ]
        header = ["method", "rule", "knows", "seeds", worst, "average", "regret"]
        grids.append(Grid(f"{task}: selection rules", header, rows, notes, names=3))
    return grids


def _rows(found: Sequence[Outcome], method: str) -> list[list[Entry]]:
    """The rules of one method; the best that is a selection is bold."""
    rules = [outcome for outcome in found if outcome.method == method and outcome.rule != ORACLE]
    oracle = next(outcome for outcome in found if outcome.method == method and outcome.rule == ORACLE)
    worst = [*marked([outcome.worst for outcome in rules]), Entry(percent(oracle.worst))]
    return [
        [
            Entry(method),
            Entry(outcome.rule),
            Entry(KNOWS.get(outcome.rule, "labels" if outcome.rule != "last" else "nothing")),
            Entry(str(len(outcome.seeds))),
            entry,
            Entry(percent(outcome.average)),
            Entry(percent(outcome.regret)),
        ]
        for outcome, entry in zip([*rules, oracle], worst, strict=True)
    ]
