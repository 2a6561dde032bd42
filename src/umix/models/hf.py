"""Models of the Hugging Face hub (transformers' AutoModel), by hub name or local folder: ResNet-50, DistilBERT, any other.

Images: the model's own pooling (a ResNet's pooler_output), or the first token where its pooler was not trained. Texts: token ids
[batch, length] in, the mask is ``ids != pad_token_id``; pooled features are the first token's, or the mean over tokens where the
folder says so (``1_Pooling/config.json`` of sentence-transformers).

Differs from transformers' classification heads: these put layers of their own between the pooled features and the last one
(DistilBERT: a linear layer ``pre_classifier`` with ReLU and dropout 0.2; BERT: dropout 0.1). Here the head is one linear layer on
the pooled features, so that mixing features and refitting the last layer mean the same for every net; ``dropout`` puts dropout
before it.

Weights are safetensors. Pickled ones are refused, because a pickle is code, and so is a model that needs code of its own.
"""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, final

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from umix.errors import Setting, UserError, cause
from umix.limits import require_memory
from umix.models.backbone import Provider, require_images, require_tokens, require_trained
from umix.models.library import library
from umix.models.model import size_of
from umix.models.weight_files import files_hash
from umix.quiet_transformers import quiet_transformers

Pooling = Literal["auto", "first", "mean", "pooler"]
_CONFIG, _POOLING = "config.json", "1_Pooling/config.json"
_SAFE, _PICKLED = "model*.safetensors*", "pytorch_model*.bin*"


@final
class HuggingFace(Provider):
    """A model of the Hugging Face hub or a local folder (transformers), for images or texts."""

    name: ClassVar[str] = "hf"
    library: ClassVar[str] = "transformers"
    extra: ClassVar[str] = "hf"

    model: str = Field(
        exclude=True, description="hub name or local folder; its content decides the run's key, not its path"
    )
    pretrained: bool = Field(
        True, description="start from its weights; false: from random weights, with its configuration"
    )
    pooling: Pooling = Field("auto", description="features of a text: of its first token, the mean, the model's pooler")

    @model_validator(mode="after")
    def _has_something_to_freeze(self) -> Self:
        require_trained(freeze=self.freeze, trained=self.pretrained, title=self.title)
        return self

    @property
    def title(self) -> str:
        return f"hf:{Path(self.model).expanduser().resolve() if is_local(self.model) else self.model}"

    @property
    def content(self) -> str:
        folder = folder_of(self.model, pretrained=self.pretrained)
        files = [folder / name for name in (_CONFIG, _POOLING) if (folder / name).is_file()]
        return files_hash([*files, *(_weights(folder) if self.pretrained else ())])

    def parts(self, example: Tensor, n_classes: int) -> tuple[nn.Module, None]:
        folder = folder_of(self.model, pretrained=self.pretrained)
        transformers = library(self.library, extra=self.extra)
        with quiet_transformers(transformers):
            try:
                config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
                model, untrained = self._load(transformers, folder, config)
                text_pooling = self._text_pooling(folder)
            except UserError:
                raise
            except Exception as error:  # every model raises other exceptions for what its files say
                raise UserError(
                    f"{self.title} must be a model that transformers' AutoModel loads without code of its own, but it does not "
                    f"({cause(error)})."
                ) from None
        if model.main_input_name == "input_ids":
            require_tokens(example, self.title)
            return Texts(_used(model, text_pooling), text_pooling, model.config.pad_token_id), None
        if model.main_input_name != "pixel_values":
            raise UserError(f"The net {self.title} must take images or texts, but it takes {model.main_input_name}.")
        require_images(example, self.title)
        channels = getattr(model.config, "num_channels", len(example))
        if channels != len(example):
            raise UserError(f"The net {self.title} takes images of {channels} channels, got {len(example)}.")
        auto: Pooling = "first" if untrained else "pooler"
        pooling = auto if self.pooling == "auto" else self.pooling
        return Pixels(_used(model, pooling), pooling), None

    def _load(self, transformers: Any, folder: Path, config: Any) -> tuple[Any, bool]:
        """The model, and whether it has a pooler without trained weights."""
        with torch.device("meta"):  # shapes without numbers
            size = size_of(transformers.AutoModel.from_config(config, trust_remote_code=False))
        require_memory(size, f"The net {self.title} takes", "choose a smaller one with ", Setting("net"))
        if not self.pretrained:
            return transformers.AutoModel.from_config(config, trust_remote_code=False), False
        model, found = transformers.AutoModel.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            use_safetensors=True,
            output_loading_info=True,
        )
        missing = sorted(found["missing_keys"])
        lacking = [name for name in missing if "pooler" not in name]
        if lacking:
            raise UserError(
                f"{self.title} must hold all weights of its model, but {len(lacking)} are missing (first: {lacking[0]}); download "
                "it again or train from scratch with net.pretrained=false."
            )
        if missing and self.pooling == "pooler":
            raise UserError(f"The pooler of {self.title} was not trained; choose net.pooling=first or mean.")
        return model, bool(missing)

    def _text_pooling(self, folder: Path) -> Pooling:
        if self.pooling != "auto":
            return self.pooling
        path = folder / _POOLING
        means = path.is_file() and json.loads(path.read_bytes()).get("pooling_mode_mean_tokens")
        return "mean" if means else "first"


@final
class Texts(nn.Module):
    """Pooled features of token ids [batch, length]."""

    def __init__(self, model: nn.Module, pooling: Pooling, pad: int | None) -> None:
        nn.Module.__init__(self)
        self.model, self.pooling, self.pad = model, pooling, pad

    def forward(self, ids: Tensor) -> Tensor:
        mask = torch.ones_like(ids) if self.pad is None else (ids != self.pad).long()
        # ``TokenIds.take`` pads a batch to its longest text only; to cut it here, the host would have to wait for the device.
        try:
            return pooled(self.model(input_ids=ids.long(), attention_mask=mask), self.pooling, mask)
        except IndexError:  # only a part of the data may hold such a token
            raise UserError(
                "A net for texts must know every token and position of them, but one lies beyond its own; take the tokenizer of "
                "the net with ",
                Setting("task.tokenizer"),
                ", or shorter texts with ",
                Setting("task.tokens"),
                ".",
            ) from None


@final
class Pixels(nn.Module):
    """Pooled features of images [batch, channels, height, width]."""

    def __init__(self, model: nn.Module, pooling: Pooling) -> None:
        nn.Module.__init__(self)
        self.model, self.pooling = model, pooling

    def forward(self, x: Tensor) -> Tensor:
        return pooled(self.model(pixel_values=x), self.pooling, None)


def pooled(output: Any, pooling: Pooling, mask: Tensor | None) -> Tensor:
    """The output of a model as one vector per example, [batch, width]."""
    if pooling == "pooler":
        pooler: Tensor | None = getattr(output, "pooler_output", None)
        if pooler is None:
            raise UserError("net.pooling=pooler must be used with a model that has a pooler; choose first or mean.")
        return pooler.flatten(1)
    z: Tensor = output.last_hidden_state
    if z.dim() == 4:  # [batch, channels, height, width]
        return z.mean(dim=(2, 3))
    if pooling == "first":
        return z[:, 0]
    if mask is None:
        return z.mean(dim=1)
    weight = mask[:, :, None].to(z)
    return (z * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)


def _used(model: nn.Module, pooling: Pooling) -> nn.Module:
    """``model`` with its pooler frozen if it is not used: its parameters would get no gradient."""
    pooler = getattr(model, "pooler", None)
    if pooling != "pooler" and isinstance(pooler, nn.Module):
        pooler.requires_grad_(False)
    return model


def is_local(model: str) -> bool:
    """Whether ``model`` is an existing folder, or looks like a path and not like a hub name."""
    return Path(model).expanduser().is_dir() or model.startswith((".", "/", "~")) or model.count("/") > 1


def folder_of(model: str, *, pretrained: bool) -> Path:
    """The folder with the configuration of ``model``, and with its weights if it is ``pretrained``.

    For a local folder the network is never used. A hub name is looked up in the local cache first, then downloaded.
    """
    folder = Path(model).expanduser() if is_local(model) else _snapshot(model, pretrained)
    if not folder.is_dir():
        raise UserError(f"There is no folder {model} with a model (config.json, model.safetensors).")
    if _is_complete(folder, pretrained):
        return folder
    if pretrained and next(folder.glob(_PICKLED), None) is not None:
        raise UserError(
            f"The weights of {model} must be model.safetensors, but they are pickled, and a pickle may run code; if you trust "
            "them, load the model with transformers and save it again with save_pretrained."
        )
    raise UserError(
        f"The model {model} must hold config.json{' and model.safetensors' if pretrained else ''}, as save_pretrained writes "
        "them; it does not."
    )


def _weights(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(_SAFE) if path.is_file())


def _is_complete(folder: Path, pretrained: bool) -> bool:
    return (folder / _CONFIG).is_file() and (not pretrained or bool(_weights(folder)))


@lru_cache(maxsize=16)
def _snapshot(model: str, pretrained: bool) -> Path:
    """The snapshot of a hub name in the local cache, downloaded if it is not there."""
    fetch = library("huggingface_hub", extra="hf").snapshot_download
    patterns = [_CONFIG, _POOLING, *([_SAFE] if pretrained else [])]
    try:
        folder = Path(fetch(model, allow_patterns=patterns, local_files_only=True))
        if _is_complete(folder, pretrained):
            return folder
    except Exception:  # noqa: S110 — not in the cache, or no such name: the download below tells
        pass
    try:
        return Path(fetch(model, allow_patterns=patterns))
    except Exception as error:  # the network has many ways to fail
        missing = type(error).__name__ in ("RepositoryNotFoundError", "HFValidationError")
        why = "the hub has no public model of that name" if missing else "the hub cannot be reached"
        raise UserError(
            f"The model {model} is neither a folder nor in the local cache of the Hugging Face hub, and {why}; give a local folder "
            "with ",
            Setting("net", "hf:FOLDER"),
            ".",
        ) from None
