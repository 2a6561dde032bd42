"""The fits of a run: what identifies one before it is trained, and what is reported of it afterwards."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from umix.errors import UserError
from umix.training.fit_settings import FitSettings

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


def require_epochs(stage: Stage, epochs: int) -> None:
    """Raise if ``stage`` has fewer epochs than a method needs."""
    if stage.settings.epochs < epochs:
        raise UserError(
            f"The window must end within the {stage.settings.epochs} epochs of stage {stage.name!r}, but it needs {epochs}; "
            f"set {stage.name}.epochs={epochs} or choose an earlier or shorter window."
        )
