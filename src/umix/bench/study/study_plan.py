"""What a study has yet to do: the state of every run on disk, and how long the rest will take."""

from dataclasses import dataclass
from typing import Any, Self, final

from umix.bench.runs.record import load_run
from umix.bench.study.estimate import Pace, in_words, total
from umix.bench.study.study_grid import State, StudyEntry, StudyGrid, is_cached, stages_to_train, state
from umix.run_folder import RECORD


@final
@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A grid, the state of each of its runs at the time this was made, and the pace of earlier runs."""

    grid: StudyGrid
    states: dict[str, State]  # by the key of the run
    cached: frozenset[str]  # keys of runs whose shared stage was trained before
    pace: Pace

    @classmethod
    def of(cls, grid: StudyGrid) -> Self:
        """The plan of ``grid``, read from its folder of runs."""
        out = grid.places.out
        states = {entry.key: state(out, entry.spec) for entry in grid.runs}
        titles = {(entry.spec.plan.source.title, entry.spec.method) for entry in grid.entries}
        seen = [path for title, method in sorted(titles) for path in out.glob(f"{title}-{method}-seed*/{RECORD}")]
        cached = frozenset(entry.key for entry in grid.runs if is_cached(grid.places, entry))
        return cls(grid, states, cached, Pace(load_run(path.parent) for path in seen))

    @property
    def to_run(self) -> list[StudyEntry]:
        """The runs that are not finished, in the order to execute them in."""
        return [entry for entry in self.grid.runs if self.states[entry.key] != "done"]

    def left(self, entries: list[StudyEntry], *, workers: int) -> str:
        """How long ``entries`` will take, in words."""
        seconds, unknown = total(entries, self.pace, stages_to_train(self.grid.places, entries), workers=workers)
        if not entries:
            return "–"
        if unknown == len(entries):
            return "unknown"
        return in_words(seconds) + (f" + {unknown} unknown" if unknown else "")

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
