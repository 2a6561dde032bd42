"""torch's optimisers without what they do for torch.compile and the profiler.

torch wraps their methods for both. The wrappers take a sixth of the time of a small net's step, and the first of them that is
called imports torch's compiler: 800 modules, up to a second. umix compiles no optimiser, so it calls the methods themselves.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

_WRAPPED = ("add_param_group", "state_dict", "load_state_dict")


@cache
def plain(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """A class of optimisers like ``kind``, to the last bit; hooks of its steps are not called."""
    bare = inspect.unwrap(kind.step)

    @torch.no_grad()
    def step(self: torch.optim.Optimizer, closure: Callable[[], float] | None = None) -> Any:
        return bare(self, closure)

    step.hooked = True  # type: ignore[attr-defined]  # or torch would wrap it again
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in _WRAPPED}
    return type(kind.__name__, (kind,), {**methods, "step": step})
