"""The result of an executed study: records, failures, table and page."""

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Literal, final

from umix.api.comparison_table import ComparisonTable
from umix.api.report import write_report
from umix.api.result import RunResult
from umix.bench.runs.failure import Failure
from umix.bench.runs.learners import learner_specs
from umix.bench.runs.record import RunRecord
from umix.bench.study.execute_study import StudyResults
from umix.bench.study.study_grid import StudyEntry
from umix.bench.study.study_plan import StudyPlan
from umix.core.selection import Decide
from umix.errors import UserError
from umix.reports.arrange import Gathered


@final
class StudyResult:
    """An executed study. Shows itself as its comparison table."""

    def __init__(self, plan: StudyPlan, results: StudyResults, *, select: str | None = None) -> None:
        self.plan = plan
        self.select = select
        self._results = results

    @property
    def records(self) -> dict[str, dict[str, list[RunRecord]]]:
        """Records by task and method, as the tables call them."""
        runs: dict[str, dict[str, list[RunRecord]]] = {}
        for entry in self.plan.grid.entries:
            if entry.key in self._results.records:
                by_method = runs.setdefault(entry.task, {})
                by_method.setdefault(entry.label, []).append(self._results.records[entry.key])
        return runs

    @property
    def all_records(self) -> list[RunRecord]:
        """The record of every finished run, once."""
        return list(self._results.records.values())

    @property
    def runs(self) -> dict[str, dict[str, list[RunResult]]]:
        """Results of single runs by task and method: for predictions and weights."""
        return {
            task: {
                label: [RunResult.in_folder(record, trust_code=record.net in self._nets) for record in records]
                for label, records in methods.items()
            }
            for task, methods in self.records.items()
        }

    @cached_property
    def _nets(self) -> set[str]:
        """The nets that the study names: those may be imported, where they are code, and not what else a record names."""
        return {one.plan.net.title for entry in self.plan.grid.entries for one in learner_specs(entry.spec)}

    @property
    def failed_entries(self) -> dict[StudyEntry, Failure]:
        """The failure of every entry of the study whose run failed."""
        failures = self._results.failures
        return {entry: failures[entry.key] for entry in self.plan.grid.entries if entry.key in failures}

    @property
    def failures(self) -> dict[str, Failure]:
        """The failures by task, method and seed in words."""
        return {
            f"{entry.task} · {entry.label} · seed {entry.spec.seed}": failure
            for entry, failure in self.failed_entries.items()
        }

    @property
    def skipped(self) -> tuple[str, ...]:
        """In words what could not run on which task."""
        return self.plan.grid.skipped

    def baseline(self) -> str:
        """The label of ERM, or of the first method if ERM is not in the study."""
        there = {
            entry.label: entry.spec.method for entry in self.plan.grid.entries if entry.key in self._results.records
        }
        return next((label for label, method in there.items() if method == "erm"), next(iter(there)))

    def table(
        self,
        *,
        select: str | None = None,
        decide: Decide | None = None,
        baseline: str | None = None,
        groups: bool = False,
    ) -> ComparisonTable:
        """Rates over seeds and differences to ``baseline``; with ``groups`` the rate of every group too.

        ``decide`` (``biases`` or ``argmax``) is by default what each run was told.
        """
        if not self._results.records:
            raise UserError("A table must have finished runs, but every run of this study failed; see failures.")
        failed: dict[str, Counter[str]] = {}
        for entry in self.failed_entries:
            failed.setdefault(entry.task, Counter())[entry.label] += 1
        return ComparisonTable.of(
            self.records,
            select=select or self.select,
            decide=decide,
            baseline=baseline or self.baseline(),
            groups=groups,
            failed=failed,
        )

    def report(
        self,
        output: str | Path = "report.html",
        *,
        select: str | None = None,
        decide: Decide | None = None,
        baseline: str | None = None,
        figures: Literal["pdf", "svg", "png"] | None = None,
    ) -> Path:
        """Write the study as one HTML page and return its path."""
        chosen = select or self.select
        return write_report(self, output, select=chosen, decide=decide, baseline=baseline, figures=figures).path

    def gathered(self) -> tuple[Gathered, Path]:
        """The runs as a page takes them, and the folder of the runs."""
        failed = [f"{name}: {failure.sentence}" for name, failure in self.failures.items()]
        return Gathered(self.records, [], failed), self.plan.grid.places.out

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        done, failed = len(self._results.records), len(self._results.failures)
        return f"<StudyResult {done} runs finished, {failed} failed, in {self.plan.grid.places.out}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
