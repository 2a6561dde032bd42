"""Executes the unfinished runs of a study with an executor."""

from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, final

from umix.bench.executors.executor import Event, Executor, Outcome
from umix.bench.runs.execute import finished
from umix.bench.runs.failure import Failure
from umix.bench.runs.record import RunRecord
from umix.bench.study.study_plan import StudyPlan


@final
@dataclass(frozen=True, eq=False)
class StudyResults:
    """Records and failures of a study's runs, by the keys of the runs."""

    records: dict[str, RunRecord]
    failures: dict[str, Failure]


class StudyWatcher(Protocol):
    """Receives the progress of a study."""

    def finished(self, record: RunRecord) -> None:
        """This run was finished before the study was executed."""

    def on_event(self, event: Event) -> None:
        """A run has begun a stage, made steps, or has a message."""

    def on_outcome(self, outcome: Outcome) -> None:
        """A run has ended."""


@final
class SilentWatcher:
    """Shows nothing."""

    def finished(self, record: RunRecord) -> None: ...

    def on_event(self, event: Event) -> None: ...

    def on_outcome(self, outcome: Outcome) -> None: ...


def execute_study(plan: StudyPlan, executor: Executor, watcher: StudyWatcher | None = None) -> StudyResults:
    """The record or failure of every run of ``plan``; finished runs are loaded, the others are executed."""
    watcher, paths = watcher or SilentWatcher(), plan.grid.paths
    records: dict[str, RunRecord] = {}
    failures: dict[str, Failure] = {}
    for entry in plan.grid.runs:
        if (record := finished(entry.spec, paths.out, fingerprint=entry.fingerprint)) is not None:
            records[entry.key] = record
            watcher.finished(record)
    specs = [entry.spec for entry in plan.to_run if entry.key not in records]
    with closing(executor.run(specs, paths, watcher.on_event)) as outcomes:
        for outcome in outcomes:
            watcher.on_outcome(outcome)
            if outcome.record is not None:
                records[outcome.key] = outcome.record
            elif outcome.failure is not None:
                failures[outcome.key] = outcome.failure
    return StudyResults(records, failures)
