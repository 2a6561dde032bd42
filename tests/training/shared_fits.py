"""Trains by every method, in one process or in several: ``python shared_fits.py FOLDER`` writes what two processes make."""

import os
import signal
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from umix.adapters.group_counts import group_counts
from umix.adapters.weighted_mixup import WeightedMixup
from umix.bench.runs.execute import execute
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.checkpoint_pace import EVERY_EPOCH
from umix.data.benchmarks.four_moons import FourMoons
from umix.errors import UserError
from umix.methods.registry import METHODS
from umix.models.mlp import MLP
from umix.models.net import Net, NetSettings
from umix.store import write_tensors
from umix.training.context import Context
from umix.training.engine import Engine
from umix.training.fit_settings import FitSettings
from umix.training.progress import Silent
from umix.training.stage import ErmStage
from umix.training.trajectory import Trajectory

SETTINGS = {
    "umix": {"start": 0, "length": 2, "sigma": 0.7},
    "umix-features": {"start": 0, "length": 2, "sigma": 0.7, "mixing": "features"},
    "umix-auto": {"eta": "auto", "length": 2},
    "umix-ensemble": {"uncertainty": "ensemble", "length": 2},
    "lisa_umix": {"start": 0, "length": 2},
    "irm": {"anneal": 2},
    "ib_irm": {"anneal": 2, "bottleneck_anneal": 4},
    "afr": {"layer_epochs": 2, "lam": 0.1, "sigma": 0.5},
    **{name: {"layer_epochs": 2} for name in ("self", "cb_last_layer", "crt")},
}
RUN = RunSpec(
    task="four_moons",
    method="umix",
    settings={"task.sizes": [61, 10, 10, 60], "fit.epochs": 6, "eta": 5, "length": 2, "trajectory.epochs": 2},
)
#: Epochs of 141 examples end with a batch of 45, which two processes cannot halve; those of 97 with a batch of one.
ODD = FourMoons(sizes=(61, 10, 10, 60), eval_size=21)
ONE_LEFT = FourMoons(sizes=(40, 10, 9, 38), eval_size=21)


class Normed(NetSettings):
    """A net with batch normalisation."""

    name = "normed"

    def build(self, example: Tensor, n_classes: int) -> Net:
        body = nn.Sequential(nn.Flatten(), nn.Linear(example.numel(), 8), nn.BatchNorm1d(8))
        return Net(body, nn.Linear(8, n_classes))


class Idle(NetSettings):
    """A net with a layer that no prediction goes through."""

    name = "idle"

    def build(self, example: Tensor, n_classes: int) -> Net:
        net = MLP(hidden=(4,)).build(example, n_classes)
        net.body.add_module("idle", nn.Identity())
        net.body.idle.register_parameter("weight", nn.Parameter(torch.zeros(1)))
        return net


NETS = {"normed": Normed(), "dropout": MLP(hidden=(16,), dropout=0.5), "idle": Idle()}
FITS = {"bf16": {"precision": "bf16-mixed"}, "adam": {"optimizer": "adam"}, "clip": {"clip_norm": 0.5}}
#: Every method, and what else may go wrong.
NAMES = (
    *METHODS,
    *(
        "erm-left",
        "umix-left",
        "umix-features",
        "cvar_dro-adam",
        "erm-clip",
    ),
    *("umix-auto", "umix-ensemble", "erm-bf16", "erm-dropout", "ssa-few"),
)


def context_for(variant: str, engine: Engine, **more: object) -> Context:
    task = (ONE_LEFT if variant == "left" else ODD).load()
    fit = FitSettings(epochs=2, lr=0.04, batch_size=48, **FITS.get(variant, {}))
    more = {"use_groups": "val", **more} if variant == "few" else more
    return Context(task, NETS.get(variant, MLP(hidden=(16,))), fit, engine=engine, **more)


def trained(name: str, engine: Engine) -> dict[str, Tensor]:
    """Parameters, counts and what is known of the examples after a short run by the method of this name, or a variant of it."""
    method, _, variant = name.partition("-")
    kind = METHODS[method](**SETTINGS.get(name, SETTINGS.get(method, {})))
    context = context_for(variant, engine, groups=kind.needs_groups)
    result = kind.train(context)
    found = {f"net/{key}": value for key, value in result.net.state_dict().items()}
    found |= {f"per_example/{key}": value for key, value in result.per_example.items()}
    for split in ("val", "test"):
        found[f"counts/{split}"] = torch.from_numpy(result.history.counts(split).hits)
    return {key: value.detach().contiguous() for key, value in found.items()}


def recorded(record: str, engine: Engine) -> dict[str, Tensor]:
    """The whole trajectory of training and validation examples, NaN where an example was not visited."""
    trajectory = context_for("", engine).trajectory(ErmStage("trajectory", 2, record=record))
    parts = {"train": trajectory, "val": trajectory.val}
    return {name: torch.cat(list(part.window(start=0, length=2))) for name, part in parts.items()}


def gathered(rank: int) -> dict[str, Tensor]:
    """What a loop of one's own gathers: each process sees every second example, and both the first, which only one gets right."""
    trajectory, place = Trajectory(9), torch.tensor([0, *range(2 - rank, 9, 2)])
    hit = (place % 3 != 0) | ((place == 0) & (rank == 1))
    trajectory.see(place, nn.functional.one_hot((~hit).long(), 2).float(), torch.zeros_like(place))
    trajectory.gather()
    trajectory.end_epoch()
    counts = group_counts(hit.long(), torch.ones_like(place), place.numpy() % 2).gather()
    mixup = WeightedMixup(torch.ones(9), sigma=1.0)
    return {
        "u": trajectory.uncertainty(start=0, length=1),
        "rates": torch.tensor(list(counts.rates.values())),
        "lam": torch.tensor(mixup.pairs(torch.zeros(2), torch.zeros(2)).lam),
    }


def refusal(name: str, engine: Engine) -> str:
    """What is said of a fit that several processes cannot train."""
    try:
        trained(name, engine)
    except UserError as error:
        return str(error)
    return ""


class Dying:
    """Ends this process without a word after some steps of the final fit."""

    def finish(self) -> None: ...

    def note(self, message: str) -> None: ...

    def start(self, stage: str, *, total: int, done: int) -> None:
        self.left = 15 if stage == "fit" else 10**9

    def advance(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, engine: Engine) -> None:
    for name in NAMES:
        write_tensors(folder / f"{name}-{engine.rank}.safetensors", trained(name, engine), {"kind": "fit"})
    for record in ("online", "epoch_end"):
        write_tensors(folder / f"{record}-{engine.rank}.safetensors", recorded(record, engine), {"kind": "fit"})
    write_tensors(folder / f"gathered-{engine.rank}.safetensors", gathered(engine.rank), {"kind": "fit"})
    for name in ("erm-normed", "erm-idle"):
        (folder / f"refusal-{name}-{engine.rank}.txt").write_text(refusal(name, engine))


if __name__ == "__main__":
    torch.set_num_threads(1)
    both = Engine("cpu", devices=2)
    both.launch()
    if sys.argv[2:] == ["die"]:
        places = RunPaths(Path(sys.argv[1]), pace=EVERY_EPOCH)
        execute(RUN, paths=places, engine=both, progress=Silent() if both.first else Dying())
    else:
        main(Path(sys.argv[1]), both)
