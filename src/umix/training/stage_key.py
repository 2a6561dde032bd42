"""The key of a fit: a hash of its content, by which runs find fits that were trained before."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

from umix.data.task import Task
from umix.nets.net import NetSettings
from umix.training.fit_settings import FitSettings
from umix.training.stage import ErmStage, Stage


def stage_key(
    stage: str,
    train: str,
    n_classes: int,
    net: NetSettings,
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
    net: NetSettings

    @classmethod
    def of(cls, task: Task, net: NetSettings) -> Self:
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

    The trainer trains this value and studies are planned with it, so both have the same key.
    ``cache`` is the folder of the stages that runs share.
    """
    settings = fit.updated({"epochs": stage.epochs, **overrides.get(stage.settings_name, {})})
    more = {} if stage.record is None else {"record": stage.record, **inputs.recorded}
    key = stage_key(stage.name, inputs.train, inputs.n_classes, inputs.net, settings, seed, more)
    return Stage(stage.name, settings, seed, key, None if cache is None else cache / key)
