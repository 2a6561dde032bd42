"""The plan of a study as people and programs read it."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from rich.markup import escape
from rich.table import Table

from umix.core.words import counted

if TYPE_CHECKING:
    from umix.bench.study.estimate import Pace
    from umix.bench.study.study_runs import Cell, Grid, State

_REMARKS: dict["State", str] = {"failed": "failed before", "partly": "begun", "running": "running elsewhere"}


@final
@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A grid with the state of each run, read from disk when this was made, and what is known of their pace."""

    grid: "Grid"
    out: Path
    states: "dict[str, State]"  # by key
    cached: frozenset[str]  # keys of runs whose shared stage was trained before
    pace: "Pace"

    @classmethod
    def of(cls, grid: "Grid", out: Path) -> Self:
        from umix.bench.runs.record import load_run
        from umix.bench.study.estimate import Pace
        from umix.bench.study.study_runs import is_cached, state

        states = {cell.key: state(out, cell.spec) for cell in grid.runs}
        titles = {(cell.spec.plan.source.title, cell.spec.method) for cell in grid.cells}
        seen = [path for title, method in sorted(titles) for path in out.glob(f"{title}-{method}-seed*/record.json")]
        pace = Pace(load_run(path.parent) for path in seen)
        return cls(grid, out, states, frozenset(cell.key for cell in grid.runs if is_cached(out, cell)), pace)

    @property
    def to_run(self) -> "list[Cell]":
        """The runs that are not finished, in the order to execute them in."""
        return [cell for cell in self.grid.runs if self.states[cell.key] != "done"]

    def left(self, cells: "list[Cell]", *, workers: int) -> str:
        """How long ``cells`` will take, in words."""
        from umix.bench.study.estimate import in_words, total
        from umix.bench.study.study_runs import stages_to_train

        seconds, unknown = total(cells, self.pace, stages_to_train(self.out, cells), workers=workers)
        if not cells:
            return "–"
        if unknown == len(cells):
            return "unknown"
        return in_words(seconds) + (f" + {unknown} unknown" if unknown else "")

    def table(self, *, workers: int) -> Table:
        """A row per task and method: how many runs are done and to run, and how long that will take."""
        table = Table(title=f"Plan: {self.headline}", title_justify="left")
        for name in ("task", "method", "runs", "done", "to run", "time", "of those to run"):
            table.add_column(name, justify="right" if name in ("runs", "done", "to run", "time") else "left")
        rows: dict[tuple[str, str], list[Cell]] = {}
        for cell in self.grid.cells:
            rows.setdefault((cell.task, cell.label), []).append(cell)
        for (task, label), cells in rows.items():
            ahead = [cell for cell in cells if self.states[cell.key] != "done"]
            numbers = (str(len(cells)), str(len(cells) - len(ahead)), str(len(ahead)))
            time = self.left(ahead, workers=1)
            table.add_row(escape(task), escape(label), *numbers, time, self._remarks(ahead))
        ahead = self.to_run
        done = len(self.states) - len(ahead)
        together = f" with {workers} workers" if workers > 1 else ""
        table.add_section()
        table.add_row(
            "all",
            "",
            str(len(self.states)),
            str(done),
            str(len(ahead)),
            self.left(ahead, workers=workers),
            together.strip(),
        )
        return table

    @property
    def headline(self) -> str:
        seeds = sorted({cell.spec.seed for cell in self.grid.cells})
        listed = ", ".join(map(str, seeds)) if len(seeds) <= 10 else f"{seeds[0]} … {seeds[-1]}"
        same = len(self.grid.cells) - len(self.states)
        note = f"; cells that are the same run as another: {same}" if same else ""
        return f"{counted(len(self.states), 'run')}, {'seed' if len(seeds) == 1 else 'seeds'} {listed}{note}"

    def _remarks(self, cells: "list[Cell]") -> str:
        count = Counter(self.states[cell.key] for cell in cells)
        parts = [f"{count[state]} {words}" for state, words in _REMARKS.items() if count[state]]
        cached = sum(cell.key in self.cached for cell in cells)
        without = sum(cell.lacks_features for cell in cells)
        parts += [f"{cached} stage cached"] if cached else []
        return ", ".join([*parts, *([f"{without} without features"] if without else [])])

    def as_json(self) -> list[dict[str, Any]]:
        """Every cell with the state of its run."""
        return [
            {
                "task": cell.task,
                "method": cell.spec.method,
                "label": cell.label,
                "seed": cell.spec.seed,
                "key": cell.key,
                "directory": str(self.out / cell.spec.directory_name),
                "state": self.states[cell.key],
                "stage_cached": cell.key in self.cached,
                "seconds": self.pace.seconds(
                    cell.spec, trains_stage=cell.stage is not None and cell.key not in self.cached
                ),
            }
            for cell in self.grid.cells
        ]
