"""Estimates how long runs will take, from finished runs of the same task and method."""

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import final

from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.study_grid import StudyEntry
from umix.training.stage import FINAL


@final
class Pace:
    """How long runs of each task and method took. Estimates are medians, because one slow run means little."""

    def __init__(self, records: Iterable[RunRecord] = ()) -> None:
        self._fit: dict[tuple[str, str], list[float]] = {}  # seconds per epoch of the final fit
        # Seconds of all stages before the final fit, from runs that reused none of them:
        self._before: dict[tuple[str, str], list[float]] = {}
        for record in records:
            self.learn(record)

    def learn(self, record: RunRecord) -> None:
        """Add the times of ``record``; stages that it reused are not counted."""
        task_method = (_title(record), record.method)
        before = [stage for name, stage in record.stages.items() if name != FINAL]
        if before and not any(stage.reused for stage in before):
            self._before.setdefault(task_method, []).append(sum(stage.seconds for stage in before))
        fit = record.stages.get(FINAL)
        if fit is None or not fit.reused:  # a method without a final fit has 0 seconds there
            self._fit.setdefault(task_method, []).append(0.0 if fit is None else fit.seconds / fit.epochs)

    def seconds(self, spec: RunSpec, *, trains_stage: bool) -> float | None:
        """Seconds that ``spec`` will take; None if no run of its task and method has finished.

        ``trains_stage`` says whether it also trains the stages before the final fit.
        """
        task_method = (spec.plan.source.title, spec.method)
        if task_method not in self._fit or (trains_stage and task_method not in self._before):
            return None
        before = median(self._before[task_method]) if trains_stage else 0.0
        return median(self._fit[task_method]) * spec.plan.fit.epochs + before


def total_seconds(
    entries: Sequence[StudyEntry], pace: Pace, training: Iterable[StudyEntry], *, workers: int
) -> tuple[float, int]:
    """Seconds that ``entries`` will take with ``workers``, and the number of entries without an estimate.

    ``training`` are the entries that train their shared stage.
    """
    keys = {entry.key for entry in training}
    estimates = [pace.seconds(entry.spec, trains_stage=entry.key in keys) for entry in entries]
    seconds = [value for value in estimates if value is not None]
    at_once = max(1, min(workers, len(entries)))
    longest = max(seconds, default=0.0)
    return max(sum(seconds) / at_once, longest), estimates.count(None)


def format_duration(seconds: float) -> str:
    """A duration as text, in seconds, minutes or hours.

    >>> format_duration(4.2), format_duration(75), format_duration(5400)
    ('4 s', '1 min 15 s', '1 h 30 min')
    """
    whole = max(1, math.ceil(seconds - 0.5))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _title(record: RunRecord) -> str:
    """The title of the run's task, read from the start of its folder's name."""
    return record.directory.name.partition(f"-{record.method}-seed")[0]
