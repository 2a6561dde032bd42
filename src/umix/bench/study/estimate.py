"""How long runs will take, from what finished runs of the same task and method took."""

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import final

from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.study_grid import StudyEntry
from umix.training.trainer import FINAL


@final
class Pace:
    """What runs of each task and method took: medians, for one slow run says little."""

    def __init__(self, records: Iterable[RunRecord] = ()) -> None:
        self._fit: dict[tuple[str, str], list[float]] = {}  # seconds per epoch of the final fit
        self._before: dict[tuple[str, str], list[float]] = {}  # seconds of all stages before it, where none was reused
        for record in records:
            self.learn(record)

    def learn(self, record: RunRecord) -> None:
        """Take the stages that ``record`` trained itself into account."""
        where = (_title(record), record.method)
        before = [stage for name, stage in record.stages.items() if name != FINAL]
        if before and not any(stage.reused for stage in before):
            self._before.setdefault(where, []).append(sum(stage.seconds for stage in before))
        fit = record.stages.get(FINAL)
        if fit is None or not fit.reused:  # a method without a final fit takes what its stages take
            self._fit.setdefault(where, []).append(0.0 if fit is None else fit.seconds / fit.epochs)

    def seconds(self, spec: RunSpec, *, trains_stage: bool) -> float | None:
        """What ``spec`` will take, with its shared stages if it ``trains_stage``; None where nothing like it was seen."""
        where = (spec.plan.source.title, spec.method)
        if where not in self._fit or (trains_stage and where not in self._before):
            return None
        before = median(self._before[where]) if trains_stage else 0.0
        return median(self._fit[where]) * spec.plan.fit.epochs + before


def total(
    entries: Sequence[StudyEntry], pace: Pace, training: Iterable[StudyEntry], *, workers: int
) -> tuple[float, int]:
    """Seconds that ``entries`` will take with ``workers`` at work, and how many of the entries nothing is known of."""
    keys = {entry.key for entry in training}
    known = [pace.seconds(entry.spec, trains_stage=entry.key in keys) for entry in entries]
    seconds = [value for value in known if value is not None]
    at_once = max(1, min(workers, len(entries)))
    longest = max(seconds, default=0.0)
    return max(sum(seconds) / at_once, longest), known.count(None)


def in_words(seconds: float) -> str:
    """A duration as people say it.

    >>> in_words(4.2), in_words(75), in_words(5400)
    ('4 s', '1 min 15 s', '1 h 30 min')
    """
    whole = max(1, math.ceil(seconds - 0.5))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _title(record: RunRecord) -> str:
    """The title of the run's task, with which the name of its folder begins."""
    return record.directory.name.partition(f"-{record.method}-seed")[0]
