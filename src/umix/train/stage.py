"""Which fit this is, and what it was."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import final

from umix.nets.net import NetSettings
from umix.train.fit_settings import FitSettings


@final
@dataclass(frozen=True, eq=False)
class Stage:
    """Which fit this is: ``key`` is a hash of all that decides its numbers, ``directory`` is where it can be resumed."""

    name: str
    settings: FitSettings
    seed: int
    key: str
    directory: Path | None


@final
@dataclass(frozen=True)
class StageReport:
    """What a fit was: for the run's record."""

    key: str
    epochs: int
    seconds: float
    reused: bool


def stage_key(
    stage: str, *, train: str, classes: int, net: NetSettings, settings: FitSettings, seed: int, **more: str
) -> str:
    """The stage's name and a hash of what decides its numbers; ``train`` is the training split's fingerprint."""
    content = {
        "train": train,
        "classes": classes,
        "net": {"name": net.name, **net.model_dump(mode="json")},
        "settings": settings.model_dump(mode="json"),
        "seed": seed,
        **more,
    }
    return f"{stage}-{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]}"
