"""Importance weights from uncertainty (UMIX Algorithm 2): the first stage that UMIX and its compositions share."""

import abc
from collections.abc import Callable
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
from umix.training.objective import Objective
from umix.training.trainer import Trainer

Eta = Annotated[float, Field(ge=0)] | Literal["auto"]
Length = Annotated[int, Field(ge=1)] | Literal["auto"]
LENGTH = "epochs in the window, or models in the ensemble (the paper's T); auto: until ERM has learned half"


class UncertaintyWeights(Method, abc.ABC):
    """A method whose training examples weigh eta·u + c, where u is how often ERM gets them wrong."""

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

    def first_stage(self, epochs: int) -> int | None:
        if self.uncertainty == "ensemble":
            return None
        return epochs if self.length == "auto" else self.start + self.length

    def measure(self, trainer: Trainer) -> "Measured":
        """The uncertainty of training and validation examples (eq. 6)."""
        if self.uncertainty == "ensemble":
            if self.length == "auto":
                raise UserError("length must be a number of models where uncertainty=ensemble, got 'auto'.")
            return ensemble_uncertainty(trainer, size=self.length)
        if self.length == "auto":
            trajectory = trainer.trajectory(epochs=trainer.settings.epochs, record=self.record)
            length = early_epochs(trajectory.rates()[self.start :])
            trainer.decisions |= {"start": self.start, "length": length}
        else:
            trajectory, length = trainer.trajectory(epochs=self.start + self.length, record=self.record), self.length
        return Measured(
            train=trajectory.uncertainty(start=self.start, length=length),
            val=trajectory.val_uncertainty(start=self.start, length=length),
            best_val=max(trajectory.val_rates()),
            test=trajectory.test_uncertainty(start=self.start, length=length),
        )

    def settled(
        self, measured: "Measured", trainer: Trainer, objective: Callable[[Tensor], Objective]
    ) -> tuple[float, Pool]:
        """The eta and pool to use: as given, or found by trials on validation where one of them is ``auto``."""
        if self.eta != "auto" and self.pool != "auto":
            return self.eta, self.pool
        return settle(
            lambda eta, pool: objective(self.weigh(measured.train, trainer, eta=eta, pool=pool)),
            trainer,
            uncertainty=measured.val,
            baseline=measured.best_val,
            budget=self.budget,
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

    def weights(self, trainer: Trainer, objective: Callable[[Tensor], Objective]) -> Tensor:
        """The weight of every training example, [n], on the trainer's device; kept with the run (Algorithm 2).

        ``objective`` is what the method minimises with given weights, for trials.
        """
        measured = self.measure(trainer)
        eta, pool = self.settled(measured, trainer, objective)
        w = self.weigh(measured.train, trainer, eta=eta, pool=pool)
        trainer.val_uncertainty, trainer.test_uncertainty = measured.val, measured.test
        trainer.keep(uncertainty=measured.train, weight=w)
        warn_about(w.cpu(), trainer, u=measured.train)
        return w


@final
@dataclass(frozen=True, eq=False)
class Measured:
    """What the first stage says: uncertainty of training [n] and validation [n_val] examples, its best validation accuracy.

    ``test`` [n_test] is for reports, and None where there are groups.
    """

    train: Tensor
    val: Tensor
    best_val: float
    test: Tensor | None = None


def ensemble_uncertainty(trainer: Trainer, *, size: int) -> Measured:
    """Share of ``size`` ERM models, each with its own initialisation and order, that misclassify each example.

    Each is a stage ``member-i`` of its own, shared between runs like a trajectory; all have the fit settings of ``ensemble``
    (UMIX, appendix on the simulated data set).
    """
    watched = ("train", "val") if trainer.task.groups else ("train", "val", "test")
    correct: dict[str, list[Tensor]] = {split: [] for split in watched}
    for member in range(size):
        net = trainer.engine.spread(trainer.reference(stage=f"member-{member}", settings="ensemble"))
        for split, rows in correct.items():
            rows.append(correctness(net, trainer.splits[split], batch_size=trainer.settings.batch_size))
    u = {split: uncertainty(torch.stack(rows, dim=1), start=0, length=size).cpu() for split, rows in correct.items()}
    best_val = 1 - float(u["val"].mean())
    return Measured(train=u["train"], val=u["val"], best_val=best_val, test=u.get("test"))
