"""A folder of runs: every finished record in it, quickly."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from umix.bench.runs.record import RunRecord, load_run
from umix.errors import UserError
from umix.run_folder import RECORD


@final
@dataclass(frozen=True, eq=False)
class Runs:
    """The records of a folder, in the order of their folders' names, and in words which folders were left out and why."""

    records: list[RunRecord]
    skipped: list[str]


def load_runs(directory: str | Path) -> Runs:
    """The finished runs in the folders of ``directory``; folders without a record (shared stages, unfinished runs) are passed over.

    A record that is broken or was not written by umix is left out and named in ``skipped``.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise UserError(f"There is no folder {directory}.")
    if (folder / RECORD).exists():
        raise UserError(f"{directory} is a single run; name the folder that holds the runs, {folder.resolve().parent}.")
    records, skipped = [], []
    with _uncollected():
        for name in sorted(os.listdir(folder)):
            if not os.path.exists(os.path.join(folder, name, RECORD)):
                continue
            try:
                records.append(load_run(folder / name))
            except UserError as error:
                skipped.append(str(error))
    return Runs(records, skipped)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Inside the block the garbage collector rests: it would look through all records read so far again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
