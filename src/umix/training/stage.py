"""The fits of a run, called stages: what identifies one before it is trained, and what is reported of it afterwards.

The key of a stage is a hash of its content, by which runs find fits that were trained before.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, final

from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.models.model import Model, ModelSettings
from umix.store import locked
from umix.training.fit_settings import FitSettings
from umix.training.objective import Objective, State
from umix.training.progress import EpochLog, Observer, Unobserved

if TYPE_CHECKING:
    from umix.training.context import Context

#: Which predictions a trajectory records: those of the training pass, or of an evaluation pass after every epoch.
Record = Literal["online", "epoch_end"]
#: The stage whose net is the result. All methods use this name, so runs with one seed share initialisation and order.
FINAL = "fit"


@final
@dataclass(frozen=True)
class ErmStage:
    """An ERM fit that a method needs before its final fit; runs with the same data, net, settings and seed share it.

    ``epochs`` is the number that the method needs; the user's settings of the stage override it.
    With ``record`` the fit records a trajectory. ``settings`` is the name under which users set its
    fit settings (``NAME.lr``): by default the stage's own name. Several stages may share the
    settings of one name.
    """

    name: str
    epochs: int
    record: Record | None = None
    settings: str | None = None

    @property
    def settings_name(self) -> str:
        """The name under which users set the fit settings of this stage."""
        return self.name if self.settings is None else self.settings


@final
@dataclass(frozen=True, eq=False)
class Stage:
    """A fit that is ready to be trained.

    ``key`` is a hash of everything that decides its numbers. ``directory`` holds the checkpoint
    from which it is resumed.
    """

    name: str
    settings: FitSettings
    seed: int
    key: str
    directory: Path | None


@final
@dataclass(frozen=True)
class StageReport:
    """What the run's record says about a fit; ``reused`` if all of its epochs were trained before."""

    key: str
    epochs: int
    seconds: float
    reused: bool


@final
@dataclass(frozen=True, eq=False)
class Journal:
    """The reports and logs of the fits of a run so far, by the name of the stage; only the context writes them."""

    reports: dict[str, StageReport] = field(default_factory=dict)
    logs: dict[str, EpochLog] = field(default_factory=lambda: defaultdict(EpochLog))


def require_epochs(stage: Stage, epochs: int) -> None:
    """Raise if ``stage`` has fewer epochs than a method needs."""
    if stage.settings.epochs < epochs:
        raise UserError(
            f"The window must end within the {stage.settings.epochs} epochs of stage {stage.name!r}, but it needs {epochs}; "
            f"set {stage.name}.epochs={epochs} or choose an earlier or shorter window."
        )


def stage_key(
    stage: str,
    train: str,
    n_classes: int,
    net: ModelSettings,
    settings: FitSettings,
    seed: int,
    more: Mapping[str, str],
) -> str:
    """The name of ``stage`` and a hash of what decides its numbers, except for the objective.

    ``train`` is the fingerprint of the training split. ``more`` is what this stage depends on
    besides.
    """
    content = {
        "train": train,
        "classes": n_classes,
        "net": net.as_json(),
        "settings": settings.model_dump(mode="json"),
        "seed": seed,
        **more,
    }
    return f"{stage}-{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]}"


def recorded_splits(task: Task) -> tuple[str, ...]:
    """The splits besides train whose predictions are recorded in a trajectory: test only where ``task`` has no groups."""
    return ("val",) if task.groups else ("val", "test")


@final
@dataclass(frozen=True, eq=False)
class StageInputs:
    """The data and the net of an ERM stage, as far as they decide its key.

    ``train`` is the fingerprint of the training split, ``recorded`` has those of the other splits
    that a trajectory records.
    """

    train: str
    recorded: Mapping[str, str]
    n_classes: int
    net: ModelSettings

    @classmethod
    def of(cls, task: Task, net: ModelSettings) -> Self:
        """The inputs of stages that train ``net`` on ``task``."""
        recorded = {name: task.splits[name].fingerprint for name in recorded_splits(task)}
        return cls(task.splits["train"].fingerprint, recorded, task.n_classes, net)


def erm_fit(
    stage: ErmStage,
    inputs: StageInputs,
    fit: FitSettings,
    overrides: Mapping[str, Mapping[str, Any]],
    *,
    seed: int,
    cache: Path | None = None,
) -> Stage:
    """The fit that ``stage`` stands for in a run with the fit settings ``fit`` and the ``overrides`` of named stages.

    The context trains this value and studies are planned with it, so both have the same key.
    ``cache`` is the folder of the stages that runs share.
    """
    settings = fit.updated({"epochs": stage.epochs, **overrides.get(stage.settings_name, {})})
    more = {} if stage.record is None else {"record": stage.record, **inputs.recorded}
    key = stage_key(stage.name, inputs.train, inputs.n_classes, inputs.net, settings, seed, more)
    return Stage(stage.name, settings, seed, key, None if cache is None else cache / key)


@final
@dataclass(frozen=True)
class SideStage:
    """A fit that a method needs before its final fit, and that is not ERM on the training split.

    ``content`` identifies its objective and its examples, as far as the training split and the seed do not decide them: runs with
    the same content, data, net, settings and seed share it. ``epochs`` and ``settings`` are as in ``ErmStage``. ``changes`` are
    fit settings of the method's own, which the user's settings of the stage override.
    """

    name: str
    epochs: int
    content: str
    settings: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings_name(self) -> str:
        """The name under which users set the fit settings of this stage."""
        return self.name if self.settings is None else self.settings

    def fit_settings(self, context: "Context") -> FitSettings:
        """The settings of this fit in the run of ``context``."""
        options = {"epochs": self.epochs, **self.changes, **context.stages.get(self.settings_name, {})}
        return context.settings.updated(options)


def side_fit(
    context: "Context",
    stage: SideStage,
    objective: Objective,
    *,
    sampler: Sampler | None = None,
    train: Split | None = None,
    n_classes: int | None = None,
    companion: Model | bool = False,
    observer: Observer | None = None,
) -> tuple[Model, State]:
    """The net at the end of ``stage``, and the last state of its ``objective``.

    It is trained on ``train`` and predicts ``n_classes`` classes: those of the task, unless others are given. ``companion`` is a
    model that is trained beside the net by the same optimiser, or True for a second net of the same architecture. ``observer``
    sees the net after every epoch; what decides its tensors must be part of the stage's ``content``.
    """
    split = context.splits["train"] if train is None else train
    classes = context.task.n_classes if n_classes is None else n_classes
    settings, more = stage.fit_settings(context), {"content": stage.content}
    key = stage_key(stage.name, split.fingerprint, classes, context.net, settings, context.seed, more)
    made = Stage(stage.name, settings, context.seed, key, None if context.cache is None else context.cache / key)
    net = context.fresh_net(stage.name, n_classes=classes)
    if companion:
        second = context.fresh_net(stage.name, "companion", n_classes=classes) if companion is True else companion
        net.companion = second
    with locked(made.directory):
        state = context.run_fit(made, net, objective, sampler or Shuffled(), observer or Unobserved(), train=split)
    return net, state
