"""The runs of a study: which there are, the order to execute them in, and which parts of them are on disk already."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from umix.bench.runs.execute import STAGES, require_groups
from umix.bench.runs.failure import FAILED
from umix.bench.runs.lock import is_locked
from umix.bench.runs.record import RECORD
from umix.bench.runs.task_cache import load_once
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.shared_stages import SharedStage, StagePlanner
from umix.bench.study.study import Study, StudyMethod, StudyTask, titled
from umix.data.task import Task
from umix.errors import UserError

State = Literal["done", "running", "failed", "partly", "to run"]


@final
@dataclass(frozen=True, eq=False)
class Cell:
    """One place in the study's tables; cells with equal settings have the same ``spec.key`` and are one run."""

    task: str  # as the tables call it
    label: str
    spec: RunSpec
    shared: SharedStage | None  # the first stage that it shares with other runs
    fingerprint: str  # of the data

    @property
    def key(self) -> str:
        return self.spec.key

    @property
    def stage(self) -> str | None:
        """The key of the shared stage; cells with the same one wait for each other's training."""
        return None if self.shared is None else self.shared.key

    @property
    def lacks_features(self) -> bool:
        """Whether its shared stage trains on features of a frozen net that are not computed yet."""
        return self.shared is not None and not self.shared.has_inputs


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """All cells of a study in the order of its tables, and sentences about what was left out."""

    cells: tuple[Cell, ...]
    roots: Mapping[str, Path]
    skipped: tuple[str, ...] = ()

    @property
    def runs(self) -> list[Cell]:
        """Cells of different runs, in the order to execute them in.

        Runs that share a stage are far apart, so that workers do not wait for the one that trains
        it.
        """
        return spread_out({cell.key: cell for cell in self.cells}.values())


def make_grid(study: Study, *, cache: Path | None = None) -> Grid:
    """Every run of ``study``, validated; the tasks are loaded once to see whether they have what the methods need.

    ``cache`` is the folder with the stored features of frozen nets. Without it, no stage on
    features is recognised as trained.
    """
    names, planner = titled(study.tasks), StagePlanner(cache)
    cells: list[Cell] = []
    skipped: list[str] = []
    for entry in study.tasks:
        for method in study.methods:
            specs = _specs(study, entry, method)
            task = load_once(specs[0].plan.source, entry.root)
            reason = _impossible(specs[0], task)
            if reason is None:
                found = (names[entry.name], method.title)
                cells += [Cell(*found, spec, planner.first_stage(spec, task), task.fingerprint) for spec in specs]
            elif study.skip_impossible:
                skipped.append(f"{method.title} on {names[entry.name]} is left out: {reason}")
            else:
                raise UserError(
                    f"{method.title} cannot run on {names[entry.name]}: {reason} Leave the method out, or only its impossible "
                    "runs with --skip-impossible."
                )
    if not cells:
        raise UserError("A study must have runs, but none of its methods can run on its tasks.")
    roots = {entry.name: entry.root for entry in study.tasks if entry.root is not None}
    return Grid(tuple(cells), roots, tuple(skipped))


def _specs(study: Study, task: StudyTask, method: StudyMethod) -> list[RunSpec]:
    """The runs of one method on one task, a spec per seed."""
    settings = {**study.settings, **task.settings, **method.settings}
    preset = task.preset or study.preset
    try:
        specs = [
            RunSpec(task=task.name, method=method.name, settings=settings, seed=seed, preset=preset)
            for seed in study.seeds
        ]
        specs[0].key  # noqa: B018 — raises where the files of a net cannot be reached
        return specs
    except UserError as error:
        shared = str(error).startswith("Unknown setting") and len(study.methods) > 1
        hint = " Settings of one method are given as METHOD.key, of one task as TASK.key." if shared else ""
        raise UserError(f"{error}{hint}") from None


def _impossible(spec: RunSpec, task: Task) -> str | None:
    """Why the method cannot train on ``task``, in a sentence; None where it can."""
    try:
        require_groups(spec.plan.method, task)
    except UserError as error:
        return str(error)
    return None


def spread_out(cells: Iterable[Cell]) -> list[Cell]:
    """``cells`` in an order in which those that share a stage are far apart; otherwise they keep their order."""
    turns: dict[str, int] = {}
    ranked = []
    for cell in cells:
        turn = 0
        if cell.stage is not None:
            turn = turns[cell.stage] = turns.get(cell.stage, -1) + 1
        ranked.append((turn, cell))
    return [cell for _, cell in sorted(ranked, key=lambda pair: pair[0])]


def state(out: Path, spec: RunSpec) -> State:
    """What is on disk of ``spec`` below ``out``."""
    directory = out / spec.directory_name
    if (directory / RECORD).exists():
        return "done"
    if is_locked(out, spec.directory_name):
        return "running"
    if (directory / FAILED).exists():
        return "failed"
    return "partly" if (directory / "checkpoint.safetensors").exists() else "to run"


def is_cached(out: Path, cell: Cell) -> bool:
    """Whether the first shared stage of ``cell`` was trained before, at least in part."""
    if cell.shared is None or not cell.shared.has_inputs:
        return False
    return (out / STAGES / cell.shared.key / "checkpoint.safetensors").exists()


def stages_to_train(out: Path, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that will train their shared stage themselves: the first of each stage that is not on disk."""
    first = {cell.stage: cell for cell in reversed(cells) if cell.stage is not None and not is_cached(out, cell)}
    return list(first.values())
