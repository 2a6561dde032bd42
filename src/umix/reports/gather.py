"""The runs that a report is about: one folder's, or a single one."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from umix.bench.runs.failure import load_failures
from umix.bench.runs.record import load_run, load_runs
from umix.errors import Setting, UserError
from umix.reports.arrange import Arranged, arrange
from umix.run_folder import FAILED, RECORD


@final
@dataclass(frozen=True, eq=False)
class Gathered:
    """Runs by task and method, and in words what was left out: broken records, and runs that failed."""

    runs: Arranged
    skipped: list[str]
    failed: list[str]

    @property
    def n_runs(self) -> int:
        return sum(len(records) for methods in self.runs.values() for records in methods.values())


def gather(directory: str | Path) -> Gathered:
    """The finished run in ``directory``, or all runs in its folders; a folder without any is refused."""
    folder = Path(directory)
    if (folder / RECORD).exists():
        return Gathered(arrange([load_run(folder)]), [], [])
    found = load_runs(folder)
    if not found.records and found.skipped:
        raise UserError(f"No run in {directory} can be read: {found.skipped[0]}")
    if not found.records:
        raise UserError(
            f"There is no finished run in {directory}; make some with umix run ", Setting("out", f"{directory}"), "."
        )
    return Gathered(arrange(found.records), found.skipped, _failures(folder))


def _failures(folder: Path) -> list[str]:
    """A sentence for every run that failed and was not repeated."""
    return [
        f"{name}: failed, and {FAILED} cannot be read."
        if failure is None
        else f"{name}: {failure.error}: {failure.message}"
        for name, failure in load_failures(folder).items()
    ]
