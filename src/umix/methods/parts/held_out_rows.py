"""Rows that are kept apart to train a last layer: a random share of every class. Groups have no say."""

import torch
from torch import Tensor

from umix.core.streams import stream
from umix.core.subsets import stratified_split
from umix.data.task import Split
from umix.errors import UserError
from umix.training.trainer import Trainer


def divided(y: Tensor, *, share: float, seed: int, what: str) -> tuple[Tensor, Tensor]:
    """Rows of a random ``share`` of every class and all other rows, two int64; ``what`` names the division.

    A class of one example is in the first part only.
    """
    first, rest = stratified_split(y.cpu().numpy(), share=share, rng=stream(seed, what, "rows"))
    return torch.from_numpy(first).to(y.device), torch.from_numpy(rest).to(y.device)


def parts_of_validation(trainer: Trainer, share: float) -> tuple[Split, Split]:
    """A ``share`` of validation that is trained on, and the rest, which is for selection.

    All methods divide it alike. Raises if one part would be empty, or the first had one class only; warns of classes of training
    that it lacks.
    """
    val = trainer.splits["val"]
    first, rest = divided(val.y, share=share, seed=trainer.seed, what="validation")
    if not len(rest):
        raise too_few_to_divide(val, "class")
    held_out, classes = val.rows(first), trainer.task.classes
    there = held_out.y.cpu().unique().tolist()
    if len(there) < 2:
        raise UserError(
            f"A last layer must be trained on two classes in validation, got only {classes[there[0]]}; add rows of others, or take "
            "a method that does not train on validation."
        )
    missing = [classes[label] for label in trainer.splits["train"].y.cpu().unique().tolist() if label not in there]
    if missing:
        trainer.warn(f"Validation has no row of {', '.join(missing)}: the last layer is trained without it.")
    return held_out, val.rows(rest)


def too_few_to_divide(val: Split, unit: str) -> UserError:
    """The error for a validation split of which no class or group, the ``unit``, has an example left for selection."""
    return UserError(
        f"Validation must have two examples of a {unit}, one to train the last layer and one for selection, got {len(val)} "
        "examples in all; give it more, or take a method that does not train on validation."
    )
