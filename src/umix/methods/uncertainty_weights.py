"""Importance weights from uncertainty (UMIX Algorithm 2): the first stage that UMIX and its compositions share."""

import abc
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from umix.core.weights import importance_weights, normalized, uncertainty
from umix.methods.method import Method
from umix.methods.weight_warnings import warn_about
from umix.train.evaluate import correctness
from umix.train.trainer import Trainer


class UncertaintyWeights(Method, abc.ABC):
    """A method whose training examples weigh eta·u + c, where u is how often ERM gets them wrong."""

    stages: ClassVar[tuple[str, ...]] = ("trajectory", "ensemble")

    eta: float = Field(20.0, ge=0, description="how much an example's weight grows with its uncertainty")
    c: float = Field(1.0, gt=0, description="weight of an example that was never wrong")
    normalize: bool = Field(True, description="scale the weights to mean 1; the paper applies them as they are")
    uncertainty: Literal["trajectory", "ensemble"] = Field(
        "trajectory",
        description="share of epochs of one ERM fit, or of independent ERM fits, that get an example wrong",
    )
    start: int = Field(
        0, ge=0, description="first epoch of the window, counted from 0 (the paper's T_s); an ensemble has none"
    )
    length: int = Field(10, ge=1, description="epochs in the window, or models in the ensemble (the paper's T)")
    record: Literal["online", "epoch_end"] = Field(
        "online", description="predictions of the training pass, or of a clean pass after it; an ensemble's are clean"
    )

    @property
    def trajectory_epochs(self) -> int | None:
        return self.start + self.length if self.uncertainty == "trajectory" else None

    def weights(self, trainer: Trainer) -> Tensor:
        """The weight of every training example, [n], on the trainer's device; kept with the run (Algorithm 2)."""
        if self.uncertainty == "ensemble":
            u = ensemble_uncertainty(trainer, size=self.length)
        else:
            trajectory = trainer.trajectory(epochs=self.start + self.length, record=self.record)
            u = trajectory.uncertainty(start=self.start, length=self.length)  # eq. 6
            trainer.val_uncertainty = trajectory.val_uncertainty(start=self.start, length=self.length)
        w = importance_weights(u, eta=self.eta, c=self.c)  # eq. 7
        if self.normalize:
            w = normalized(w)
        trainer.keep(uncertainty=u, weight=w)
        warn_about(w, trainer, u=u)
        return w.to(trainer.device)


def ensemble_uncertainty(trainer: Trainer, *, size: int) -> Tensor:
    """Share of ``size`` ERM models, each with its own initialisation and order, that misclassify each training example, [n].

    Each is a stage ``member-i`` of its own, shared between runs like a trajectory; all have the fit settings of ``ensemble``
    (UMIX, appendix on the simulated data set).
    """
    correct: dict[str, list[Tensor]] = {"train": [], "val": []}
    for member in range(size):
        net = trainer.reference(stage=f"member-{member}", settings="ensemble")
        for split, rows in correct.items():
            rows.append(correctness(net, trainer.splits[split], batch_size=trainer.settings.batch_size))
    u, trainer.val_uncertainty = (
        uncertainty(torch.stack(rows, dim=1), start=0, length=size).cpu() for rows in correct.values()
    )
    return u
