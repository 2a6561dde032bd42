"""Folds as one result: each is an ordinary run, and the counts of their test rows are added, so every row counts once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import Summary
from umix.core.epoch_counts import summed
from umix.core.selection import ORACLE, Choice, Threshold
from umix.errors import Setting, UserError


def fold_settings(folds: int | None) -> list[dict[str, Any]]:
    """The settings of the runs that are the folds; without folds those of one ordinary run.

    >>> fold_settings(2)
    [{'task.folds': 2, 'task.fold': 1}, {'task.folds': 2, 'task.fold': 2}]
    """
    if folds is None:
        return [{}]
    if folds < 2:
        raise UserError(Setting("folds"), f" must be at least 2, got {folds}.")
    return [{"task.folds": folds, "task.fold": fold} for fold in range(1, folds + 1)]


def by_seed(records: Iterable[RunRecord]) -> dict[int, list[RunRecord]]:
    """The runs of each seed in order of their folds; where rows were not divided into folds, one run each."""
    runs: dict[int, list[RunRecord]] = {}
    for record in records:
        runs.setdefault(record.seed, []).append(record)
    return {seed: sorted(of_seed, key=lambda record: record.fold or 0) for seed, of_seed in runs.items()}


def seed_summaries(records: Iterable[RunRecord], select: str | None = None) -> dict[int, Summary]:
    """The test rates of each seed, folds pooled."""
    return {seed: pooled_summary(runs, select) for seed, runs in by_seed(records).items()}


def pooled_summary(
    folds: Sequence[RunRecord], select: str | None = None, threshold: Threshold | None = None
) -> Summary:
    """The test rates over the rows of all folds, each under the epoch and threshold that its own validation chooses.

    Of a single run it is its summary.
    """
    first = folds[0]
    if len(folds) == 1:
        return first.summary(select, threshold)
    tuned = any((threshold or run.threshold) == "tuned" and run.tunes_threshold(select) for run in folds)
    pooled = _pooled(folds, [run.choice(select, threshold) for run in folds], first.rule(select))
    return pooled.model_copy(update={"threshold_mode": "tuned" if tuned else "off"})


def pooled_oracle(folds: Sequence[RunRecord]) -> Summary:
    """The test rates of the choices that the test rows of each fold would make."""
    if len(folds) == 1:
        return folds[0].oracle()
    return _pooled(folds, [run.oracle_choice() for run in folds], ORACLE)


def _pooled(folds: Sequence[RunRecord], choices: Sequence[Choice], rule: str) -> Summary:
    parts = [run.counts_at(choice) for run, choice in zip(folds, choices, strict=True)]
    counts = {split: summed([part[split] for part in parts]) for split in ("val", "test")}
    sizes: Mapping[str, Any] = {
        "train_sizes": [sum(of) for of in zip(*(run.train_sizes for run in folds), strict=True)]
    }
    return folds[0].model_copy(update=sizes).summary_of(counts, rule)
