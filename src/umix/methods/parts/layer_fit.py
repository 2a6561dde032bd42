"""How methods train the last layer again: the settings of this fit, a fit that balances classes, and rows kept apart for it."""

import abc
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from umix.core.streams import stream
from umix.core.subsets import stratified_split
from umix.data.samplers import Balanced
from umix.data.task import Split
from umix.errors import UserError
from umix.methods.method import Method
from umix.models.model import Model
from umix.settings import between
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.history import HeldOutUncertainty
from umix.training.last_layer import fit_last_layer
from umix.training.objective import MeanRisk
from umix.training.train_result import Notes, TrainResult


class LayerFit(Method, abc.ABC):
    """A method that ends with a fit of the last layer alone, on features of mean 0 and deviation 1."""

    layer_lr: Annotated[float, between(0.001, 0.1, log=True)] = Field(
        0.01, gt=0, description="learning rate of the last layer"
    )
    layer_epochs: int = Field(30, ge=1, description="epochs of the last layer")

    def layer_settings(self, context: Context, **changes: Any) -> FitSettings:
        """The settings of the last layer's fit: sgd with momentum 0.9, the run's batches, and ``changes``.

        What users set for ``fit`` is about the net before.
        """
        options = {"epochs": self.layer_epochs, "lr": self.layer_lr, "batch_size": context.settings.batch_size}
        return FitSettings(**{**options, **changes})

    def fit_balanced(
        self,
        context: Context,
        net: Model,
        rows: Split,
        *,
        new: bool,
        val: Split,
        uncertainty: HeldOutUncertainty | None = None,
    ) -> TrainResult:
        """``net`` with its last layer trained on ``rows``, in batches in which all classes occur as often.

        The other arguments are those of ``fit_last_layer``.
        """
        settings, sampler = self.layer_settings(context), Balanced(rows.y)
        return fit_last_layer(
            context,
            net,
            rows,
            MeanRisk(),
            settings=settings,
            sampler=sampler,
            new=new,
            val=val,
            uncertainty=uncertainty,
        )


def divided(y: Tensor, *, share: float, seed: int, what: str) -> tuple[Tensor, Tensor]:
    """Rows of a random ``share`` of every class and all other rows, two int64; ``what`` names the division.

    A class of one example is in the first part only.
    """
    first, rest = stratified_split(y.cpu().numpy(), share=share, rng=stream(seed, what, "rows"))
    return torch.from_numpy(first).to(y.device), torch.from_numpy(rest).to(y.device)


def parts_of_validation(context: Context, share: float) -> tuple[Split, Split, Notes]:
    """A ``share`` of validation that is trained on, and the rest, which is for selection; and a note of classes that it lacks."""
    val = context.splits["val"]
    first, rest, notes = division_of_validation(context, share)
    return val.rows(first), val.rows(rest), notes


def division_of_validation(context: Context, share: float) -> tuple[Tensor, Tensor, Notes]:
    """The rows of both ``parts_of_validation``, two int64, and the note.

    All methods divide it alike. Raises if one part would be empty, or the first had one class only.
    """
    val = context.splits["val"]
    first, rest = divided(val.y, share=share, seed=context.seed, what="validation")
    if not len(rest):
        raise too_few_to_divide(val, "class")
    classes, there = context.task.classes, val.y[first].cpu().unique().tolist()
    if len(there) < 2:
        raise UserError(
            f"A last layer must be trained on two classes in validation, got only {classes[there[0]]}; add rows of others, or take "
            "a method that does not train on validation."
        )
    missing = [classes[label] for label in context.splits["train"].y.cpu().unique().tolist() if label not in there]
    lacks = f"Validation has no row of {', '.join(missing)}: the last layer is trained without it."
    return first, rest, Notes(warnings=(lacks,) if missing else ())


def too_few_to_divide(val: Split, unit: str) -> UserError:
    """The error for a validation split of which no class or group, the ``unit``, has an example left for selection."""
    return UserError(
        f"Validation must have two examples of a {unit}, one to train the last layer and one for selection, got {len(val)} "
        "examples in all; give it more, or take a method that does not train on validation."
    )
