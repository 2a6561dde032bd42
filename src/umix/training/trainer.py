"""The trainer: knows the task, the net, the settings and the seed; methods ask it for fits and trajectories."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, final

from torch import Tensor

from umix.core.selection import Counts
from umix.core.streams import torch_stream
from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Task
from umix.files import locked, write_tensors
from umix.nets.net import Net, NetSettings
from umix.training.engine import Engine
from umix.training.epoch_log import EpochLog
from umix.training.evaluate import outputs
from umix.training.fit import Observer, Unobserved, fit
from umix.training.fit_settings import FitSettings
from umix.training.history import BestWeights, History, fit_warnings
from umix.training.loop import Step, descend
from umix.training.objective import MeanRisk, Objective, check_given
from umix.training.progress import Progress, Silent
from umix.training.recorder import Recorder
from umix.training.stage import Stage, StageReport, require_epochs
from umix.training.stage_key import stage_key
from umix.training.trajectory import Trajectory

#: The stage whose net is the result; its name is the same for every method, so one seed means one initialisation and order.
FINAL = "fit"


@final
@dataclass(eq=False)
class Trainer:
    """Runs the fits of one run.

    ``stages`` overrides the settings of named stages. With ``directory`` the run can be killed and goes on from its last finished
    epoch; with ``cache`` trajectories are shared by all runs with the same data, net, settings and seed. ``groups`` says whether
    the method may see training groups at all. ``on_epoch(epoch, val)`` sees the final fit's validation counts, and may raise.
    """

    task: Task
    net: NetSettings
    settings: FitSettings = field(default_factory=FitSettings)
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = 0
    groups: bool = False
    directory: Path | None = None
    cache: Path | None = None
    hold: bool = False  # whether the weights of the best epochs stay in memory: history.best.held
    engine: Engine = field(default_factory=Engine)
    progress: Progress = field(default_factory=Silent)
    on_epoch: Callable[[int, Counts], None] | None = None
    reports: dict[str, StageReport] = field(default_factory=dict, init=False)
    logs: dict[str, EpochLog] = field(default_factory=lambda: defaultdict(EpochLog), init=False)
    warnings: list[str] = field(default_factory=list, init=False)
    kept: dict[str, Tensor] = field(default_factory=dict, init=False)
    val_uncertainty: Tensor | None = field(default=None, init=False)  # set by a method whose first stage knows it
    test_uncertainty: Tensor | None = field(default=None, init=False)  # likewise, for reports
    decisions: dict[str, Any] = field(default_factory=dict, init=False)  # what was left open, and how it was decided

    def __post_init__(self) -> None:
        self.device = self.engine.device
        self.splits = {name: split.to(self.device) for name, split in self.task.splits.items()}
        self.history = self._new_history(self.settings_of(FINAL).epochs)

    @property
    def example(self) -> Tensor:
        """One training input, for its shape and type."""
        return self.task.splits["train"].example

    def fit(
        self, objective: Objective, *, sampler: Sampler | None = None, step: Step = descend, companion: bool = False
    ) -> Net:
        """A freshly initialised net trained to minimise ``objective``, counted on val and test after every epoch.

        With ``companion`` the net has a second one of the same kind beside it, trained by the same optimiser.
        """
        settings = self.settings_of(FINAL)
        self.history = self._new_history(settings.epochs)
        stage = Stage(FINAL, settings, self.seed, self._key(FINAL, settings), self.directory)
        net = self._fresh_net(FINAL)
        if companion:
            net.companion = self._fresh_net(FINAL, "companion")
        self._run(stage, net, objective, sampler or Shuffled(), self.history, step=step)
        self.warnings += fit_warnings(net, self.history.counts("val"))
        return net

    def adopt(self, net: Net) -> Net:
        """Take ``net``, made by other means than a final fit, as the result: counted once on val and test."""
        self.history = self._new_history(1)
        self.history.observe(self.engine.spread(net), 0)
        return net

    def reference(self, *, epochs: int | None = None, stage: str = "reference", settings: str | None = None) -> Net:
        """The net of an ERM fit shared between runs; several stages may share the overrides of one name, ``settings``."""
        shared, net = self.shared(stage, epochs, settings=settings), self._fresh_net(stage)
        with locked(shared.directory):
            self._run(shared, net, MeanRisk(), Shuffled(), Unobserved())
        return net

    def trajectory(
        self, *, epochs: int, record: Literal["online", "epoch_end"], stage: str = "trajectory"
    ) -> Trajectory:
        """Train by ERM and return which examples were predicted correctly in which epoch (UMIX Algorithm 2).

        ``online`` takes the predictions of the training pass, ``epoch_end`` those of a clean pass after the epoch. ``epochs`` is
        how many the method needs; the stage's own setting may ask for more. Its ``val``, and without groups ``test``, are of those.
        """
        test = None if self.task.groups else self.splits["test"]
        others = {"val": self.splits["val"].fingerprint} | ({} if test is None else {"test": test.fingerprint})
        shared = require_epochs(self.shared(stage, epochs, record=record, **others), epochs)
        net = self._fresh_net(stage)
        with locked(shared.directory):
            recorder = Recorder.open(shared, self.splits, record=record, test=test, engine=self.engine)
            watch = recorder.trajectory.see if record == "online" else None
            self._run(shared, net, MeanRisk(watch), Shuffled(), recorder)
        if self.directory is not None:
            recorder.trajectory.save(self.directory / f"{stage}.safetensors")
        return recorder.trajectory

    def trial(self, objective: Objective, observer: Observer, *, stage: str, content: str) -> None:
        """Fit a net like the final one, for ``observer`` only; ``content`` and earlier stages say what its objective is."""
        earlier = "".join(report.key for name, report in self.reports.items() if not name.startswith("trial"))
        shared = self.shared(stage, None, settings=FINAL, objective=content, after=earlier)
        with locked(shared.directory):
            self._run(shared, self._fresh_net(FINAL), objective, Shuffled(), observer)

    def logits(self, net: Net, split: str) -> Tensor:
        """Logits of ``net`` on every example of the split, [n, classes]."""
        return outputs(self.engine.spread(net), self.splits[split], batch_size=self.settings.batch_size)

    def features(self, net: Net, split: str) -> Tensor:
        """Features of ``net`` on every example of the split, [n, width]."""
        return outputs(self.engine.spread(net), self.splits[split], batch_size=self.settings.batch_size, features=True)

    def keep(self, **per_example: Tensor) -> None:
        """Save what the method knows of each training example with the run, beside its label."""
        self.kept |= {name: tensor.cpu() for name, tensor in per_example.items()}
        if self.directory is not None:
            tensors = {**self.kept, "label": self.task.splits["train"].y}
            write_tensors(self.directory / "examples.safetensors", tensors, {"kind": "examples"})

    def warn(self, message: str) -> None:
        """Say in the record, which every report of the run shows, that something is not as it should be."""
        self.warnings.append(message)

    def settings_of(self, stage: str, *, default_epochs: int | None = None) -> FitSettings:
        """The run's fit settings with the overrides of ``stage``."""
        epochs = self.settings.epochs if default_epochs is None else default_epochs
        return FitSettings(**{**self.settings.model_dump(), "epochs": epochs, **self.stages.get(stage, {})})

    def _key(self, stage: str, settings: FitSettings, **more: str) -> str:
        return stage_key(
            stage, self.splits["train"].fingerprint, self.task.n_classes, self.net, settings, self.seed, more
        )

    def shared(self, name: str, epochs: int | None, *, settings: str | None = None, **more: str) -> Stage:
        """A stage that every run with the same content shares, in the cache."""
        chosen = self.settings_of(settings or name, default_epochs=epochs)
        key = self._key(name, chosen, **more)
        return Stage(name, chosen, self.seed, key, None if self.cache is None else self.cache / key)

    def _new_history(self, epochs: int) -> History:
        return History(
            self.splits,
            self.task.n_classes,
            epochs=epochs,
            batch_size=self.settings.batch_size,
            best=BestWeights(self.directory, hold=self.hold),
            uncertainty={"val": self.val_uncertainty, "test": self.test_uncertainty},
            on_epoch=self.on_epoch,
        )

    def _fresh_net(self, stage: str, purpose: str = "init") -> Net:
        with torch_stream(self.seed, stage, purpose):
            return self.net.build(self.example, self.task.n_classes).to(self.device)

    def _run(
        self, stage: Stage, net: Net, objective: Objective, sampler: Sampler, observer: Observer, step: Step = descend
    ) -> None:
        check_given(objective, groups=self.groups, weights=self.splits["train"].weight is not None)
        if stage.name in self.reports:
            raise ValueError(f"Every fit of a run needs a stage of its own, got {stage.name!r} twice.")
        self.reports[stage.name] = fit(
            stage,
            net,
            self.splits["train"],
            objective,
            n_groups=len(self.task.training_groups),
            sampler=sampler,
            step=step,
            observer=observer,
            log=self.logs[stage.name],
            engine=self.engine,
            progress=self.progress,
        )
