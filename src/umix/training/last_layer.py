"""The last layer of a trained net, trained again by itself: the features of all examples are computed once.

It is trained on features with mean 0 and deviation 1, so that one learning rate suits all nets. After every epoch it is copied into
the whole net, in which mean and deviation are a part of the weights, and only the whole net is evaluated and saved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, final

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from umix.core.streams import torch_stream
from umix.data.samplers import Sampler
from umix.data.task import Split
from umix.errors import UserError
from umix.models.model import Model
from umix.models.net import Net
from umix.training.evaluate import require_finite
from umix.training.fit_settings import FitSettings
from umix.training.objective import Objective
from umix.training.stage import FINAL

if TYPE_CHECKING:
    from umix.training.context import Context
    from umix.training.history import HeldOutUncertainty
    from umix.training.train_result import TrainResult


@final
@dataclass(frozen=True, eq=False)
class LastLayer:
    """``net`` is the last layer as a net on standardised features, which is trained; ``whole`` is the net that it belongs to.

    ``inputs`` has the features of the examples it is trained on, ``train``, standardised, and those of val and test as they are.
    """

    net: Model
    whole: Model
    inputs: Mapping[str, Split]
    mean: Tensor  # [width]
    scale: Tensor  # [width]

    @classmethod
    def of(cls, whole: Model, splits: Mapping[str, Split], features: Mapping[str, Tensor]) -> Self:
        """The last layer of ``whole`` as it is; ``splits`` and their ``features`` [n, width] are those of ``inputs``."""
        head = linear_head(whole)
        z = features["train"].detach()
        mean, scale = z.mean(0), z.std(0, correction=0)
        scale = scale.where(scale > 0, 1.0)
        layer = skip_init(nn.Linear, head.in_features, head.out_features, device=z.device)  # draws no random numbers
        with torch.no_grad():
            layer.weight.copy_(head.weight * scale)
            layer.bias.copy_(_precise(head.weight) @ _precise(mean) + _precise(head.bias))
        inputs = {
            name: replace(splits[name], x=features[name].detach(), transform=None, augment=None) for name in splits
        }
        inputs["train"] = replace(inputs["train"], x=(z - mean) / scale)
        return cls(Net(nn.Identity(), layer), whole, inputs, mean, scale)

    @torch.no_grad()
    def copied(self) -> Model:
        """Copy the trained last layer into the whole net; returns the whole net's last layer as a net on features as they are."""
        head, layer = linear_head(self.whole), linear_head(self.net)
        weight = _precise(layer.weight) / _precise(self.scale)
        head.weight.copy_(weight)
        head.bias.copy_(_precise(layer.bias) - weight @ _precise(self.mean))
        return Net(nn.Identity(), head)


def fit_last_layer(
    context: "Context",
    net: Model,
    rows: Split,
    objective: Objective,
    *,
    settings: FitSettings,
    sampler: Sampler | None = None,
    new: bool = False,
    val: Split | None = None,
    uncertainty: "HeldOutUncertainty | None" = None,
) -> "TrainResult":
    """``net`` with its last layer trained on the examples ``rows``, with hits on val and test counted after every epoch.

    The other layers stay as they are. The layer starts as it is, or with ``new`` from a new initialisation. ``settings`` are
    those of this fit. ``val`` replaces the validation split, for methods that train on a part of it; ``uncertainty`` is that of its
    examples and of test. ``net`` is that of the stage ``reference``, which the error names if its features are not finite.
    """
    splits = {"train": rows, "val": context.splits["val"] if val is None else val, "test": context.splits["test"]}
    features = {name: context.features(net, split) for name, split in splits.items()}
    require_finite(features["train"], what="features", stage="reference")
    layer = LastLayer.of(net, splits, features)
    if new:
        with torch_stream(context.seed, FINAL, "last layer"):
            linear_head(layer.net).reset_parameters()
    history = context.new_history(settings.epochs, val=val, uncertainty=uncertainty, last_layer=layer)
    result = context.final_fit(layer.net, objective, settings, history, sampler, train=layer.inputs["train"])
    layer.copied()
    return replace(result, net=net)


def linear_head(net: Model, *, otherwise: str = "take another net") -> nn.Linear:
    """The last layer of ``net``; raises if it is not a linear layer with a bias, and says what to do ``otherwise``."""
    if not isinstance(net.head, nn.Linear) or net.head.bias is None:
        got = "one without" if isinstance(net.head, nn.Linear) else type(net.head).__name__
        raise UserError(f"The last layer must be linear with a bias, got {got}; {otherwise}.")
    return net.head


@torch.no_grad()
def set_last_layer(net: Model, layer: Tensor) -> None:
    """Put ``layer``, weights and biases [classes, width + 1], in place of the last layer of ``net``."""
    head = linear_head(net)
    head.weight.copy_(layer[:, :-1])
    head.bias.copy_(layer[:, -1])


def _precise(x: Tensor) -> Tensor:
    """``x`` in float64, on the host: not every device has it."""
    return x.cpu().double()
