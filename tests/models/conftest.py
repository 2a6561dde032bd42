"""Tiny checkpoints, written as transformers writes real ones."""

from pathlib import Path

import pytest
import torch


def write_checkpoint(config: object, folder: Path, seed: int = 0) -> Path:
    """A model of this configuration with random weights, saved to ``folder``."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        transformers.AutoModel.from_config(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ResNet of two layers for images of three channels, 8 features."""
    from transformers import ResNetConfig

    config = ResNetConfig(embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic")
    return write_checkpoint(config, tmp_path_factory.mktemp("models") / "resnet")


@pytest.fixture(scope="session")
def distilbert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DistilBERT of one layer, 16 features, 40 tokens, texts of up to 12 tokens."""
    from transformers import DistilBertConfig

    config = DistilBertConfig(
        dim=16, n_layers=1, n_heads=2, hidden_dim=16, vocab_size=40, max_position_embeddings=12, pad_token_id=0
    )
    return write_checkpoint(config, tmp_path_factory.mktemp("models") / "distilbert")
