"""Both stages on two devices; ``python two_devices.py FOLDER`` writes what each process has in the end."""

import sys
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from umix import IndexedDataset, load_task
from umix.adapters.lightning import TrainsByUMIX, TrajectoryCallback
from umix.store import write_tensors


class Classifier(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        return cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)


class SecondStage(TrainsByUMIX, Classifier):
    pass


if __name__ == "__main__":
    pl.seed_everything(0, verbose=False)
    train = load_task("four_moons").splits["train"]
    some = slice(None, None, 16)  # 105 of all moons; an odd number, so that one example is seen twice
    rows = IndexedDataset(TensorDataset(train.x[some], train.y[some]))
    loader = DataLoader(rows, batch_size=16, shuffle=True)
    quiet = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
    }
    recorder = TrajectoryCallback()
    both = {"accelerator": "cpu", "devices": 2, "strategy": "ddp", **quiet}
    pl.Trainer(max_epochs=2, callbacks=[recorder], **both).fit(Classifier(), loader)
    weights = recorder.trajectory.weights(eta=5)
    model = SecondStage().with_weights(weights)
    trainer = pl.Trainer(max_epochs=1, **both)
    trainer.fit(model, loader)
    found = {"weights": weights, "parameters": nn.utils.parameters_to_vector(model.parameters()).detach()}
    write_tensors(Path(sys.argv[1]) / f"{trainer.global_rank}.safetensors", found, {"kind": "fit"})
