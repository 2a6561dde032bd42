"""Which fit this is, and what it was."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from umix.errors import UserError
from umix.training.fit_settings import FitSettings


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


def require_epochs(stage: Stage, epochs: int) -> Stage:
    """``stage``; raises where it has fewer epochs than a method looks at."""
    if stage.settings.epochs < epochs:
        raise UserError(
            f"The window must end within the {stage.settings.epochs} epochs of stage {stage.name!r}, but it needs {epochs}; "
            f"set {stage.name}.epochs={epochs} or choose an earlier or shorter window."
        )
    return stage
