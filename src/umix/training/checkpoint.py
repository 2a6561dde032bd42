"""Checkpoints: the state of a fit after an epoch, in one file that is written atomically."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, final

import torch
from torch import Tensor

from umix.array_layout import Array, misfit
from umix.errors import UserError
from umix.files import parsed, read_tensors, write_tensors
from umix.nets.net import Net
from umix.nets.stored_weights import layout_of, weights_misfit
from umix.training.engine import Engine
from umix.training.objective import State

_DIGITS = 12  # of a number in the metadata: more is no number of epochs
RACE = "race/"  # how the names of what a race has observed begin


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
    path: Path, *, fit: str, checkpoint: Checkpoint, net: Net, optimizer: torch.optim.Optimizer
) -> None:
    """Write everything that is needed to resume ``fit`` after ``checkpoint.epochs`` epochs."""
    states, settings = _split_optimizer(optimizer.state_dict())
    tensors = {f"net/{name}": tensor for name, tensor in net.state_dict().items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in states.items()}
    tensors |= {f"state/{name}": tensor for name, tensor in checkpoint.state.items()}
    tensors |= {f"history/{name}": tensor for name, tensor in checkpoint.history.items()}
    # safetensors takes contiguous tensors only; others are copied.
    whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    metadata = {"kind": "checkpoint", "fit": fit, "epochs": str(checkpoint.epochs), "optimizer": json.dumps(settings)}
    write_tensors(path, whole, metadata)


def load_checkpoint(
    path: Path,
    *,
    fit: str,
    net: Net,
    optimizer: torch.optim.Optimizer,
    state: State,
    restore: Callable[[Checkpoint], None],
) -> Checkpoint:
    """The checkpoint of ``fit`` at ``path``, restored into ``net`` and ``optimizer``.

    Raises UserError where a part of it does not fit, before anything is restored. ``state`` is that of the objective before the
    first batch. ``restore`` is given the checkpoint first, and raises where it does not fit what was observed.
    """
    epochs, parts, metadata = read_checkpoint(path, fit=fit)
    fault = weights_misfit(net, parts["net"]) or _state_misfit(state, parts["state"])
    if fault:
        raise UserError(f"{path} must fit the net and the objective of its fit, but {fault}; delete it.")
    joined = _join_optimizer(path, parts["optimizer"], metadata, optimizer)
    device = next(net.parameters()).device
    found = Checkpoint(epochs, {name: tensor.to(device) for name, tensor in parts["state"].items()}, parts["history"])
    restore(found)
    net.load_state_dict(parts["net"])
    optimizer.load_state_dict(joined)
    return found


def read_checkpoint(path: Path, *, fit: str) -> tuple[int, dict[str, dict[str, Tensor]], dict[str, str]]:
    """How many epochs the checkpoint of ``fit`` at ``path`` has, its tensors by part, and its metadata."""
    tensors, metadata = read_tensors(path, kind="checkpoint")
    if metadata.get("fit") != fit:
        raise UserError(
            f"{path} must belong to the fit {fit}, got a checkpoint of {metadata.get('fit')}; delete it to start this fit again."
        )
    parts: dict[str, dict[str, Tensor]] = {"net": {}, "optimizer": {}, "state": {}, "history": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        if part not in parts:
            raise UserError(f"{path} must hold the parts {', '.join(parts)}, got {name!r}; delete it.")
        parts[part][rest] = cast(Tensor, tensor)
    return whole_number(path, metadata, "epochs"), parts, metadata


def whole_number(path: Path, metadata: Mapping[str, str], name: str) -> int:
    """The number that the file at ``path`` says in its metadata; raises UserError where it says none."""
    text = metadata.get(name, "")
    if not text.isdecimal() or len(text) > _DIGITS:
        raise UserError(f"{path} must say its {name} as a whole number, got {text!r}; delete it.")
    return int(text)


def _state_misfit(initial: State, state: State) -> str:
    """Why ``state`` cannot be one that came of the ``initial`` one; empty if it can."""
    if extra := next((name for name in state if name not in initial), None):
        return f"the objective has no {extra!r}"
    layout = layout_of(initial)
    for name, tensor in initial.items():
        if layout[name].type == "whole" and tensor.numel() and tensor.min() < tensor.max():
            # Whole numbers that differ from the start are classes or places, and stay within their range.
            layout[name] = Array("whole", tuple(tensor.shape), low=int(tensor.min()), high=int(tensor.max()))
    return misfit(state, layout)


def thin_checkpoint(source: Path, target: Path, *, fit: str, members: Sequence[int], of: int) -> None:
    """Write to ``target`` the checkpoint of a fleet with those ``members`` only of the fleet of size ``of`` at ``source``.

    It belongs to ``fit``, which goes on from there. Every tensor of a fleet and of its optimiser has the member as its first axis,
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
        is_fleet = name.startswith(("net/", "optimizer/", f"history/{RACE}"))
        kept[name] = tensor.index_select(axis, chosen).contiguous() if per_member and is_fleet else tensor
    write_tensors(target, kept, {**metadata, "fit": fit})


def share_checkpoint(
    found: Checkpoint | None, net: Net, optimizer: torch.optim.Optimizer, engine: Engine
) -> Checkpoint | None:
    """The checkpoint that the first process has ``found`` and restored.

    The other processes of ``engine`` restore it too.
    """
    if engine.processes == 1:
        return found
    whole = None
    if found is not None:
        whole = _on_host((found.epochs, found.state, found.history, net.state_dict(), optimizer.state_dict()))
    whole = engine.from_first(whole)
    if whole is None or engine.first:
        return found
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
    """An optimiser's state as named tensors and JSON."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, dict[str, Any]] = {}
    for parameter, values in state["state"].items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"{parameter}/{name}"] = value
            else:
                numbers.setdefault(str(parameter), {})[name] = value
    # A parameter without gradients has no state, so it is said which have one.
    return tensors, {"param_groups": state["param_groups"], "numbers": numbers, "parameters": list(state["state"])}


def _join_optimizer(
    path: Path, tensors: dict[str, Tensor], metadata: Mapping[str, str], optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """The state to load into ``optimizer``, whose own options stay; raises UserError where it is none of this optimiser."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    kept = _kept_by(optimizer)
    try:
        settings = parsed(metadata.get("optimizer", ""))
        state: dict[int, dict[str, Any]] = {int(place): dict(of) for place, of in settings["numbers"].items()}
        for key, tensor in tensors.items():
            number, _, name = key.partition("/")
            state.setdefault(int(number), {})[name] = tensor
        shapes = {place: parameters[place].shape for place in state if place >= 0}
        fits = all(_is_like(kept, values, tuple(shapes[place])) for place, values in state.items())
        fits = fits and set(settings.get("parameters", state)) == set(state)
    except (ValueError, LookupError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise UserError(f"{path} must hold the state of {type(optimizer).__name__}, but it does not; delete it.")
    return {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}


def _kept_by(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What an optimiser of this kind keeps of a parameter after a step, by example of a parameter [1]."""
    parameter = torch.zeros(1, requires_grad=True)
    parameter.grad = torch.zeros(1)
    options = {name: value for name, value in optimizer.param_groups[0].items() if name != "params"}
    probe = type(optimizer)([{**options, "params": [parameter]}], lr=0.0)  # type: ignore[call-arg]
    probe.step()
    return dict(probe.state[parameter])


def _is_like(kept: Mapping[str, Any], values: Mapping[str, Any], shape: tuple[int, ...]) -> bool:
    """Whether ``values`` are what an optimiser keeps of a parameter of this ``shape``; ``kept`` are those of one of shape [1]."""
    tensors = {name: value for name, value in kept.items() if isinstance(value, Tensor)}
    layout = {name: Array("real", shape if value.dim() else ()) for name, value in tensors.items()}
    others = {name for name, value in values.items() if not isinstance(value, Tensor)}
    return set(values) == set(kept) and others == set(kept) - set(tensors) and not misfit(values, layout)
