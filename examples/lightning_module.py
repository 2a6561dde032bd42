"""UMIX in a LightningModule of one's own: a callback records the first fit, a mixin trains the second.

Run: python examples/lightning_module.py [--devices 2]

Only the training step of the second stage is umix's. Optimisers, validation and checkpoints stay those of the module and of
Lightning, also on several devices.
"""

import sys
import warnings

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import umix
from umix.adapters.lightning import TrainsByUMIX, TrajectoryCallback

warnings.filterwarnings("ignore", message=".*does not have many workers.*")  # the data are in memory


class Classifier(pl.LightningModule):
    """An ordinary module; only the index in its batches is new."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(128, 128), nn.ReLU())
        self.head = nn.Linear(128, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))

    def training_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> Tensor:
        x, y, _ = batch
        return cross_entropy(self(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


class SecondStage(TrainsByUMIX, Classifier):
    """The same module, trained by weighted mixup."""


def main(devices: int = 1) -> None:
    torch.set_num_threads(1)
    pl.seed_everything(0, verbose=False)
    task = umix.load_task("colored_digits")
    train, test = task.splits["train"], task.splits["test"]
    loader = DataLoader(umix.IndexedDataset(TensorDataset(train.x, train.y)), batch_size=64, shuffle=True)
    quiet = {
        "accelerator": "cpu",
        "devices": devices,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }

    first, recorder = Classifier(), TrajectoryCallback()
    pl.Trainer(max_epochs=10, callbacks=[recorder], **quiet).fit(first, loader)
    second = SecondStage().with_weights(recorder.trajectory.weights(eta=20), sigma=1.0)
    trainer = pl.Trainer(max_epochs=40, **quiet)
    trainer.fit(second, loader)
    if trainer.is_global_zero:
        for name, model in {"ERM": first, "UMIX": second}.items():
            print(name, umix.group_counts(model(test.x), test.y, test.groups), "", sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[2]) if sys.argv[1:2] == ["--devices"] else 1)
