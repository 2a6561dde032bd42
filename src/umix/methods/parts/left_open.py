"""Options of a method that are ``auto``: a contest of candidates on validation settles them."""

from collections.abc import Sequence
from typing import Literal

import torch

from umix.core.weight_choice import UNCERTAIN
from umix.methods.method import Method
from umix.methods.parts.contest import Candidate, Verdict, contest, limit_cost
from umix.training.trainer import Trainer
from umix.training.trajectory import Trajectory

Auto = Literal["auto"]


def settle(
    method: Method, trainer: Trainer, candidates: Sequence[Candidate], *, erm: Trajectory | None = None
) -> Candidate:
    """The candidate that wins on validation; the run keeps its settings, the reason and the standings.

    ``erm`` is the trajectory of an ERM fit. It says what a choice may cost on average, and where no groups may choose, which
    validation examples are uncertain. Without it known groups must choose. A single candidate wins without a race.
    """
    if len(candidates) == 1:
        return candidates[0]
    if erm is None:
        uncertain = torch.zeros(len(trainer.splits["val"]), dtype=torch.bool)
    else:
        limit_cost(trainer, max(erm.val_rates()))
        uncertain = erm.val_uncertainty(start=0, length=erm.epochs) >= UNCERTAIN
    open_options = {key.removeprefix(f"{method.name}.") for candidate in candidates for key in candidate.settings}
    verdict = contest(trainer, candidates, uncertain=uncertain, content=method.model_dump_json(exclude=open_options))
    return keep_verdict(method, trainer, verdict)


def keep_verdict(method: Method, trainer: Trainer, verdict: Verdict) -> Candidate:
    """The winner of ``verdict``; the run keeps what it has decided for the options of ``method``, the reason and the standings."""
    settings = {key.removeprefix(f"{method.name}."): value for key, value in verdict.winner.settings.items()}
    trainer.decisions |= settings | verdict.as_json()
    return verdict.winner
