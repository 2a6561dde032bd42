"""Cost of umix inside other people's code: an epoch of their loop with umix against the same loop without it.

The second stage is compared with the same loss written by hand. One function per adapter gives its ratios.

Run: python benchmarks/adapters.py [ADAPTER ...]
"""

import copy
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from measure import interleaved, ratio, write
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

#: No ratio may be above this one.
LIMIT = 1.10


def plain_loop(repeats: int = 15, n: int = 8192) -> dict[str, float]:
    """One epoch of a loop with a DataLoader on an MLP of 64 inputs."""
    from torch.utils.data import DataLoader, TensorDataset

    from umix import IndexedDataset, Trajectory, WeightedMixup

    x, y, net, optimizer = _mlp_data(n)
    indexed = TensorDataset(x, y, torch.arange(n))  # what people write who need the index
    weights, trajectory, rng = torch.rand(n) + 0.5, Trajectory(n), np.random.default_rng(0)
    mixup = WeightedMixup(weights)

    def bare(x: Tensor, y: Tensor, index: Tensor) -> Tensor:
        return cross_entropy(net(x), y)

    def recorded(x: Tensor, y: Tensor, index: Tensor) -> Tensor:
        logits = net(x)
        trajectory.see(index, logits, y)
        return cross_entropy(logits, y)

    def by_hand(x: Tensor, y: Tensor, index: Tensor) -> Tensor:
        return _mixup_by_hand(net, x, y, weights[index], rng)

    def ours(x: Tensor, y: Tensor, index: Tensor) -> Tensor:
        return mixup(net, x, y, index)

    def epoch(
        dataset: Any, loss_of: Callable[[Tensor, Tensor, Tensor], Tensor], end: Callable[[], None]
    ) -> Callable[[], None]:
        loader = DataLoader(dataset, batch_size=128, shuffle=True)

        def run() -> None:
            for x, y, index in loader:
                optimizer.zero_grad()
                loss_of(x, y, index).backward()
                optimizer.step()
            end()

        return run

    ours_rows = IndexedDataset(TensorDataset(x, y))
    seconds = interleaved(
        {
            "bare": epoch(indexed, bare, lambda: None),
            "recording": epoch(ours_rows, recorded, trajectory.end_epoch),
            "by hand": epoch(indexed, by_hand, lambda: None),
            "umix": epoch(ours_rows, ours, mixup.end_epoch),
        },
        repeats=repeats,
    )
    return {
        "plain loop: IndexedDataset and Trajectory / without": ratio(seconds, "recording", "bare"),
        "plain loop: IndexedDataset and WeightedMixup / weighted mixup by hand": ratio(seconds, "umix", "by hand"),
    }


def lightning_module(repeats: int = 11, n: int = 8192) -> dict[str, float]:
    """Two epochs of Lightning's Trainer on an MLP of 64 inputs."""
    import logging
    import warnings

    import lightning.pytorch as pl
    from torch.utils.data import DataLoader, TensorDataset

    from umix import IndexedDataset
    from umix.adapters.lightning import TrainsByUMIX, TrajectoryCallback

    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    x, y, net, _ = _mlp_data(n)
    weights, rng = torch.rand(n) + 0.5, np.random.default_rng(0)

    class Bare(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

        def training_step(self, batch: Any, batch_idx: int) -> Tensor:
            loss = cross_entropy(self(batch[0]), batch[1])
            self.log("train_loss", loss)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)

    class ByHand(Bare):
        def training_step(self, batch: Any, batch_idx: int) -> Tensor:
            x, y, index = batch
            loss = _mixup_by_hand(self, x, y, weights[index], rng)
            self.log("train_loss", loss)
            return loss

    class Ours(TrainsByUMIX, Bare):
        pass

    indexed, ours_rows = TensorDataset(x, y, torch.arange(n)), IndexedDataset(TensorDataset(x, y))

    def fit(module: Any, dataset: Any, *callbacks: Any) -> Callable[[], None]:
        quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")

        def run() -> None:
            loader = DataLoader(dataset, batch_size=128, shuffle=True)
            made = [kind() for kind in callbacks]
            pl.Trainer(max_epochs=2, accelerator="cpu", callbacks=made, **dict.fromkeys(quiet, False)).fit(
                module, loader
            )

        return run

    seconds = interleaved(
        {
            "bare": fit(Bare(), indexed),
            "recording": fit(Bare(), ours_rows, TrajectoryCallback),
            "by hand": fit(ByHand(), indexed),
            "umix": fit(Ours().with_weights(weights), ours_rows),
        },
        repeats=repeats,
    )
    return {
        "Lightning: TrajectoryCallback / without": ratio(seconds, "recording", "bare"),
        "Lightning: TrainsByUMIX / weighted mixup by hand": ratio(seconds, "umix", "by hand"),
    }


def scikit_learn(repeats: int = 5, n: int = 20_000, d: int = 30, epochs: int = 8, size: int = 256) -> dict[str, float]:
    """A whole fit against a script that does the same: rows divided and scaled, evaluated after each epoch, the best net kept."""
    from sklearn.datasets import make_classification
    from sklearn.preprocessing import StandardScaler

    from umix import UMIXClassifier

    given, labels = make_classification(n, d, n_informative=10, flip_y=0.05, random_state=0)

    def script(*, umix: bool) -> Callable[[], None]:
        def run() -> None:
            rng = np.random.default_rng(0)
            order = rng.permutation(n)
            train, val = order[: int(0.8 * n)], order[int(0.8 * n) :]
            scaler = StandardScaler().fit(given[train])
            x, x_val = (
                torch.from_numpy(scaler.transform(given[rows]).clip(-10, 10).astype(np.float32))
                for rows in (train, val)
            )
            y, y_val = torch.from_numpy(labels[train]), torch.from_numpy(labels[val])
            w: Tensor | None = None
            if umix:
                u = _script_stage(x, y, x_val, y_val, None, epochs=5, size=size, rng=rng)
                w = (3 * u + 1) / (3 * u + 1).mean()
            _script_stage(x, y, x_val, y_val, w, epochs=epochs, size=size, rng=rng)

        return run

    def ours(method: str, **options: Any) -> Callable[[], None]:
        def run() -> None:
            model = UMIXClassifier(method, epochs=epochs, batch_size=size, threshold="off", select="average", **options)
            model.fit(given, labels)

        return run

    seconds = interleaved(
        {
            "bare": script(umix=False),
            "erm": ours("erm"),
            "by hand": script(umix=True),
            "umix": ours("umix", eta=3, pool="example", length=5),
        },
        repeats=repeats,
    )
    return {
        "scikit-learn: UMIXClassifier('erm') / script": ratio(seconds, "erm", "bare"),
        "scikit-learn: UMIXClassifier('umix') / script": ratio(seconds, "umix", "by hand"),
    }


def _script_stage(
    x: Tensor,
    y: Tensor,
    x_val: Tensor,
    y_val: Tensor,
    w: Tensor | None,
    *,
    epochs: int,
    size: int,
    rng: np.random.Generator,
) -> Tensor:
    """Train an MLP, by weighted mixup if there are weights, and give the share of epochs in which each row was wrong, [n]."""
    net = nn.Sequential(nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3, weight_decay=0.01, fused=True)
    wrong, best = torch.zeros(len(y)), -1.0
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(size):
            if w is None:
                logits = net(x[rows])
                loss = cross_entropy(logits, y[rows])
                wrong[rows] += (logits.detach().argmax(1) != y[rows]).float()
            else:
                loss = _mixup_by_hand(net, x[rows], y[rows], w[rows], rng)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            rate = float((torch.cat([net(part) for part in x_val.split(1024)]).argmax(1) == y_val).float().mean())
        if rate > best:
            best, _ = rate, copy.deepcopy(net.state_dict())
    return wrong / epochs


def _mlp_data(n: int) -> tuple[Tensor, Tensor, nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
    return torch.randn(n, 64), torch.randint(2, (n,)), net, torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)


def _mixup_by_hand(
    net: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, w: Tensor, rng: np.random.Generator
) -> Tensor:
    """Weighted mixup as people write it."""
    if rng.random() >= 0.5:
        return (w * cross_entropy(net(x), y, reduction="none")).mean()
    lam, pair = float(rng.beta(0.5, 0.5)), torch.from_numpy(rng.permutation(len(y)))
    logits = net(lam * x + (1 - lam) * x[pair])
    first, second = (cross_entropy(logits, each, reduction="none") for each in (y, y[pair]))
    return (lam * w * first + (1 - lam) * w[pair] * second).mean()


def transformers_trainer(repeats: int = 15, n: int = 512) -> dict[str, float]:
    """One epoch of a Trainer of transformers on a small BERT, by the same model, arguments and data."""
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
    from transformers.utils import logging

    from umix.adapters.transformers import RecordingTrainer, UMIXTrainer

    logging.set_verbosity_error()
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    model = BertForSequenceClassification(BertConfig(**sizes, vocab_size=1000))
    ids, labels = torch.randint(1, 1000, (n, 32)), torch.randint(2, (n,))
    dataset = [{"input_ids": row, "labels": int(label)} for row, label in zip(ids, labels, strict=True)]
    with_index = [{**example, "index": i} for i, example in enumerate(dataset)]
    weights, rng = torch.rand(n) + 0.5, np.random.default_rng(0)

    class ByHand(Trainer):
        def compute_loss(self, model: Any, inputs: Any, *args: Any, **options: Any) -> torch.Tensor:
            y, w = inputs["labels"], weights[inputs["index"]]
            z = model.dropout(model.bert(input_ids=inputs["input_ids"]).pooler_output)
            if rng.random() >= 0.5:
                return (w * cross_entropy(model.classifier(z), y, reduction="none")).mean()
            lam, pair = rng.beta(0.5, 0.5), torch.from_numpy(rng.permutation(len(y)))
            logits = model.classifier(lam * z + (1 - lam) * z[pair])
            first, second = (cross_entropy(logits, each, reduction="none") for each in (y, y[pair]))
            return (lam * w * first + (1 - lam) * w[pair] * second).mean()

    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=32,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )

        def epoch(kind: Any, examples: Any = dataset, args: Any = args, **options: Any) -> Callable[[], object]:
            trainer = kind(model=model, args=args, train_dataset=examples, **options)
            trainer.log = lambda *args: None
            return trainer.train

        seconds = interleaved(
            {
                "bare": epoch(Trainer),
                "recording": epoch(RecordingTrainer),
                "by hand": epoch(ByHand, with_index, replace(args, remove_unused_columns=False)),
                "umix": epoch(UMIXTrainer, weights=weights, sigma=0.5, alpha=0.5),
            },
            repeats=repeats,
        )
    return {
        "transformers: RecordingTrainer / Trainer": ratio(seconds, "recording", "bare"),
        "transformers: UMIXTrainer / weighted mixup by hand": ratio(seconds, "umix", "by hand"),
    }


ADAPTERS: dict[str, Callable[[], dict[str, float]]] = {
    "loop": plain_loop,
    "lightning": lightning_module,
    "transformers": transformers_trainer,
    "sklearn": scikit_learn,
}


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    ratios = {name: value for adapter in names for name, value in ADAPTERS[adapter]().items()}
    write("adapters", {"limit": LIMIT, **ratios})
    if slow := [name for name, value in ratios.items() if value > LIMIT]:
        sys.exit(f"above {LIMIT}: {', '.join(slow)}")


if __name__ == "__main__":
    main(sys.argv[1:] or list(ADAPTERS))
