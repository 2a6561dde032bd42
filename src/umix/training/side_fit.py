"""Fits that a method needs before its final fit and that are not ERM on the training split, such as nets that predict groups."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Split
from umix.files import locked
from umix.nets.net import Net
from umix.training.fit_settings import FitSettings
from umix.training.objective import Objective, State
from umix.training.observer import Observer, Unobserved
from umix.training.stage import Stage
from umix.training.stage_key import stage_key

if TYPE_CHECKING:
    from umix.training.trainer import Trainer


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

    def fit_settings(self, trainer: "Trainer") -> FitSettings:
        """The settings of this fit in the run of ``trainer``."""
        own = {"epochs": self.epochs, **self.changes, **trainer.stages.get(self.settings_name, {})}
        return trainer.settings.updated(own)


def side_fit(
    trainer: "Trainer",
    stage: SideStage,
    objective: Objective,
    *,
    sampler: Sampler | None = None,
    train: Split | None = None,
    n_classes: int | None = None,
    companion: bool = False,
    observer: Observer | None = None,
) -> tuple[Net, State]:
    """The net at the end of ``stage``, and the last state of its ``objective``.

    It is trained on ``train`` and predicts ``n_classes`` classes: those of the task, unless others are given. ``observer``
    sees the net after every epoch; what decides its tensors must be part of the stage's ``content``.
    """
    split = trainer.splits["train"] if train is None else train
    classes = trainer.task.n_classes if n_classes is None else n_classes
    settings, more = stage.fit_settings(trainer), {"content": stage.content}
    key = stage_key(stage.name, split.fingerprint, classes, trainer.net, settings, trainer.seed, more)
    made = Stage(stage.name, settings, trainer.seed, key, None if trainer.cache is None else trainer.cache / key)
    net = trainer.fresh_net(stage.name, n_classes=classes)
    if companion:
        net.companion = trainer.fresh_net(stage.name, "companion", n_classes=classes)
    with locked(made.directory):
        state = trainer.run_fit(made, net, objective, sampler or Shuffled(), observer or Unobserved(), train=split)
    return net, state
