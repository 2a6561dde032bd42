"""The engine of a run, from the user's settings or from torchrun's environment variables."""

import os

import torch

from umix.errors import Setting, UserError, unknown
from umix.limits import MOST_MACHINES, require_count, require_processes
from umix.training.engine import Engine

STRATEGIES = ("ddp",)


def engine_for(*, devices: int | None = None, nodes: int | None = None, strategy: str | None = None) -> Engine:
    """An engine with ``devices`` on each of ``nodes`` machines.

    Both default to 1, or to what torchrun has started.
    """
    if strategy is not None and strategy not in STRATEGIES:
        raise unknown("strategy", strategy, STRATEGIES)
    if devices is not None:
        require_processes("devices", devices)
    if nodes is not None:
        require_count("nodes", nodes, most=MOST_MACHINES)
    if "LOCAL_WORLD_SIZE" in os.environ and "RANK" in os.environ:
        return _checked(_under_torchrun(devices, nodes))
    engine = Engine(devices=devices or 1, nodes=nodes or 1)
    if engine.nodes > 1 and not {"MASTER_ADDR", "MASTER_PORT", "NODE_RANK"} <= os.environ.keys():
        raise UserError(
            Setting("nodes", f"{nodes}"),
            " must be started by torchrun on every machine, or with MASTER_ADDR, MASTER_PORT and NODE_RANK set "
            "there; at least one of them is not set here.",
        )
    return _checked(engine)


def _under_torchrun(devices: int | None, nodes: int | None) -> Engine:
    local = int(os.environ["LOCAL_WORLD_SIZE"])
    machines = int(os.environ["WORLD_SIZE"]) // local
    if devices not in (None, local) or nodes not in (None, machines):
        raise UserError(
            Setting("devices"),
            " and ",
            Setting("nodes"),
            f" must be what torchrun has started ({local} and {machines}), got {devices or local} and "
            f"{nodes or machines}; leave them out under torchrun.",
        )
    return Engine(devices=local, nodes=machines)


def _checked(engine: Engine) -> Engine:
    """``engine``; raises if this machine has fewer devices."""
    available = torch.cuda.device_count() if engine.kind == "cuda" else 1 if engine.kind == "mps" else engine.devices
    if engine.devices > available:
        raise UserError(
            Setting("devices"), f" must be at most the {available} of kind {engine.kind} here, got {engine.devices}."
        )
    return engine
