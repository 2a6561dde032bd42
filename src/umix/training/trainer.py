"""The trainer: knows the task, the net, the settings and the seed; methods ask it for fits and trajectories."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from umix.checkpoint_pace import USUAL, CheckpointPace
from umix.core.epoch_counts import Counts
from umix.core.judging import Judging, UseGroups
from umix.core.selection import Decide
from umix.core.streams import torch_stream
from umix.data.loader import batches
from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.nets.estimators.estimator import EstimatorSettings
from umix.nets.net import Encoder, Net, NetSettings, require_fitting_net
from umix.run_folder import EXAMPLES, trajectory_path
from umix.store import locked, write_tensors
from umix.training.best_weights import BestWeights
from umix.training.engine import Engine
from umix.training.evaluate import correctness, outputs
from umix.training.fit import fit
from umix.training.fit_settings import FitSettings
from umix.training.history import HeldOutUncertainty, History, fit_warnings
from umix.training.last_layer import LastLayer
from umix.training.loop import Step, descend
from umix.training.objective import MeanRisk, Objective, State, check_given
from umix.training.progress import EpochLog, Observer, Progress, Silent, Unobserved
from umix.training.recorder import Recorder, cross_fit
from umix.training.stage import (
    FINAL,
    ErmStage,
    Stage,
    StageInputs,
    StageReport,
    erm_fit,
    recorded_splits,
    require_epochs,
    stage_key,
)
from umix.training.trajectory import Trajectory

_ENCODER_ROWS = 2**16  # so many training rows, evenly spaced, decide scales well enough
NOTHING_MIXED = {"words": "nothing is mixed: an estimator is fitted to rows as they are, so examples are only weighted"}


@final
@dataclass(eq=False)
class Trainer:
    """Runs the fits of one run.

    ``stages`` overrides the fit settings of named stages. With ``directory`` a killed run is
    resumed from its last checkpoint; ``pace`` says how often one is written. With ``cache`` ERM
    stages are shared by all runs with the same data, net, settings and seed. ``groups`` says
    whether the method may see training groups, ``use_groups`` the known groups of which splits may
    be used at all, ``judging`` which groups count when an epoch is selected.
    ``on_epoch(epoch, val)`` is called with the validation counts after every epoch of the final
    fit, and may raise; epochs that a resumed run repeats come again.
    """

    task: Task
    net: NetSettings
    settings: FitSettings = field(default_factory=FitSettings)
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = 0
    groups: bool = False
    use_groups: UseGroups = "train"
    directory: Path | None = None
    cache: Path | None = None
    judging: Judging = field(default_factory=Judging)
    decide: Decide = "biases"  # whether a contest may choose a decision for every candidate, or judges them by argmax
    only_weigh: bool = (
        False  # whether the final fit is left out, because only what the method keeps of each example is wanted
    )
    hold: bool = False  # whether to keep the weights of the best epochs in memory: history.best.held
    engine: Engine = field(default_factory=Engine)
    progress: Progress = field(default_factory=Silent)
    pace: CheckpointPace = USUAL
    on_epoch: Callable[[int, Counts], None] | None = None
    splits: Mapping[str, Split] = field(default_factory=dict)  # those of the task, on the device, unless they are given
    reports: dict[str, StageReport] = field(default_factory=dict, init=False)
    logs: dict[str, EpochLog] = field(default_factory=lambda: defaultdict(EpochLog), init=False)
    warnings: list[str] = field(default_factory=list, init=False)
    kept: dict[str, Tensor] = field(default_factory=dict, init=False)
    decisions: dict[str, Any] = field(default_factory=dict, init=False)  # the values chosen for settings that were auto
    trained_with: str = field(
        default="", init=False
    )  # whose groups the final fit trains with, where the method leaves it open
    _encoder: dict[str, Tensor] | None = field(default=None, init=False)  # the fitted encoder of nets that have one

    def __post_init__(self) -> None:
        self.device = self.engine.device
        if self.engine.processes > 1 and not self.net.by_gradients:
            raise UserError(
                f"{self.net.name} must be trained in one process, got {self.engine.processes} devices; take one."
            )
        require_fitting_net(self.net, self.example, self.task.n_classes)
        self.splits = self.splits or {name: split.to(self.device) for name, split in self.task.splits.items()}
        self.history = self.new_history(self.final_settings.epochs)

    def scratch(self) -> "Trainer":
        """A trainer for a trial: it shares stages with other runs, but has no folder, and nothing that it records is this run's.

        A trial that is worth it is trained again as the run itself.
        """
        return replace(self, directory=None, hold=False, on_epoch=None)

    @property
    def example(self) -> Tensor:
        """One training input, for its shape and type."""
        return self.task.splits["train"].example

    @property
    def final_settings(self) -> FitSettings:
        """The settings of the final fit; an estimator without stages has one epoch."""
        settings = self.settings.updated(self.stages.get(FINAL, {}))
        return settings if self.net.has_epochs else settings.updated({"epochs": 1})

    def fit(
        self,
        objective: Objective,
        *,
        sampler: Sampler | None = None,
        step: Step = descend,
        companion: bool = False,
        uncertainty: HeldOutUncertainty | None = None,
        content: str = "",
    ) -> Net:
        """A new net trained to minimise ``objective``, with hits on val and test counted after every epoch.

        With ``companion`` the net gets a second net of the same architecture, trained by the same
        optimiser. ``uncertainty`` lets the counts be split by how uncertain an earlier stage was of
        each example. ``content`` names the objective where a resumed run may choose another: then the fit starts again. A trainer
        that shall ``only_weigh`` trains nothing here.
        """
        settings = self.final_settings
        self.history = self.new_history(settings.epochs, uncertainty=uncertainty)
        net = self.fresh_net(FINAL)
        if companion:
            net.companion = self.fresh_net(FINAL, "companion")
        if objective.mixes and not self.net.by_gradients and not self.only_weigh:
            self.decisions["mixing"] = NOTHING_MIXED
        self.final_fit(net, objective, settings, sampler, step, content=content)
        return net

    def final_fit(
        self,
        net: Net,
        objective: Objective,
        settings: FitSettings,
        sampler: Sampler | None,
        step: Step = descend,
        train: Split | None = None,
        content: str = "",
    ) -> None:
        """Train ``net`` under the eyes of the run's history; nothing is trained where examples are only weighed."""
        if self.only_weigh:
            return
        key = self.key(FINAL, settings, **({"objective": content} if content else {}))
        stage = Stage(FINAL, settings, self.seed, key, self.directory)
        logged = objective.logging_lambda(self.logs[FINAL].see_lambda)
        self.run_fit(stage, net, logged, sampler or Shuffled(), self.history, step=step, train=train)
        self.warnings += fit_warnings(net, self.history.counts("val"))

    def adopt(self, net: Net, *, val: Split | None = None) -> Net:
        """Take ``net``, which no final fit has trained, as the result, and count its hits on val and test once.

        ``val`` replaces the validation split, for methods that have used a part of it for training.
        """
        self.history = self.new_history(1, val=val)
        self.history.observe(self.engine.shared(net), 0)
        self.warnings += fit_warnings(net, self.history.counts("val"))
        return net

    def reference(self, stage: ErmStage) -> Net:
        """The net at the end of ``stage``."""
        shared, net = self._erm_fit(stage), self.fresh_net(stage.name)
        with locked(shared.directory):
            self.run_fit(shared, net, MeanRisk(), Shuffled(), Unobserved())
        return net

    def reference_hits(self, stage: ErmStage, splits: tuple[str, ...]) -> dict[str, Tensor]:
        """Whether the net at the end of ``stage`` predicts each example correctly, bool [n] by split.

        An estimator is judged by models that have not seen the example.
        """
        if isinstance(self.net, EstimatorSettings):
            recorded = self._cross_fit(self._erm_fit(stage), self.net)
            parts = {"train": recorded, "val": recorded.val, "test": recorded.test}
            return {
                name: ~part.uncertainty(start=part.epochs - 1, length=1).bool()
                for name in splits
                if (part := parts[name])
            }
        net = self.engine.shared(self.reference(stage))
        size = self.settings.batch_size
        return {name: correctness(net, self.splits[name], batch_size=size) for name in splits}

    def trajectory(self, stage: ErmStage) -> Trajectory:
        """Train ``stage`` and return which examples were predicted correctly in which epoch (UMIX Algorithm 2).

        Validation examples are recorded too, and test examples where the task has no groups.
        """
        if stage.record is None:
            raise ValueError(f"A stage without a record must be trained by trainer.reference, got {stage}.")
        test = self.splits["test"] if "test" in recorded_splits(self.task) else None
        shared = self._erm_fit(stage)
        require_epochs(shared, stage.epochs)
        if isinstance(self.net, EstimatorSettings):
            return self._cross_fit(shared, self.net)
        net = self.fresh_net(stage.name)
        with locked(shared.directory):
            recorder = Recorder.open(
                shared, self.splits, record=stage.record, test=test, engine=self.engine, warn=self.progress.note
            )
            watch = recorder.trajectory.see if stage.record == "online" else None
            self.run_fit(shared, net, MeanRisk(watch), Shuffled(), recorder)
        if self.directory is not None:
            recorder.trajectory.save(trajectory_path(self.directory, stage.name))
        return recorder.trajectory

    def _cross_fit(self, stage: Stage, net: EstimatorSettings) -> Trajectory:
        self._require_new(stage.name)
        splits = {name: self.splits[name] for name in ("train", *recorded_splits(self.task))}
        with locked(stage.directory):
            trajectory, self.reports[stage.name] = cross_fit(
                stage, net, splits, n_classes=self.task.n_classes, progress=self.progress
            )
        if self.directory is not None:
            trajectory.save(trajectory_path(self.directory, stage.name))
        return trajectory

    def can_train(self, objective: Objective) -> bool:
        """Whether the learner can minimise ``objective``: a net can, an estimator if weights of examples are all there is."""
        return self.net.by_gradients or objective.example_weights is not None

    def logits(self, net: Net, split: str | Split) -> Tensor:
        """Logits of ``net`` on every example of the split, [n, classes]; the split may be given by its name."""
        return self._outputs(net, split)

    def features(self, net: Net, split: str | Split) -> Tensor:
        """Features of ``net`` on every example of the split, [n, width]; the split may be given by its name."""
        return self._outputs(net, split, features=True)

    def _outputs(self, net: Net, split: str | Split, *, features: bool = False) -> Tensor:
        given = self.splits[split] if isinstance(split, str) else split
        return outputs(self.engine.shared(net), given, batch_size=self.settings.batch_size, features=features)

    def keep(self, **per_example: Tensor) -> None:
        """Save what the method has computed for each training example, [n], in the run's folder, with the labels."""
        self.kept |= {name: tensor.cpu() for name, tensor in per_example.items()}
        if self.directory is not None:
            tensors = {**self.kept, "label": self.task.splits["train"].y}
            write_tensors(self.directory / EXAMPLES, tensors, {"kind": "examples"})

    def warn(self, message: str) -> None:
        """Add a warning to the run's record; every report of the run shows it."""
        self.warnings.append(message)

    def key(self, stage: str, settings: FitSettings, **more: str) -> str:
        """The key of a fit on the training split; ``more`` is what it depends on besides net, settings and seed."""
        train = self.task.splits["train"].fingerprint
        return stage_key(stage, train, self.task.n_classes, self.net, settings, self.seed, more)

    def _erm_fit(self, stage: ErmStage) -> Stage:
        inputs = StageInputs.of(self.task, self.net)
        return erm_fit(stage, inputs, self.settings, self.stages, seed=self.seed, cache=self.cache)

    def new_history(
        self,
        epochs: int,
        *,
        val: Split | None = None,
        uncertainty: HeldOutUncertainty | None = None,
        last_layer: LastLayer | None = None,
    ) -> History:
        """The observer of a final fit of so many ``epochs``; ``val`` replaces the validation split."""
        return History(
            self.splits if val is None else {**self.splits, "val": val},
            self.task.n_classes,
            epochs=epochs,
            batch_size=self.settings.batch_size,
            best=BestWeights(self.directory, hold=self.hold),
            uncertainty=uncertainty,
            judging=self.judging,
            last_layer=last_layer,
            on_epoch=self.on_epoch,
        )

    def fresh_net(self, stage: str = FINAL, purpose: str = "init", *, n_classes: int | None = None) -> Net:
        """A new net, initialised for ``stage``; that of the final fit is the same for all methods."""
        with torch_stream(self.seed, stage, purpose):
            net = self.net.build(self.example, self.task.n_classes if n_classes is None else n_classes)
        if net.encoder is not None:
            self._fit_encoder(net.encoder)
        return net.to(self.device)

    def _fit_encoder(self, encoder: Encoder) -> None:
        """Fit ``encoder`` to training inputs; the first of a run learns from them, and the others are copies of it."""
        if self._encoder is None:
            train = self.task.splits["train"]
            index = torch.from_numpy(np.linspace(0, len(train) - 1, min(len(train), _ENCODER_ROWS)).round()).long()
            (batch,) = batches(train, index, batch_size=len(index))
            encoder.fit(batch.x)
            self._encoder = encoder.state_dict()
        encoder.load_state_dict(self._encoder)

    def run_fit(
        self,
        stage: Stage,
        net: Net,
        objective: Objective,
        sampler: Sampler,
        observer: Observer,
        *,
        step: Step = descend,
        train: Split | None = None,
    ) -> State:
        """Train ``net`` on the training split, or on ``train``, and report on it; returns the last state of ``objective``."""
        split = self.splits["train"] if train is None else train
        check_given(objective, groups=self.groups, weights=split.weight is not None)
        self._require_new(stage.name)
        self.reports[stage.name], state = fit(
            stage,
            net,
            split,
            objective,
            n_groups=len(self.task.training_groups),
            sampler=sampler,
            step=step,
            observer=observer,
            log=self.logs[stage.name],
            engine=self.engine,
            progress=self.progress,
            pace=self.pace,
        )
        return state

    def _require_new(self, stage: str) -> None:
        if stage in self.reports:
            raise ValueError(f"Every fit of a run needs a stage of its own, got {stage!r} twice.")
