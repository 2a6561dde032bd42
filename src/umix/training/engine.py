"""The devices and the number format of a fit, by way of Lightning Fabric.

Full precision on one device does without Fabric: its wrappers slow down small nets, and importing
it takes two seconds. On several devices there is one process for each. They train together
(``parallel``), and only the first process reads and writes files.
"""

import atexit
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, final

import torch
from torch import Tensor, distributed, nn

from umix.errors import Setting, UserError, unknown
from umix.limits import require_count
from umix.models.model import Model
from umix.models.stacked import is_stack
from umix.training.parallel import SharedNet

if TYPE_CHECKING:
    from lightning_fabric import Fabric

STRATEGIES = ("ddp",)
_SMALL = 2**20  # parameters
_PATIENCE = timedelta(days=1)  # the first process may wait long for another run's lock while the others wait for it
_Value = TypeVar("_Value")


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """A net and its optimiser, ready for the loop."""

    net: Model
    optimizer: torch.optim.Optimizer
    backward: Callable[[Tensor], None]


@final
@dataclass(frozen=True)
class Engine:
    """``devices`` devices of the kind ``accelerator`` on each of ``nodes`` machines; ``auto`` takes GPUs if there are any.

    With more than one device, call ``launch`` first: it starts the other processes.
    """

    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    devices: int = 1
    nodes: int = 1

    @property
    def processes(self) -> int:
        return self.devices * self.nodes

    @property
    def rank(self) -> int:
        """The number of this process; the first one is 0."""
        if self.processes == 1:
            return 0
        if not distributed.is_initialized():
            raise UserError(
                f"An engine of {self.processes} devices must be launched before it trains: call its launch()."
            )
        return distributed.get_rank()

    @property
    def first(self) -> bool:
        """Whether this is the first process, which reads and writes the run's files and prints."""
        return self.rank == 0

    @property
    def noise(self) -> str:
        """The name of the random stream for dropout; it differs between processes because their rows differ."""
        return "noise" if self.first else f"noise-{self.rank}"

    @property
    def kind(self) -> str:
        """The kind of device; raises if this machine has none of that kind."""
        kinds = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
        kind = next(k for k, there in kinds.items() if there) if self.accelerator == "auto" else self.accelerator
        if not kinds[kind]:
            raise UserError(
                f"The device must be one of {', '.join(k for k in kinds if kinds[k])} on this machine, got {kind!r}."
            )
        return kind

    @property
    def device(self) -> torch.device:
        kind = self.kind
        if kind != "cuda":
            return torch.device(kind)
        return torch.device(kind, 0 if self.processes == 1 else int(os.environ["LOCAL_RANK"]))

    @contextmanager
    def threads(self, net: Model) -> Iterator[None]:
        """Inside the block a small net runs on one thread, because several threads would only wait for each other.

        A net with convolutions does not count as small, whatever its number of weights: each weight
        is used at every pixel.
        """
        before = torch.get_num_threads()
        convolves = not is_stack(net) and any(parameter.dim() > 2 for parameter in net.parameters())
        if not convolves and sum(parameter.numel() for parameter in net.parameters()) < _SMALL:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def launch(self) -> None:
        """Start the other processes, each with the command line of this one, or join the processes that torchrun has started."""
        if self.processes > 1:
            self._fabric("32-true", needs=f"{self.processes} devices need")
            atexit.register(_leave)

    def from_first(self, value: _Value) -> _Value:
        """The ``value`` of the first process, in every process."""
        if self.processes == 1:
            return value
        told = [value if self.first else None]
        distributed.broadcast_object_list(told, src=0)
        return cast(_Value, told[0])

    def shared(self, net: Model) -> Model:
        """``net`` for evaluation: each process computes its share of a batch and gets the outputs of all."""
        return net if self.processes == 1 else cast(Model, SharedNet(net))

    def prepare(self, net: Model, optimizer: torch.optim.Optimizer, *, precision: str) -> Prepared:
        """``net`` (which is on the device already) and ``optimizer``, set up to train with ``precision`` on all devices."""
        if precision == "32-true" and self.processes == 1:
            return Prepared(net, optimizer, torch.Tensor.backward)
        fabric = self._fabric(precision, needs=f"precision={precision} needs")
        if self.processes > 1:
            _share_norms(net)
        wrapped, stepper = fabric.setup(net, optimizer, move_to_device=False)
        wrapped.mark_forward_method("features")
        wrapped.mark_forward_method("encode")
        runner, stepper = cast(Model, wrapped), cast(torch.optim.Optimizer, stepper)
        if self.processes == 1:
            return Prepared(runner, stepper, fabric.backward)
        return Prepared(cast(Model, SharedNet(net, runner)), stepper, _Backward(net, fabric.backward))

    def _fabric(self, precision: str, *, needs: str) -> "Fabric":
        try:
            from lightning_fabric import Fabric
            from lightning_fabric.plugins.environments.lightning import LightningEnvironment
            from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
            from lightning_fabric.strategies.ddp import DDPStrategy
        except ImportError:
            raise UserError(f"{needs} Lightning Fabric; install it with: pip install 'umix[fabric]'.") from None
        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
        options: dict[str, Any] = {"accelerator": self.kind, "devices": self.devices, "precision": precision}
        if self.processes == 1:
            return Fabric(**options)
        started = TorchElasticEnvironment.detect()
        fabric = Fabric(
            **options,
            num_nodes=self.nodes,
            strategy=DDPStrategy(timeout=_PATIENCE),
            plugins=[TorchElasticEnvironment() if started else LightningEnvironment()],
        )
        fabric.launch()  # starts the processes at the first call only
        return fabric


def _share_norms(net: Model) -> None:
    """Let every batch normalisation in ``net`` use the rows of all processes; torch can do so on GPUs only."""
    if not any(isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d) for part in net.modules()):
        return
    if next(net.parameters()).device.type != "cuda":
        raise UserError(
            "A net with batch normalisation must be trained on one device where there are no GPUs, because torch shares it "
            "between GPUs only; leave ",
            Setting("devices"),
            " out, or take another net.",
        )
    nn.SyncBatchNorm.convert_sync_batchnorm(net)


def _leave() -> None:
    """End the group of processes before the interpreter ends: its threads would abort the process otherwise."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


@final
class _Backward:
    """The backward pass of a net that processes share.

    The first one checks that every trained parameter has a gradient.
    """

    def __init__(self, net: Model, run: Callable[[Tensor], None]) -> None:
        self._net = net
        self._run = run
        self._checked = False

    def __call__(self, risk: Tensor) -> None:
        self._run(risk)
        if self._checked:
            return
        self._checked = True
        for name, parameter in self._net.named_parameters():
            if parameter.requires_grad and parameter.grad is None:  # DDP would wait for it forever
                raise UserError(
                    f"On several devices every trained parameter must take part in the prediction, but {name} does not; "
                    "set its requires_grad to False, or train on one device."
                )


def engine_for(*, devices: int | None = None, nodes: int | None = None, strategy: str | None = None) -> Engine:
    """An engine with ``devices`` on each of ``nodes`` machines.

    Both default to 1, or to what torchrun has started.
    """
    if strategy is not None and strategy not in STRATEGIES:
        raise unknown("strategy", strategy, STRATEGIES)
    if devices is not None:
        require_count("devices", devices)
    if nodes is not None:
        require_count("nodes", nodes)
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
