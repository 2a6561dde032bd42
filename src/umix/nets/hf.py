"""Models of the Hugging Face hub (transformers' AutoModel), by hub name or local folder: ResNet-50, DistilBERT, any other.

Images: the model's own pooling (a ResNet's pooler_output), or the first token where its pooler was not trained. Texts: token ids
[batch, length] in, the mask is ``ids != pad_token_id``; pooled features are the first token's, or the mean over tokens where the
folder says so (``1_Pooling/config.json`` of sentence-transformers).

Differs from transformers' classification heads: these put layers of their own between the pooled features and the last one
(DistilBERT: a linear layer ``pre_classifier`` with ReLU and dropout 0.2; BERT: dropout 0.1). Here the head is one linear layer on
the pooled features, so that mixing features and refitting the last layer mean the same for every net; ``dropout`` puts dropout
before it.
"""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self, final

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from umix.errors import Setting, UserError, cause
from umix.limits import require_memory
from umix.nets.backbone import require_images, require_tokens, require_trained
from umix.nets.hf_config import read_json
from umix.nets.hf_folder import POOLING, content_of, folder_of, is_local
from umix.nets.library import library
from umix.nets.net_size import size_of
from umix.nets.provider import Provider
from umix.quiet_transformers import quiet_transformers

Pooling = Literal["auto", "first", "mean", "pooler"]


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
        return content_of(folder_of(self.model, pretrained=self.pretrained), pretrained=self.pretrained)

    def parts(self, example: Tensor, n_classes: int) -> tuple[nn.Module, None]:
        folder = folder_of(self.model, pretrained=self.pretrained)
        transformers = library(self.library, extra=self.extra)
        with quiet_transformers(transformers):
            try:
                config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
                model, untrained = self._load(transformers, folder, config)
            except UserError:
                raise
            except Exception as error:  # every model raises other exceptions for what its files say
                raise UserError(
                    f"{self.title} must be a model that transformers' AutoModel loads without code of its own, but it does not "
                    f"({cause(error)})."
                ) from None
        if model.main_input_name == "input_ids":
            require_tokens(example, self.title)
            pooling = self._text_pooling(folder, untrained)
            return Texts(_used(model, pooling), pooling, model.config.pad_token_id), None
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

    def _text_pooling(self, folder: Path, untrained: bool) -> Pooling:
        if self.pooling != "auto":
            return self.pooling
        said = folder / POOLING
        means = said.is_file() and read_json(said).get("pooling_mode_mean_tokens")
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
        given: Tensor | None = getattr(output, "pooler_output", None)
        if given is None:
            raise UserError("net.pooling=pooler must be used with a model that has a pooler; choose first or mean.")
        return given.flatten(1)
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
