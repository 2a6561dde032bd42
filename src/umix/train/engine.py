"""Where and in which number format a fit runs. Devices and precision are Lightning Fabric's business.

Full precision on one device needs none of its wrappers, whose cost shows on small nets, so that case runs the bare net; Fabric,
which takes two seconds to import, is imported only where it does something.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, cast, final

import torch
from torch import Tensor

from umix.errors import UserError
from umix.nets.net import Net

_SMALL = 2**20  # parameters


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """A net and its optimiser, ready for the loop."""

    net: Net
    optimizer: torch.optim.Optimizer
    backward: Callable[[Tensor], None]


@final
@dataclass(frozen=True)
class Engine:
    """One device of the kind ``accelerator``; ``auto`` takes a GPU where there is one."""

    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"

    @property
    def device(self) -> torch.device:
        kinds = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
        kind = next(k for k, there in kinds.items() if there) if self.accelerator == "auto" else self.accelerator
        if not kinds[kind]:
            raise UserError(
                f"The device must be one of {', '.join(k for k in kinds if kinds[k])} on this machine, got {kind!r}."
            )
        return torch.device(kind, 0) if kind == "cuda" else torch.device(kind)

    @contextmanager
    def threads(self, net: Net) -> Iterator[None]:
        """Inside the block a small net runs on one thread: several would only wait for each other."""
        before = torch.get_num_threads()
        if sum(parameter.numel() for parameter in net.parameters()) < _SMALL:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def prepare(self, net: Net, optimizer: torch.optim.Optimizer, *, precision: str) -> Prepared:
        """``net`` (already on the device) and ``optimizer`` so that forward, backward and step use ``precision``."""
        if precision == "32-true":
            return Prepared(net, optimizer, torch.Tensor.backward)
        try:
            from lightning_fabric import Fabric
        except ImportError:
            raise UserError(
                f"precision={precision} needs Lightning Fabric; install it with: pip install 'umix[fabric]'."
            ) from None
        fabric = Fabric(accelerator=self.device.type, devices=1, precision=precision)  # type: ignore[arg-type]
        wrapped, stepper = fabric.setup(net, optimizer, move_to_device=False)
        wrapped.mark_forward_method("features")
        return Prepared(cast(Net, wrapped), cast(torch.optim.Optimizer, stepper), fabric.backward)
