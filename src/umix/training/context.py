"""What a method may use: the task, the net, the settings and the seed, with which it asks for fits and trajectories."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast, final

import numpy as np
import torch
from torch import Tensor

from umix.checkpoint_pace import USUAL, CheckpointPace
from umix.core.epoch_counts import Counts
from umix.core.evaluation import Evaluation, UseGroups
from umix.core.selection import Threshold
from umix.core.streams import torch_stream
from umix.data.loader import batches
from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.models.model import Encoder, Model, ModelSettings, require_memory_for
from umix.run_folder import trajectory_path
from umix.store import locked
from umix.training.best_weights import BestWeights
from umix.training.engine import Engine
from umix.training.evaluate import outputs
from umix.training.fit import fit
from umix.training.fit_job import FitJob
from umix.training.fit_settings import FitSettings
from umix.training.history import HeldOutUncertainty, History, fit_warnings
from umix.training.last_layer import LastLayer
from umix.training.loop import Step, descend
from umix.training.objective import MeanRisk, Objective, State, check_given
from umix.training.progress import Observer, Progress, Silent, Unobserved
from umix.training.recorder import reference_hits, trajectory_of
from umix.training.stage import (
    FINAL,
    ErmStage,
    Journal,
    Stage,
    StageInputs,
    erm_fit,
    require_epochs,
    stage_key,
)
from umix.training.train_result import Notes, TrainResult
from umix.training.trajectory import Trajectory

_ENCODER_ROWS = 2**16  # so many training rows, evenly spaced, decide scales well enough
WEIGHTS_ALONE = {"words": "the weights of examples are used, but nothing is mixed: that needs a net"}


@final
@dataclass(frozen=True, eq=False)
class Context:
    """Runs the fits of one run, and returns what they made. Nothing in it changes but the ``journal`` of its own fits.

    ``stages`` overrides the fit settings of named stages. With ``directory`` a killed run is
    resumed from its last checkpoint; ``pace`` says how often one is written. With ``cache`` ERM
    stages are shared by all runs with the same data, net, settings and seed. ``groups`` says
    whether the method may see training groups, ``use_groups`` the known groups of which splits may
    be used at all, ``evaluation`` which groups count when an epoch is selected.
    ``on_epoch(epoch, val)`` is called with the validation counts after every epoch of the final
    fit, and may raise; epochs that a resumed run repeats come again.
    """

    task: Task
    net: ModelSettings
    settings: FitSettings = field(default_factory=FitSettings)
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = 0
    groups: bool = False
    use_groups: UseGroups = "train"
    directory: Path | None = None
    cache: Path | None = None
    evaluation: Evaluation = field(default_factory=Evaluation)
    threshold: Threshold = "tuned"  # whether candidates are judged with a threshold that suits each, or by argmax
    only_weigh: bool = (
        False  # whether the final fit is left out, because only what the method keeps of each example is wanted
    )
    hold: bool = False  # whether to keep the weights of the best epochs in memory: result.history.best.held
    engine: Engine = field(default_factory=Engine)
    progress: Progress = field(default_factory=Silent)
    pace: CheckpointPace = USUAL
    on_epoch: Callable[[int, Counts], None] | None = None
    splits: Mapping[str, Split] = field(default_factory=dict)  # those of the task, on the device, unless they are given
    journal: Journal = field(default_factory=Journal)

    def __post_init__(self) -> None:
        if self.engine.processes > 1 and "gradients" not in self.net.offers:
            raise UserError(
                f"{self.net.name} must be trained in one process, got {self.engine.processes} devices; take one."
            )
        require_memory_for(self.net, self.example, self.task.n_classes)
        if not self.splits:
            on_device = {name: split.to(self.device) for name, split in self.task.splits.items()}
            object.__setattr__(self, "splits", on_device)

    def scratch(self) -> "Context":
        """The context of a trial: it shares stages with other runs, but has no folder and a journal of its own.

        A trial that is worth it is trained again as the run itself.
        """
        return replace(self, directory=None, hold=False, on_epoch=None, journal=Journal())

    def evaluated_by(self, evaluation: Evaluation) -> "Context":
        """This context with another rule of which groups and epochs count."""
        return replace(self, evaluation=evaluation)

    def with_validation(self, val: Split) -> "Context":
        """This context with the examples or groups of ``val`` for every choice; the task keeps its own."""
        return replace(self, splits={**self.splits, "val": val})

    @property
    def device(self) -> torch.device:
        """Where nets are trained."""
        return self.engine.device

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
    ) -> TrainResult:
        """A new net trained to minimise ``objective``, with hits on val and test counted after every epoch.

        With ``companion`` the net gets a second net of the same architecture, trained by the same
        optimiser. ``uncertainty`` lets the counts be split by how uncertain an earlier stage was of
        each example. ``content`` names the objective where a resumed run may choose another: then the fit starts again. A context
        that shall ``only_weigh`` trains nothing here.
        """
        net = self.fresh_net(FINAL)
        if companion:
            net.companion = self.fresh_net(FINAL, "companion")
        history = self.new_history(self.final_settings.epochs, uncertainty=uncertainty)
        result = self.final_fit(net, objective, self.final_settings, history, sampler, step, content=content)
        if objective.mixes and "mixing" not in self.net.offers and not self.only_weigh:
            return result.after(Notes(choices={"mixing": WEIGHTS_ALONE}))
        return result

    def final_fit(
        self,
        net: Model,
        objective: Objective,
        settings: FitSettings,
        history: History,
        sampler: Sampler | None,
        step: Step = descend,
        train: Split | None = None,
        content: str = "",
    ) -> TrainResult:
        """``net``, trained while ``history`` counts; nothing is trained where examples are only weighed."""
        if self.only_weigh:
            return TrainResult(net, history)
        key = self.key(FINAL, settings, **({"objective": content} if content else {}))
        stage = Stage(FINAL, settings, self.seed, key, self.directory)
        logged = objective.logging_lambda(self.journal.logs[FINAL].see_lambda)
        self.run_fit(stage, net, logged, sampler or Shuffled(), history, step=step, train=train)
        return TrainResult(net, history, Notes(warnings=fit_warnings(net, history.counts("val"))))

    def adopt(self, net: Model, *, val: Split | None = None) -> TrainResult:
        """The result whose net no final fit has trained: hits on val and test are counted once.

        ``val`` replaces the validation split, for methods that have used a part of it for training.
        """
        history = self.new_history(1, val=val)
        history.observe(self.engine.shared(net), 0)
        return TrainResult(net, history, Notes(warnings=fit_warnings(net, history.counts("val"))))

    def reference(self, stage: ErmStage) -> Model:
        """The model at the end of ``stage``."""
        return self.fitted_reference(self._erm_fit(stage))

    def fitted_reference(self, stage: Stage) -> Model:
        """The model at the end of ``stage``, an ERM fit with its key."""
        model = self.fresh_net(stage.name)
        with locked(stage.directory):
            self.run_fit(stage, model, MeanRisk(), Shuffled(), Unobserved())
        return model

    def reference_hits(self, stage: ErmStage, splits: tuple[str, ...]) -> dict[str, Tensor]:
        """Whether the net at the end of ``stage`` predicts each example correctly, bool [n] by split.

        An estimator is judged by models that have not seen the example.
        """
        return reference_hits(self.net, self, self._erm_fit(stage), splits)

    def trajectory(self, stage: ErmStage) -> Trajectory:
        """Train ``stage`` and return which examples were predicted correctly in which epoch (UMIX Algorithm 2).

        Validation examples are recorded too, and test examples where the task has no groups.
        """
        if stage.record is None:
            raise ValueError(f"A stage without a record must be trained by context.reference, got {stage}.")
        shared = self._erm_fit(stage)
        require_epochs(shared, stage.epochs)
        trajectory = trajectory_of(self.net, self, shared, record=stage.record)
        if self.directory is not None:
            trajectory.save(trajectory_path(self.directory, stage.name))
        return trajectory

    def can_train(self, objective: Objective) -> bool:
        """Whether the model can minimise ``objective``: by gradient steps, or because weights of examples are all there is."""
        return "gradients" in self.net.offers or objective.example_weights is not None

    def logits(self, net: Model, split: str | Split) -> Tensor:
        """Logits of ``net`` on every example of the split, [n, classes]; the split may be given by its name."""
        return self._outputs(net, split)

    def features(self, net: Model, split: str | Split) -> Tensor:
        """Features of ``net`` on every example of the split, [n, width]; the split may be given by its name."""
        return self._outputs(net, split, features=True)

    def _outputs(self, net: Model, split: str | Split, *, features: bool = False) -> Tensor:
        examples = self.splits[split] if isinstance(split, str) else split
        return outputs(self.engine.shared(net), examples, batch_size=self.settings.batch_size, features=features)

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
            evaluation=self.evaluation,
            last_layer=last_layer,
            on_epoch=self.on_epoch,
        )

    def fresh_net(self, stage: str = FINAL, purpose: str = "init", *, n_classes: int | None = None) -> Model:
        """A new net, initialised for ``stage``; that of the final fit is the same for all methods."""
        with torch_stream(self.seed, stage, purpose):
            net = self.net.build(self.example, self.task.n_classes if n_classes is None else n_classes)
        if net.encoder is not None:
            net.encoder.load_state_dict(self._encoder_state)
        return net.to(self.device)

    @cached_property
    def _encoder_state(self) -> dict[str, Tensor]:
        """The encoder of a net that has one, fitted to training inputs: all nets of a run have the same."""
        with torch_stream(self.seed, "encoder", "init"):
            encoder = cast(Encoder, self.net.build(self.example, self.task.n_classes).encoder)
        train = self.task.splits["train"]
        index = torch.from_numpy(np.linspace(0, len(train) - 1, min(len(train), _ENCODER_ROWS)).round()).long()
        (batch,) = batches(train, index, batch_size=len(index))
        encoder.fit(batch.x)
        return encoder.state_dict()

    def run_fit(
        self,
        stage: Stage,
        net: Model,
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
        self.require_new(stage.name)
        job = FitJob(
            stage=stage,
            train=split,
            objective=objective,
            n_groups=len(self.task.training_groups),
            sampler=sampler,
            step=step,
            observer=observer,
            log=self.journal.logs[stage.name],
            engine=self.engine,
            progress=self.progress,
            pace=self.pace,
        )
        self.journal.reports[stage.name], state = fit(net, job)
        return state

    def require_new(self, stage: str) -> None:
        """Raise where this run has had a fit of that name."""
        if stage in self.journal.reports:
            raise ValueError(f"Every fit of a run needs a stage of its own, got {stage!r} twice.")
