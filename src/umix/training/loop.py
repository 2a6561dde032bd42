"""The training loop: every gradient step of umix is taken here."""

from collections.abc import Callable, Iterable

import numpy as np
from torch import nn

from umix.data.batch import Batch
from umix.training.engine import Prepared
from umix.training.objective import Objective, State

TICK = 64  # steps between two updates of the progress bar

#: Takes one step on a batch and returns the objective's state after it; ``descend`` is the usual one.
Step = Callable[[Prepared, Objective, Batch, State, np.random.Generator, float | None], State]


def descend(
    prepared: Prepared,
    objective: Objective,
    batch: Batch,
    state: State,
    rng: np.random.Generator,
    clip_norm: float | None = None,
    clip: Callable[[Iterable[nn.Parameter], float], object] = nn.utils.clip_grad_norm_,
) -> State:
    """One step of the optimiser down the gradient of the batch's risk; ``clip`` limits the gradient to ``clip_norm``."""
    risk, state = objective.risk(prepared.net, batch, state, rng)
    # As zero_grad() does, without its hooks, which take 8 % of a small net's step.
    for group in prepared.optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None
    prepared.backward(risk)
    if clip_norm is not None:
        clip(prepared.net.parameters(), clip_norm)
    prepared.optimizer.step()
    return state


def run_epoch(
    prepared: Prepared,
    batches: Iterable[Batch],
    objective: Objective,
    state: State,
    rng: np.random.Generator,
    *,
    step: Step = descend,
    lr_at: Callable[[int], float] | None = None,
    clip_norm: float | None = None,
    tick: Callable[[int], None] | None = None,
) -> State:
    """Train the net in place on one pass of ``batches`` and return the objective's state after it.

    ``lr_at(step)`` is the learning rate if it is not constant. ``tick`` is called now and then with
    the number of steps taken since its last call. Nothing here waits for the device.
    """
    optimizer, reset_at = prepared.optimizer, objective.reset_at
    prepared.net.train()
    taken = 0
    for batch in batches:
        if lr_at is not None:
            for group in optimizer.param_groups:
                group["lr"] = lr_at(batch.step)
        if batch.step in reset_at:
            optimizer.state.clear()
        state = step(prepared, objective, batch, state, rng, clip_norm)
        taken += 1
        if taken == TICK:
            taken = 0
            if tick is not None:
                tick(TICK)
    if taken and tick is not None:
        tick(taken)
    return state
