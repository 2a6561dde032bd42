"""Trains by every method, in one process or in several: ``python shared_fits.py FOLDER`` writes what two processes make."""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from umix.data.four_moons import FourMoons
from umix.files import write_tensors
from umix.methods.registry import METHODS
from umix.nets.mlp import MLP
from umix.nets.net import Net, NetSettings
from umix.train.engine import Engine
from umix.train.fit_settings import FitSettings
from umix.train.trainer import Trainer

SETTINGS = {
    "umix": {"start": 0, "length": 2, "sigma": 0.7},
    "lisa_umix": {"start": 0, "length": 2},
    "irm": {"anneal": 3},
    "ib_irm": {"anneal": 3, "bottleneck_anneal": 5},
}
#: Epochs of 141 examples end with a batch of 13, which two processes cannot halve; those of 129 with a batch of one.
ODD = FourMoons(sizes=(61, 10, 10, 60), eval_size=21)
ONE_LEFT = FourMoons(sizes=(60, 10, 9, 50), eval_size=21)


class Normed(NetSettings):
    """A net with batch normalisation."""

    name = "normed"

    def build(self, example: Tensor, n_classes: int) -> Net:
        body = nn.Sequential(nn.Linear(example.numel(), 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
        return Net(body, nn.Linear(8, n_classes))


def trained(name: str, engine: Engine) -> dict[str, Tensor]:
    """Parameters, counts and what is known of the examples after a short run by the method of this name, or a variant of it."""
    method, _, variant = name.partition("-")
    kind = METHODS[method](**SETTINGS.get(method, {}), **({"mixing": "features"} if variant == "features" else {}))
    fit = {"precision": "bf16-mixed"} if variant == "bf16" else {"optimizer": "adam"} if variant == "adam" else {}
    trainer = Trainer(
        (ONE_LEFT if variant == "left" else ODD).load(),
        Normed() if variant == "normed" else MLP(hidden=(16,), dropout=0.0),
        FitSettings(epochs=3, lr=0.02, batch_size=32, clip_norm=0.5 if variant == "clip" else None, **fit),
        groups=kind.needs_groups,
        engine=engine,
    )
    net = kind.train(trainer)
    found = {f"net/{key}": value for key, value in net.state_dict().items()}
    found |= {f"kept/{key}": value for key, value in trainer.kept.items()}
    for split in ("val", "test"):
        found[f"counts/{split}"] = torch.from_numpy(trainer.history.counts(split).hits)
    return {key: value.detach().contiguous() for key, value in found.items()}


NAMES = (
    *METHODS,
    *("erm-left", "umix-left", "umix-features", "erm-normed", "coral-normed", "erm-bf16", "cvar_dro-adam", "erm-clip"),
)

if __name__ == "__main__":
    torch.set_num_threads(1)
    both = Engine("cpu", devices=2)
    both.launch()
    for each in NAMES:
        write_tensors(Path(sys.argv[1]) / f"{each}-{both.rank}.safetensors", trained(each, both), {"kind": "fit"})
