"""The plan of a study: all of its runs, the order to execute them in, and the state of each on disk."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, final

from umix.bench.runs.execute import require_groups
from umix.bench.runs.folds import fold_settings
from umix.bench.runs.lock import is_locked
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.plan import shared_net
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.study import Study, StudyMethod, StudyTask, task_titles
from umix.data.registry import refuse_folds
from umix.data.task import Task
from umix.errors import Setting, UserError
from umix.run_folder import CHECKPOINT, FAILED, RECORD

State = Literal["done", "running", "failed", "partly", "to run"]


@final
@dataclass(frozen=True, eq=False)
class StudyEntry:
    """One task, method, seed and fold of a study. Entries with equal settings have the same ``spec.key``: they are one run."""

    task: str  # its title in tables
    label: str
    spec: RunSpec
    fingerprint: str | None  # of the data; None for a fold, whose files are part of its key

    @property
    def key(self) -> str:
        return self.spec.key


@final
@dataclass(frozen=True, eq=False)
class StudyGrid:
    """All entries of a study in the order of its tables, the folders they use, and a sentence per skipped method."""

    entries: tuple[StudyEntry, ...]
    paths: RunPaths
    skipped: tuple[str, ...] = ()

    @property
    def runs(self) -> list[StudyEntry]:
        """Entries of different runs, in the order to execute them in.

        Runs that share a first stage are those of one seed: there are the other seeds between them.
        """
        return list({entry.key: entry for entry in self.entries}.values())


@final
@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A grid, and the state of each of its runs when the plan was made."""

    grid: StudyGrid
    states: dict[str, State]  # by the key of the run

    @classmethod
    def of(cls, grid: StudyGrid) -> Self:
        """The plan of ``grid``, read from its folder of runs."""
        return cls(grid, {entry.key: run_state(grid.paths.out, entry.spec) for entry in grid.runs})

    @property
    def to_run(self) -> list[StudyEntry]:
        """The runs that are not finished, in the order to execute them in."""
        return [entry for entry in self.grid.runs if self.states[entry.key] != "done"]

    def as_json(self) -> list[dict[str, Any]]:
        """Every entry with the state of its run."""
        return [
            {
                "task": entry.task,
                "method": entry.spec.method,
                "label": entry.label,
                "seed": entry.spec.seed,
                **({} if entry.spec.fold is None else {"fold": entry.spec.fold}),
                "key": entry.key,
                "directory": str(self.grid.paths.run_folder(entry.spec)),
                "state": self.states[entry.key],
            }
            for entry in self.grid.entries
        ]


def make_grid(study: Study, paths: RunPaths | None = None, *, trust_code: bool = False) -> StudyGrid:
    """Every run of ``study``, validated; the tasks are loaded to check that they have the groups that methods need.

    With ``trust_code`` the preset files of the study may name code as their net.
    """
    paths = paths or RunPaths()
    roots = {entry.name: entry.root for entry in study.tasks if entry.root is not None}
    paths = replace(paths, roots={**paths.roots, **roots})
    names = task_titles(study.tasks)
    entries: list[StudyEntry] = []
    skipped: list[str] = []
    for study_task in study.tasks:
        for method in study.methods:
            refuse_folds(study_task.name, study.folds)
            specs = _specs(study, study_task, method, trust_code=trust_code)
            task = paths.load_cached(specs[0])
            reason = _impossible(specs[0], task)
            if reason is None:
                titles = (names[study_task.name], method.title)
                entries += [StudyEntry(*titles, spec, None if study.folds else task.fingerprint) for spec in specs]
            elif study.skip_impossible:
                skipped.append(f"{method.title} on {names[study_task.name]} is left out: {reason}")
            else:
                raise UserError(
                    f"{method.title} cannot run on {names[study_task.name]}: ",
                    reason,
                    " Leave the method out, or only its impossible runs with ",
                    Setting("skip_impossible", "True"),
                    ".",
                )
    if not entries:
        raise UserError("A study must have runs, but none of its methods can run on its tasks.")
    return StudyGrid(tuple(entries), paths, tuple(skipped))


def _specs(study: Study, task: StudyTask, method: StudyMethod, *, trust_code: bool) -> list[RunSpec]:
    """The runs of one method on one task, a spec per seed and fold."""
    settings = {**study.settings, **task.settings, **method.settings}
    preset = task.preset or study.preset
    try:
        # best alone may choose a learner; in a comparison it would be learners that are compared, not methods.
        net = shared_net(task.name, method.name, settings, preset_name=preset)
        settings |= {} if net is None else {"net": net}
        specs = [
            RunSpec(
                task=task.name,
                method=method.name,
                settings=settings | fold,
                seed=seed,
                preset=preset,
                trust_code=trust_code,
            )
            for seed in study.seeds
            for fold in fold_settings(study.folds)
        ]
        specs[0].key  # noqa: B018 — raises if the files of a net cannot be read
        return specs
    except UserError as error:
        shared = str(error).startswith("Unknown setting") and len(study.methods) > 1
        hint = " Settings of one method are given as METHOD.key, of one task as TASK.key." if shared else ""
        raise UserError(error, hint) from None


def _impossible(spec: RunSpec, task: Task) -> UserError | None:
    """The reason why the method cannot train on ``task``; None if it can."""
    try:
        require_groups(spec.plan.method, task, spec.plan.evaluation.use_groups)
    except UserError as error:
        return error
    return None


def run_state(out: Path, spec: RunSpec) -> State:
    """The state of the run ``spec``, read from its folder in ``out``."""
    directory = out / spec.directory_name
    if (directory / RECORD).exists():
        return "done"
    if is_locked(out, spec.directory_name):
        return "running"
    if (directory / FAILED).exists():
        return "failed"
    return "partly" if (directory / CHECKPOINT).exists() else "to run"
