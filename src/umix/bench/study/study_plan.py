"""The plan of a study: the state of every run on disk, and how long the unfinished runs will take."""

import glob
from dataclasses import dataclass
from typing import Any, Self, final

from umix.bench.runs.record import load_run
from umix.bench.study.estimate import Pace, format_duration, total_seconds
from umix.bench.study.study_grid import State, StudyEntry, StudyGrid, is_cached, run_state, stages_to_train
from umix.run_folder import RECORD


@final
@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A grid, the state of each of its runs when the plan was made, and how long earlier runs took."""

    grid: StudyGrid
    states: dict[str, State]  # by the key of the run
    cached: frozenset[str]  # keys of runs whose shared stage was trained before
    pace: Pace

    @classmethod
    def of(cls, grid: StudyGrid) -> Self:
        """The plan of ``grid``, read from its folder of runs."""
        out = grid.places.out
        states = {entry.key: run_state(out, entry.spec) for entry in grid.runs}
        begins = {entry.spec.directory_name.rpartition("-seed")[0] for entry in grid.entries}
        records = [path for begin in sorted(begins) for path in out.glob(f"{glob.escape(begin)}-seed*/{RECORD}")]
        cached = frozenset(entry.key for entry in grid.runs if is_cached(grid.places, entry))
        return cls(grid, states, cached, Pace(load_run(path.parent) for path in records))

    @property
    def to_run(self) -> list[StudyEntry]:
        """The runs that are not finished, in the order to execute them in."""
        return [entry for entry in self.grid.runs if self.states[entry.key] != "done"]

    def left(self, entries: list[StudyEntry], *, workers: int) -> str:
        """How long ``entries`` will take, as text."""
        seconds, unknown = total_seconds(
            entries, self.pace, stages_to_train(self.grid.places, entries), workers=workers
        )
        if not entries:
            return "–"
        if unknown == len(entries):
            return "unknown"
        return format_duration(seconds) + (f" + {unknown} unknown" if unknown else "")

    def as_json(self) -> list[dict[str, Any]]:
        """Every entry with the state of its run."""
        return [
            {
                "task": entry.task,
                "method": entry.spec.method,
                "label": entry.label,
                "seed": entry.spec.seed,
                "key": entry.key,
                "directory": str(self.grid.places.run_folder(entry.spec)),
                "state": self.states[entry.key],
                "stage_cached": entry.key in self.cached,
                "seconds": self.pace.seconds(
                    entry.spec, trains_stage=entry.stage is not None and entry.key not in self.cached
                ),
            }
            for entry in self.grid.entries
        ]
