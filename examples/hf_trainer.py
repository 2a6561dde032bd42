"""UMIX with the Trainer of Hugging Face: record the trajectory of a first training, weigh the examples by it, train again.

Run: python examples/hf_trainer.py

The model is a small DistilBERT with random weights, so nothing is downloaded; any model of AutoModelForSequenceClassification or
AutoModelForImageClassification is used in the same way. The reviews are made here: one of their words tells their opinion, in nine
of ten. Good reviews mostly come from one site and bad ones from the other, and its name is in the text.
"""

import tempfile

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, TrainingArguments, set_seed
from transformers.utils import logging

import umix
from umix.adapters.transformers import GroupMetrics, RecordingTrainer, UMIXTrainer

logging.set_verbosity_error()
torch.set_num_threads(1)  # a model as small as this one is slower with several


def reviews(n: int, agreement: float, seed: int) -> tuple[list[dict], list[str]]:
    """Texts as token ids with labels, and the site of each: that of its label in a share ``agreement`` of them."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(2, (n,), generator=generator)
    site = torch.where(torch.rand(n, generator=generator) < agreement, label, 1 - label)
    opinion = torch.where(torch.rand(n, generator=generator) < 0.9, label, 1 - label)
    ids = torch.randint(20, 28, (n, 6), generator=generator)  # words without opinion
    ids[:, 0] = 1
    ids[:, 1] = 2 + site
    ids[:, 3] = 4 + 8 * opinion + torch.randint(8, (n,), generator=generator)  # one of eight bad or eight good words
    examples = [{"input_ids": row, "labels": int(y)} for row, y in zip(ids, label, strict=True)]
    return examples, [f"site {number}" for number in site.tolist()]


train, _ = reviews(2000, agreement=0.95, seed=0)
test, sites = reviews(1000, agreement=0.5, seed=1)


def model() -> DistilBertForSequenceClassification:
    set_seed(0)
    sizes = {"dim": 32, "hidden_dim": 64, "n_layers": 1, "n_heads": 2, "vocab_size": 28, "max_position_embeddings": 8}
    return DistilBertForSequenceClassification(DistilBertConfig(**sizes))


with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        output_dir=folder,
        num_train_epochs=8,
        learning_rate=2e-3,
        per_device_train_batch_size=50,
        per_device_eval_batch_size=500,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )

    # Stage 1: the Trainer as ever, which also records which examples it gets wrong.
    first = RecordingTrainer(model=model(), args=args, train_dataset=train)
    first.train()
    found = first.predict(test)
    print("ERM", umix.group_counts(found.predictions, found.label_ids, sites), sep="\n")

    # Stage 2: a new model on weighted mixtures of examples; what is mixed are the features that enter its head.
    weights = first.trajectory.weights(eta=50, start=1, length=3)
    second = UMIXTrainer(
        model=model(),
        args=args,
        train_dataset=train,
        weights=weights,
        sigma=0.5,
        alpha=0.5,
        compute_metrics=GroupMetrics(sites),
    )
    second.train()
    found = second.predict(test)
    print("\nUMIX", umix.group_counts(found.predictions, found.label_ids, sites), sep="\n")
    print("\nThe same as metrics of the Trainer: worst", round(found.metrics["test_worst"], 3))
