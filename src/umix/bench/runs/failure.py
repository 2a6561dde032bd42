"""A run that raised, kept in its folder until it is executed again and succeeds."""

import contextlib
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Self, final

from umix.bench.runs.lock import Busy, run_lock
from umix.errors import UserError
from umix.run_folder import FAILED, RECORD
from umix.store import Stored, read_json, write_json


@final
class Failure(Stored):
    """What was raised, and when."""

    kind: Literal["umix failed run"] = "umix failed run"
    task: str
    method: str
    seed: int
    key: str
    error: str  # the type's name
    message: str
    trace: str
    when: str  # UTC

    @classmethod
    def of(cls, error: BaseException, *, task: str, method: str, seed: int, key: str) -> Self:
        """The failure of this run by ``error``, now."""
        return cls(
            task=task,
            method=method,
            seed=seed,
            key=key,
            error=type(error).__name__,
            message=str(error),
            trace="".join(traceback.format_exception(error)),
            when=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    @property
    def sentence(self) -> str:
        """What went wrong, in one line."""
        first = self.message.strip().splitlines()[0] if self.message.strip() else "no message"
        return first if self.error in ("UserError", "MachineError") else f"{self.error}: {first}"

    def save(self, out: Path, name: str) -> None:
        """Keep this in the run's folder, unless another process has finished the run or is executing it again by now.

        A folder that cannot be written is no reason to stop the other runs: the failure is still in the outcome.
        """
        with contextlib.suppress(Busy, UserError, OSError), run_lock(out, name, wait=False):
            if not (out / name / RECORD).exists():
                write_json(out / name / FAILED, self)


def load_failure(directory: Path) -> Failure | None:
    """The failure kept in a run's folder; None where the run is finished or did not fail."""
    if (directory / RECORD).exists() or not (directory / FAILED).exists():
        return None
    return read_json(directory / FAILED, Failure, kind="failed run")


def load_failures(directory: Path) -> dict[str, Failure | None]:
    """The failures of all unfinished runs below ``directory``, by the run's folder; None where the file cannot be read."""
    failures: dict[str, Failure | None] = {}
    for path in sorted(directory.glob(f"*/{FAILED}")):
        if (path.parent / RECORD).exists():
            continue
        try:
            failures[path.parent.name] = load_failure(path.parent)
        except UserError:
            failures[path.parent.name] = None
    return failures
