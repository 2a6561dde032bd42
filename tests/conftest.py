"""Data that many tests share."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from umix.data.benchmarks.four_moons import FourMoons
from umix.data.task import Task
from umix.nets.mlp import MLP
from umix.training.fit_settings import FitSettings
from umix.training.trainer import Trainer

# The same examples in every run: a suite that fails now and then teaches people to ignore it.
settings.register_profile("umix", derandomize=True, deadline=None)
settings.load_profile("umix")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def moons() -> Task:
    return FourMoons(sizes=(60, 10, 10, 60), eval_size=20).load()


@pytest.fixture
def trainer(moons: Task) -> Callable[..., Trainer]:
    """Makes trainers that differ only in what a test says."""

    def make(**changes: object) -> Trainer:
        directory = changes.get("directory")
        if isinstance(directory, Path):
            changes.setdefault("cache", directory / "stages")
        settings = FitSettings(**{"epochs": 4, "lr": 0.05, "batch_size": 32, **changes.pop("fit", {})})
        return Trainer(**{"task": moons, "net": MLP(hidden=(16,)), "settings": settings, **changes})

    return make


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DistilBERT of one layer with a WordPiece tokenizer, as they lie in a folder of the hub; texts of up to 16 tokens."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "the", "film", "was", "##s", ",", "!"]
    inner = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))  # noqa: S106
    inner.normalizer, inner.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=16, **marks).save_pretrained(folder)
    config = transformers.DistilBertConfig(
        dim=8, n_layers=1, n_heads=2, hidden_dim=8, vocab_size=len(words), max_position_embeddings=16, pad_token_id=0
    )
    transformers.utils.logging.disable_progress_bar()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.AutoModel.from_config(config).save_pretrained(folder)
    return folder
