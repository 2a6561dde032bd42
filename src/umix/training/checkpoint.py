"""Checkpoints: the state of a fit after an epoch, in one file that is written atomically."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, final

import torch
from torch import Tensor

from umix.errors import UserError
from umix.models.model import Model
from umix.store import read_tensors, reading, write_tensors
from umix.training.engine import Engine
from umix.training.objective import State

SELECTION = "selection/"  # how the names of what a selection has observed begin


@final
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The number of finished epochs, the objective's state and the history.

    Net and optimiser are restored in place.
    """

    epochs: int
    state: State
    history: dict[str, Tensor]


def save_checkpoint(
    path: Path, *, fit: str, checkpoint: Checkpoint, net: Model, optimizer: torch.optim.Optimizer
) -> None:
    """Write everything that is needed to resume ``fit`` after ``checkpoint.epochs`` epochs."""
    states, numbers = _split_optimizer(optimizer.state_dict())
    tensors = {f"net/{name}": tensor for name, tensor in net.state_dict().items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in states.items()}
    tensors |= {f"state/{name}": tensor for name, tensor in checkpoint.state.items()}
    tensors |= {f"history/{name}": tensor for name, tensor in checkpoint.history.items()}
    # safetensors takes contiguous tensors only; others are copied.
    whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    metadata = {"kind": "checkpoint", "fit": fit, "epochs": str(checkpoint.epochs), "optimizer": json.dumps(numbers)}
    write_tensors(path, whole, metadata)


def load_checkpoint(
    path: Path, *, fit: str, net: Model, optimizer: torch.optim.Optimizer, restore: Callable[[Checkpoint], None]
) -> Checkpoint:
    """The checkpoint of ``fit`` at ``path``, restored into ``net``, ``optimizer`` and whatever ``restore`` restores."""
    epochs, parts, metadata = read_checkpoint(path, fit=fit)
    device = next(net.parameters()).device
    with reading(path, "checkpoint"):
        joined = _join_optimizer(parts["optimizer"], metadata, optimizer)
        state = {name: tensor.to(device) for name, tensor in parts["state"].items()}
        checkpoint = Checkpoint(epochs, state, parts["history"])
        restore(checkpoint)
        net.load_state_dict(parts["net"])
        optimizer.load_state_dict(joined)
    return checkpoint


def read_checkpoint(path: Path, *, fit: str) -> tuple[int, dict[str, dict[str, Tensor]], dict[str, str]]:
    """How many epochs the checkpoint of ``fit`` at ``path`` has, its tensors by part, and its metadata."""
    tensors, metadata = read_tensors(path, kind="checkpoint")
    if metadata["fit"] != fit:
        raise UserError(
            f"{path} must belong to the fit {fit}, got a checkpoint of {metadata['fit']}; delete it to start this fit again."
        )
    parts: dict[str, dict[str, Tensor]] = {"net": {}, "optimizer": {}, "state": {}, "history": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        parts[part][rest] = tensor
    return int(metadata["epochs"]), parts, metadata


def thin_checkpoint(source: Path, target: Path, *, fit: str, members: Sequence[int], of: int) -> None:
    """Write to ``target`` the checkpoint of a stack with those ``members`` only of the stack of size ``of`` at ``source``.

    It belongs to ``fit``, which goes on from there. Every tensor of a stack and of its optimiser has the net as its first axis,
    except for those of the encoder that members share; what was observed has it after the epoch.
    """
    tensors, metadata = read_tensors(source, kind="checkpoint")
    chosen = torch.tensor(list(members))
    kept: dict[str, Tensor] = {}
    for name, value in tensors.items():
        tensor = cast(Tensor, value)
        axis = 1 if name.startswith("history/") else 0
        shared = name.startswith(("state/", "net/encoder."))
        per_member = tensor.dim() > axis and tensor.shape[axis] == of and not shared
        is_stack = name.startswith(("net/", "optimizer/", f"history/{SELECTION}"))
        kept[name] = tensor.index_select(axis, chosen).contiguous() if per_member and is_stack else tensor
    write_tensors(target, kept, {**metadata, "fit": fit})


def share_checkpoint(
    checkpoint: Checkpoint | None, net: Model, optimizer: torch.optim.Optimizer, engine: Engine
) -> Checkpoint | None:
    """The checkpoint that the first process has ``found`` and restored.

    The other processes of ``engine`` restore it too.
    """
    if engine.processes == 1:
        return checkpoint
    whole = None
    if checkpoint is not None:
        whole = _on_host(
            (checkpoint.epochs, checkpoint.state, checkpoint.history, net.state_dict(), optimizer.state_dict())
        )
    whole = engine.from_first(whole)
    if whole is None or engine.first:
        return checkpoint
    epochs, state, history, of_net, of_optimizer = whole
    net.load_state_dict(of_net)
    optimizer.load_state_dict(of_optimizer)
    return Checkpoint(epochs, {name: tensor.to(engine.device) for name, tensor in state.items()}, history)


def _on_host(value: Any) -> Any:
    """``value`` with all of its tensors moved to the CPU, because processes have different devices."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: _on_host(part) for key, part in value.items()}
    return type(value)(_on_host(part) for part in value) if isinstance(value, list | tuple) else value


def _split_optimizer(state: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimiser's state as named tensors, and the numbers beside them as JSON; options are those of the fit."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, dict[str, Any]] = {}
    for parameter, values in state["state"].items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"{parameter}/{name}"] = value
            else:
                numbers.setdefault(str(parameter), {})[name] = value
    return tensors, numbers


def _join_optimizer(
    tensors: dict[str, Tensor], metadata: Mapping[str, str], optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """The state to load into ``optimizer``, whose own options stay."""
    numbers = json.loads(metadata["optimizer"])
    state: dict[int, dict[str, Any]] = {int(place): dict(values) for place, values in numbers.items()}
    for key, tensor in tensors.items():
        place, _, name = key.partition("/")
        state.setdefault(int(place), {})[name] = tensor
    return {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
