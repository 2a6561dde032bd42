"""Which fit this is, and what it was."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

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
