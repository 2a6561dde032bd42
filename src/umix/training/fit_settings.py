"""The settings of one fit, and the optimiser and learning rates that they define."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Literal, final

import torch
from pydantic import Field
from torch import nn

from umix.settings import Settings

_WRAPPED = ("add_param_group", "state_dict", "load_state_dict")  # methods of optimisers


@final
class FitSettings(Settings):
    """Optimiser, learning rate, batches and epochs of one fit."""

    part: ClassVar[str] = "fit"

    epochs: int = Field(default=20, ge=1, description="passes over the training split")
    batch_size: int = Field(
        default=64, ge=1, le=10**9, description="examples per step; the last batch of an epoch may be smaller"
    )
    optimizer: Literal["sgd", "adam", "adamw"] = Field(
        default="sgd", description="sgd has momentum, adamw decoupled weight decay"
    )
    lr: float = Field(default=0.01, gt=0, description="learning rate, the highest one under a schedule")
    momentum: float = Field(default=0.9, ge=0, lt=1, description="momentum of sgd")
    weight_decay: float = Field(default=0.0, ge=0, description="weight decay")
    schedule: Literal["constant", "cosine"] = Field(
        default="constant", description="course of the learning rate over the fit"
    )
    clip_norm: float | None = Field(default=None, gt=0, description="longest gradient allowed, or none")
    precision: Literal["32-true", "bf16-mixed"] = Field(
        default="32-true", description="number format of the forward pass"
    )

    def updated(self, changes: Mapping[str, Any]) -> "FitSettings":
        """These settings with ``changes``, validated."""
        return FitSettings(**{**self.model_dump(), **changes})

    def make_optimizer(self, net: nn.Module) -> torch.optim.Optimizer:
        """A new optimiser for the trainable parameters of ``net``."""
        parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
        # A fused step is one kernel for all parameters: it saves up to a quarter of the time of a small net.
        fused = all(parameter.device.type in ("cpu", "cuda") for parameter in parameters)
        decay = self.weight_decay
        if self.optimizer == "sgd":
            sgd = _plain(torch.optim.SGD)
            return sgd(parameters, self.lr, momentum=self.momentum, weight_decay=decay, fused=fused)
        kind = _plain(torch.optim.Adam if self.optimizer == "adam" else torch.optim.AdamW)
        return kind(parameters, self.lr, weight_decay=decay, fused=fused)

    def lr_course(self, steps: int, lr_milestones: Sequence[tuple[int, float]] = ()) -> Callable[[int], float] | None:
        """The learning rate as a function of the step, for a fit of ``steps`` steps; None if it is constant.

        From the step of each pair of ``lr_milestones`` on, it is multiplied by the factor of the pair.
        Because it depends on the step only, a resumed fit needs no scheduler state.

        >>> FitSettings(lr=0.1, schedule="cosine").lr_course(steps=20)(10)  # halfway
        0.05
        """
        if lr_milestones:
            return lambda step: (
                self._scheduled(step, steps) * math.prod(factor for at, factor in lr_milestones if step >= at)
            )
        return None if self.schedule == "constant" else lambda step: self._scheduled(step, steps)

    def _scheduled(self, step: int, steps: int) -> float:
        """The learning rate of ``step`` by the schedule alone."""
        return self.lr if self.schedule == "constant" else self.lr * 0.5 * (1 + math.cos(math.pi * step / steps))


@cache
def _plain(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """A class of optimisers like ``kind``, to the last bit, without what torch does for torch.compile and the profiler.

    torch wraps their methods for both. The wrappers take a sixth of the time of a small net's step, and the first of them that is
    called imports torch's compiler: 800 modules, up to a second. umix compiles no optimiser, so it calls the methods themselves;
    hooks of its steps are not called.
    """
    bare = inspect.unwrap(kind.step)

    @torch.no_grad()
    def step(self: torch.optim.Optimizer, closure: Callable[[], float] | None = None) -> Any:
        return bare(self, closure)

    step.hooked = True  # type: ignore[attr-defined]  # or torch would wrap it again
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in _WRAPPED}
    return type(kind.__name__, (kind,), {**methods, "step": step})
