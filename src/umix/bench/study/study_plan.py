"""The plan of a study: all of its runs, the order to execute them in, the stages that they share, and the state of each on disk."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, final

from umix.bench.runs.execute import require_groups
from umix.bench.runs.lock import is_locked
from umix.bench.runs.places import Places
from umix.bench.runs.training_inputs import for_net, stored_inputs
from umix.bench.spec.plan import shared_net
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.study import Study, StudyMethod, StudyTask, task_titles
from umix.data.task import Task
from umix.errors import Setting, UserError
from umix.nets.backbone import Backbone
from umix.nets.net import NetSettings
from umix.run_folder import CHECKPOINT, FAILED, RECORD
from umix.training.stage import StageInputs, erm_fit

State = Literal["done", "running", "failed", "partly", "to run"]


@final
@dataclass(frozen=True)
class SharedStage:
    """The first stage that a run shares with others; runs with the same ``key`` share it.

    ``has_inputs`` is False while the features that the stage trains on are not computed yet. The
    key is then made of the raw inputs and the frozen net. It still tells which runs share the
    stage, but no trained stage has it.
    """

    key: str
    has_inputs: bool = True


@final
@dataclass(frozen=True, eq=False)
class StudyEntry:
    """One task, method and seed of a study. Entries with equal settings have the same ``spec.key``: they are one run."""

    task: str  # its title in tables
    label: str
    spec: RunSpec
    shared: SharedStage | None  # the first stage that it shares with other runs
    fingerprint: str  # of the data

    @property
    def key(self) -> str:
        return self.spec.key

    @property
    def stage(self) -> str | None:
        """The key of the shared stage; of the entries with the same key, one trains it and the others wait."""
        return None if self.shared is None else self.shared.key

    @property
    def lacks_features(self) -> bool:
        """Whether its shared stage trains on features of a frozen net that are not computed yet."""
        return self.shared is not None and not self.shared.has_inputs


@final
@dataclass(frozen=True, eq=False)
class StudyGrid:
    """All entries of a study in the order of its tables, the folders they use, and a sentence per skipped method."""

    entries: tuple[StudyEntry, ...]
    places: Places
    skipped: tuple[str, ...] = ()

    @property
    def runs(self) -> list[StudyEntry]:
        """Entries of different runs, in the order to execute them in.

        Runs that share a stage are far apart, so that workers do not wait for the one that trains
        it.
        """
        return spread_out({entry.key: entry for entry in self.entries}.values())


@final
@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A grid, and the state of each of its runs when the plan was made."""

    grid: StudyGrid
    states: dict[str, State]  # by the key of the run
    cached: frozenset[str]  # keys of runs whose shared stage was trained before

    @classmethod
    def of(cls, grid: StudyGrid) -> Self:
        """The plan of ``grid``, read from its folder of runs."""
        states = {entry.key: run_state(grid.places.out, entry.spec) for entry in grid.runs}
        return cls(grid, states, frozenset(entry.key for entry in grid.runs if is_cached(grid.places, entry)))

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
                "key": entry.key,
                "directory": str(self.grid.places.run_folder(entry.spec)),
                "state": self.states[entry.key],
                "stage_cached": entry.key in self.cached,
            }
            for entry in self.grid.entries
        ]


def make_grid(study: Study, places: Places | None = None, *, trust_code: bool = False) -> StudyGrid:
    """Every run of ``study``, validated; the tasks are loaded to check that they have the groups that methods need.

    With ``trust_code`` the preset files of the study may name code as their net.
    """
    places = places or Places()
    roots = {entry.name: entry.root for entry in study.tasks if entry.root is not None}
    places = replace(places, roots={**places.roots, **roots})
    names, planner = task_titles(study.tasks), StagePlanner(places.cache_folder)
    entries: list[StudyEntry] = []
    skipped: list[str] = []
    for study_task in study.tasks:
        for method in study.methods:
            specs = _specs(study, study_task, method, trust_code=trust_code)
            task = places.load_cached(specs[0])
            reason = _impossible(specs[0], task)
            if reason is None:
                titles = (names[study_task.name], method.title)
                entries += [
                    StudyEntry(*titles, spec, planner.first_stage(spec, task), task.fingerprint) for spec in specs
                ]
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
    return StudyGrid(tuple(entries), places, tuple(skipped))


def _specs(study: Study, task: StudyTask, method: StudyMethod, *, trust_code: bool) -> list[RunSpec]:
    """The runs of one method on one task, a spec per seed."""
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
                settings=settings,
                seed=seed,
                preset=preset,
                trust_code=trust_code,
            )
            for seed in study.seeds
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
        require_groups(spec.plan.method, task, spec.plan.judge.use_groups)
    except UserError as error:
        return error
    return None


def spread_out(entries: Iterable[StudyEntry]) -> list[StudyEntry]:
    """``entries`` in an order in which those that share a stage are far apart; otherwise they keep their order.

    The first entry of every stage comes first, then the second of every stage, and so on.
    """
    latest: dict[str, int] = {}  # rank of the latest entry of each stage
    ranked = []
    for entry in entries:
        rank = 0
        if entry.stage is not None:
            rank = latest[entry.stage] = latest.get(entry.stage, -1) + 1
        ranked.append((rank, entry))
    return [entry for _, entry in sorted(ranked, key=lambda pair: pair[0])]


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


def is_cached(places: Places, entry: StudyEntry) -> bool:
    """Whether the first shared stage of ``entry`` was trained before, at least in part."""
    if entry.shared is None or not entry.shared.has_inputs:
        return False
    return (places.stages_folder / entry.shared.key / CHECKPOINT).exists()


@final
class StagePlanner:
    """Finds the shared stages of a study's runs.

    ``cache`` is the folder of stored features, None if there is none.
    """

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache
        self._ready: dict[tuple[str, bool], Task] = {}  # tables as the nets take them
        self._features: dict[tuple[str, NetSettings, int | None], StageInputs | None] = {}  # reading them is slow

    def first_stage(self, spec: RunSpec, task: Task) -> SharedStage | None:
        """The first stage that ``spec`` shares with other runs on ``task``.

        None if its method has no such stage.
        """
        plan = spec.plan
        stages = plan.method.erm_stages(plan.fit.epochs)
        if not stages:
            return None
        form = (task.fingerprint, plan.net.takes_codes)
        if form not in self._ready:
            self._ready[form] = for_net(task, plan.net)
        task = self._ready[form]
        inputs = self._inputs(spec, task)
        key_inputs = StageInputs.of(task, plan.net) if inputs is None else inputs
        fit = erm_fit(stages[0], key_inputs, plan.fit, plan.stages, seed=spec.seed)
        return SharedStage(fit.key, has_inputs=inputs is not None)

    def _inputs(self, spec: RunSpec, task: Task) -> StageInputs | None:
        """The inputs that the stage will be trained on; None if they are features that are not computed yet."""
        net = spec.plan.net
        if not (isinstance(net, Backbone) and net.freeze):
            return StageInputs.of(task, net.on_columns(task.categories))
        if self._cache is None:
            return None
        key = (task.fingerprint, net, None if net.names_its_weights else spec.seed)
        if key not in self._features:
            stored = stored_inputs(task, net, self._cache, seed=spec.seed)
            self._features[key] = None if stored is None else StageInputs.of(stored.task, stored.net)
        return self._features[key]
