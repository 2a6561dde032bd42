"""What each selection rule makes of the same runs, and what it loses against an oracle that looks at the test split."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import final

from umix.bench.runs.folds import by_seed, pooled_oracle, pooled_summary
from umix.bench.runs.record import RunRecord
from umix.core.selection import ORACLE, RULES
from umix.core.statistics import Spread
from umix.reports.comparison import different_fits, lowest, over_seeds
from umix.reports.tables.text_table import Entry, TextTable, marked, percent

#: What a rule must know, beyond the labels of the validation split.
KNOWS = {
    "worst": "groups",
    "worst_recall": "groups",
    "uncertainty_quintile": "first stage",
    "last": "nothing",
    ORACLE: "test (no rule)",
}
_NOTE = (
    "Test accuracy in percent, mean ± standard deviation over seeds. Regret: how far the worst group (or class, where there are no "
    f"groups) stays below that of {ORACLE}, which picks the epoch by the test split itself: a bound, not a way to select."
)


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
    runs, fits = by_seed(records), different_fits(records)
    oracles = [pooled_oracle(folds) for folds in runs.values()]
    chosen = oracles if rule == ORACLE else [pooled_summary(folds, rule) for folds in runs.values()]
    return Outcome(
        task=task,
        method=label,
        rule=rule,
        seeds=tuple(runs),
        worst=over_seeds([lowest(summary) for summary in chosen], fits),
        average=over_seeds([float("nan") if one.average is None else one.average for one in chosen], fits),
        regret=over_seeds([lowest(best) - lowest(one) for best, one in zip(oracles, chosen, strict=True)], fits),
    )


def as_json(by_rule: Sequence[Outcome]) -> str:
    """The outcomes as a list of objects; ``legitimate`` says whether the rule may select a model, null stands for no number."""
    rows = json.dumps([asdict(outcome) | {"legitimate": outcome.rule != ORACLE} for outcome in by_rule])
    return json.dumps(json.loads(rows, parse_constant=lambda _: None), indent=2) + "\n"


def regret_tables(outcomes: Sequence[Outcome], *, without_groups: Sequence[str] = ()) -> list[TextTable]:
    """For every task and method a row per rule; tasks ``without_groups`` show the worst class instead of the worst group."""
    pairs = list(dict.fromkeys((outcome.task, outcome.method) for outcome in outcomes))
    tables = []
    for task, method in pairs:
        worst = "worst class" if task in without_groups else "worst group"
        here = [outcome for outcome in outcomes if (outcome.task, outcome.method) == (task, method)]
        header = ["rule", "seeds", worst, "average", "regret", "knows"]
        notes = [_NOTE] if (task, method) == pairs[-1] else []
        tables.append(TextTable(f"{task}, {method}: selection rules", header, _rows(here), notes))
    return tables


def _rows(outcomes: Sequence[Outcome]) -> list[list[Entry]]:
    """The rules in turn; the best that is a selection is bold."""
    best_of = marked([outcome.worst for outcome in outcomes if outcome.rule != ORACLE])
    worst = [*best_of, *(Entry(percent(outcome.worst)) for outcome in outcomes if outcome.rule == ORACLE)]
    return [
        [
            Entry(outcome.rule),
            Entry(str(len(outcome.seeds))),
            entry,
            Entry(percent(outcome.average)),
            Entry(percent(outcome.regret)),
            Entry(KNOWS.get(outcome.rule, "labels")),
        ]
        for outcome, entry in zip(outcomes, worst, strict=True)  # the oracle is the last
    ]
