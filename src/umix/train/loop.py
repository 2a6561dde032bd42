"""The loop: every gradient step of umix is taken here."""

from collections.abc import Callable, Iterable

import numpy as np
import torch

from umix.data.batch import Batch
from umix.train.engine import Prepared
from umix.train.objective import Objective, State

_TICK = 64  # steps between two looks at the progress bar


def run_epoch(
    prepared: Prepared,
    batches: Iterable[Batch],
    objective: Objective,
    state: State,
    rng: np.random.Generator,
    *,
    lr_of: Callable[[int], float] | None = None,
    clip_norm: float | None = None,
    tick: Callable[[int], None] | None = None,
) -> State:
    """Train the net in place on one pass of ``batches`` and return the objective's state after it.

    ``lr_of(step)`` sets the learning rate of each step of this epoch where it is not constant. ``tick`` is told now and then how
    many steps were taken. Nothing here waits for the device.
    """
    net, optimizer, backward = prepared.net, prepared.optimizer, prepared.backward
    net.train()
    step = 0
    for step, batch in enumerate(batches, start=1):
        if lr_of is not None:
            for group in optimizer.param_groups:
                group["lr"] = lr_of(step - 1)
        risk, state = objective.risk(net, batch, state, rng)
        optimizer.zero_grad()
        backward(risk)
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip_norm)
        optimizer.step()
        if tick is not None and step % _TICK == 0:
            tick(_TICK)
    if tick is not None and step % _TICK:
        tick(step % _TICK)
    return state
