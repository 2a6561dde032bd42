"""Importance weights from uncertainty (UMIX Algorithm 2), for UMIX and methods that build on it."""

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, final

import torch
from pydantic import Field
from torch import Tensor

from umix.core.weight_choice import early_epochs
from umix.core.weights import class_means, importance_weights, normalized, uncertainty
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.parts.automatic import ETAS, Pool, settle
from umix.methods.parts.weight_warnings import warn_about
from umix.settings import among
from umix.training.evaluate import correctness
from umix.training.history import HeldOutUncertainty
from umix.training.objective import Objective
from umix.training.stage import ErmStage
from umix.training.stage_key import recorded_splits
from umix.training.trainer import Trainer

Eta = Annotated[float, Field(ge=0)] | Literal["auto"]
Length = Annotated[int, Field(ge=1)] | Literal["auto"]
LENGTH = "epochs in the window, or models in the ensemble (the paper's T); auto: until ERM has learned half"


class UncertaintyWeights(Method, abc.ABC):
    """A method that weighs training examples by eta·u + c, where u is how often ERM gets them wrong."""

    takes_weights: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = ("trajectory", "ensemble")

    eta: Eta  # every method gives its own default and search range
    c: float = Field(1.0, gt=0, description="weight of an example that was never wrong")
    normalize: bool = Field(True, description="scale the weights to mean 1; the paper applies them as they are")
    pool: Literal["example", "class", "auto"] = Field(
        "example", description="whose uncertainty an example weighs by: its own, or the mean of its class"
    )
    budget: float = Field(0.05, ge=0, le=1, description="with auto: how far validation accuracy may fall below ERM's")
    uncertainty: Literal["trajectory", "ensemble"] = Field(
        "trajectory",
        description="share of epochs of one ERM fit, or of independent ERM fits, that get an example wrong",
    )
    start: int = Field(
        0, ge=0, description="first epoch of the window, counted from 0 (the paper's T_s); an ensemble has none"
    )
    length: Annotated[Length, among(5, 10, 20)] = Field(10, description=LENGTH)
    record: Literal["online", "epoch_end"] = Field(
        "online", description="predictions of the training pass, or of a clean pass after it; an ensemble's are clean"
    )

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        if self.uncertainty == "ensemble":
            if self.length == "auto":
                raise UserError("length must be a number of models where uncertainty=ensemble, got 'auto'.")
            return ensemble_members(self.length, epochs)
        recorded = epochs if self.length == "auto" else self.start + self.length
        return (ErmStage("trajectory", recorded, record=self.record),)

    def measure(self, trainer: Trainer) -> "Measured":
        """The uncertainty of all examples, measured by ERM fits (eq. 6)."""
        stages = self.erm_stages(trainer.settings.epochs)
        if self.uncertainty == "ensemble":
            return ensemble_uncertainty(trainer, stages)
        trajectory, length = trainer.trajectory(stages[0]), self.length
        if length == "auto":
            length = early_epochs(trajectory.rates()[self.start :])
            trainer.decisions |= {"start": self.start, "length": length}
        return Measured(
            train=trajectory.uncertainty(start=self.start, length=length),
            val=trajectory.val_uncertainty(start=self.start, length=length),
            best_val=max(trajectory.val_rates()),
            test=trajectory.test_uncertainty(start=self.start, length=length),
        )

    def settled(
        self, measured: "Measured", trainer: Trainer, objective: Callable[[Tensor], Objective]
    ) -> tuple[float, Pool]:
        """The eta and pool to use: as set, or chosen by trials on validation if one of them is ``auto``."""
        if self.eta != "auto" and self.pool != "auto":
            return self.eta, self.pool
        return settle(
            lambda eta, pool: objective(self.weigh(measured.train, trainer, eta=eta, pool=pool)),
            trainer,
            uncertainty=measured.val,
            baseline=measured.best_val,
            budget=self.budget if self.eta == "auto" else 1.0,  # a given eta is kept, whatever it costs
            etas=ETAS if self.eta == "auto" else (self.eta,),
            pools=("example", "class") if self.pool == "auto" else (self.pool,),
            content=self.model_dump_json(exclude={"eta", "pool", "budget"}),
        )

    def weigh(self, u: Tensor, trainer: Trainer, *, eta: float, pool: Pool) -> Tensor:
        """The weight of every training example, [n], on the trainer's device (eq. 7)."""
        train = trainer.task.splits["train"]
        pooled = class_means(u, train.y, by=train.weight) if pool == "class" else u
        w = importance_weights(pooled, eta=eta, c=self.c)
        return (normalized(w, by=train.weight) if self.normalize else w).to(trainer.device)

    def weigh_examples(self, trainer: Trainer, objective: Callable[[Tensor], Objective]) -> "Weighed":
        """The weights of all training examples, which are also saved with the run (Algorithm 2).

        ``objective`` is what the method minimises with given weights; trials of eta and pool need
        it.
        """
        measured = self.measure(trainer)
        eta, pool = self.settled(measured, trainer, objective)
        w = self.weigh(measured.train, trainer, eta=eta, pool=pool)
        trainer.keep(uncertainty=measured.train, weight=w)
        warn_about(w.cpu(), trainer, u=measured.train)
        return Weighed(w, HeldOutUncertainty(measured.val, measured.test))


@final
@dataclass(frozen=True, eq=False)
class Weighed:
    """The weights of the training examples, [n], on the trainer's device, and the uncertainty of the held-out examples."""

    weights: Tensor
    held_out: HeldOutUncertainty


@final
@dataclass(frozen=True, eq=False)
class Measured:
    """The first stage's uncertainty of training [n] and validation [n_val] examples, and its best validation accuracy.

    ``test`` [n_test] is for reports. It is None where the task has groups.
    """

    train: Tensor
    val: Tensor
    best_val: float
    test: Tensor | None = None


def ensemble_members(size: int, epochs: int) -> tuple[ErmStage, ...]:
    """The stages ``member-0``, ``member-1``, … of an ensemble of ``size`` ERM models, all with the settings of ``ensemble``."""
    return tuple(ErmStage(f"member-{member}", epochs, settings="ensemble") for member in range(size))


def ensemble_uncertainty(trainer: Trainer, members: Sequence[ErmStage]) -> Measured:
    """Share of the ``members`` that misclassify each example (UMIX, appendix on the simulated data set).

    Every member is an ERM model with an initialisation and an order of its own.
    """
    correct: dict[str, list[Tensor]] = {split: [] for split in ("train", *recorded_splits(trainer.task))}
    for member in members:
        net = trainer.engine.shared(trainer.reference(member))
        for split, rows in correct.items():
            rows.append(correctness(net, trainer.splits[split], batch_size=trainer.settings.batch_size))
    u = {
        split: uncertainty(torch.stack(rows, dim=1), start=0, length=len(members)).cpu()
        for split, rows in correct.items()
    }
    best_val = 1 - float(u["val"].mean())
    return Measured(train=u["train"], val=u["val"], best_val=best_val, test=u.get("test"))
