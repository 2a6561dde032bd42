"""Methods on a device that has no float64, such as MPS: what needs it is computed on the host."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from umix.data.task import Split
from umix.methods.registry import method
from umix.training.context import Context
from umix.training.objective import Objective, State
from umix.training.train_result import TrainResult

Make = Callable[..., Context]
HOST, DEVICE = torch.device("cpu"), torch.device("meta")  # torch needs nothing installed for this one


class OnDevice(Tensor):
    """A tensor that seems to be on a device, where everything is possible but float64."""

    __torch_function__: ClassVar[Any] = torch._C._disabled_torch_function_impl
    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "OnDevice":
        if inner.dtype == torch.float64:
            raise TypeError("The device has no float64.")
        found: OnDevice = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=DEVICE)  # type: ignore[attr-defined]
        found.inner = inner
        return found

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"OnDevice({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return on_host(func, args, kwargs or {})


class WithDevice(TorchDispatchMode):
    """Inside the block, tensors can be made on the device and moved to it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return on_host(func, args, kwargs or {})


def on_host(func: Any, args: Any, kwargs: Any) -> Any:
    """What ``func`` returns, computed on the host; it is on the device if it is asked for there, or if an argument is."""
    given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, OnDevice)]
    device = kwargs.get("device")
    there = bool(given) if device is None else device == DEVICE
    kwargs = {**kwargs, "device": HOST} if device == DEVICE else kwargs
    args, kwargs = tree_map(lambda x: x.inner if isinstance(x, OnDevice) else x, (args, kwargs))
    found = func(*args, **kwargs)
    return tree_map(lambda x: OnDevice(x) if isinstance(x, Tensor) else x, found) if there else found


def on_device(splits: Mapping[str, Split]) -> dict[str, Split]:
    """``splits`` with inputs and labels on the device."""
    return {name: replace(split, x=OnDevice(split.x), y=OnDevice(split.y)) for name, split in splits.items()}


def test_the_device_has_no_float64() -> None:
    with pytest.raises(TypeError, match="no float64"):
        OnDevice(torch.ones(2)).double()
    assert OnDevice(torch.ones(2)).cpu().double().numpy().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("afr", {}),
        ("balanced_softmax", {}),
        ("cb_last_layer", {}),
        ("cnc", {}),
        ("crt", {}),
        ("dfr", {}),
        ("eiil", {}),
        ("evals", {}),
        ("focal", {"class_balance": "effective"}),
        ("george", {"by": "features"}),
        ("george", {"by": "hardness", "then": "umix"}),
        ("ldam", {}),
        ("logit_adjustment", {}),
        ("resample", {"by": "class"}),
        ("reweight", {"by": "class"}),
        ("self", {}),
        ("spare", {}),
        ("ula", {}),
        ("xrm", {}),
    ],
)
def test_weights_clusters_and_layers_are_computed_without_float64_on_the_device(
    context: Make, monkeypatch: pytest.MonkeyPatch, name: str, settings: dict[str, Any]
) -> None:
    def untrained(
        run: Context, stage: object, net: object, objective: Objective, *rest: object, **more: object
    ) -> State:
        return objective.init(4)

    run = context(only_weigh=True)
    run = replace(run, splits=on_device(run.splits))
    monkeypatch.setattr(Context, "run_fit", untrained)
    monkeypatch.setattr(Context, "adopt", lambda run, net, val=None: TrainResult(net, run.new_history(1, val=val)))
    with WithDevice():
        method(name, **settings).train(run)
