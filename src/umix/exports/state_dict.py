"""A plain state dict with its config: the weights of the net, and the lines of Python that load them."""

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from torch import Tensor, nn

from umix.exports.trained_model import TrainedModel
from umix.models.model import Model
from umix.models.net import Net
from umix.models.prototypes import PrototypeHead
from umix.models.registry import net_kind

#: The names of the files in a folder.
WEIGHTS, CONFIG = "model.safetensors", "config.json"
_PLAIN = re.compile(r"\w+\([\w=., ()'-]*\)")


def state_dict_file(net: Model, config: Mapping[str, Any]) -> bytes:
    """The content of a safetensors file: the state dict of ``net``, and ``config`` as JSON in its metadata."""
    from safetensors.torch import save

    tensors = {name: tensor.contiguous() for name, tensor in net.state_dict().items()}
    return save(_unshared(tensors), metadata={"umix": json.dumps(config, ensure_ascii=False)})


def loaded(net: Model, content: bytes) -> Model:
    """A copy of ``net`` whose weights were all read from the file."""
    from safetensors.torch import load

    copy = deepcopy(net)
    copy.load_state_dict(load(content))
    return copy


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, copied where two share their memory, which safetensors does not store."""
    seen: set[int] = set()
    copies = {}
    for name, tensor in tensors.items():
        copies[name] = tensor.clone() if tensor.data_ptr() in seen else tensor
        seen.add(tensor.data_ptr())
    return copies


def _plain_layers(net: Net) -> list[nn.Module] | None:
    """The layers of the body, if the net is nothing but layers of torch.nn in a row; None if there is more to it."""
    if net.encoder is not None or not isinstance(net.body, nn.Sequential) or not isinstance(net.head, nn.Linear):
        return None
    return list(net.body) if all(_is_plain(layer) for layer in net.body) else None


def _is_plain(layer: nn.Module) -> bool:
    """Whether the layer is one of torch.nn that its ``repr`` makes again."""
    return type(layer).__module__.startswith("torch.nn.") and bool(_PLAIN.fullmatch(repr(layer)))


def loading_lines(trained: TrainedModel) -> str:
    """Python that loads the state dict from ``model.safetensors`` and ``config.json`` in the current folder."""
    layers = _plain_layers(trained.net.as_layers(trained.title))
    lines = _made_by_umix(trained) if layers is None else _made_of_layers(layers, trained.net.head)
    lines += [
        f'net.load_state_dict(load_file("{WEIGHTS}"))',
        "net.eval()",
        f'config = json.loads(Path("{CONFIG}").read_text(encoding="utf-8"))',
        "",
        "",
        "def predict(x):",
        '    """The label of each row of x, which are inputs of the net, and the probability of every class."""',
        "    with torch.no_grad():",
        "        logits = net(x)",
        '    decided = (logits + torch.tensor(config["biases"])).argmax(dim=1)',
        '    scale, biases = config["calibration"]["scale"], torch.tensor(config["calibration"]["biases"])',
        '    return [config["classes"][place] for place in decided.tolist()], (scale * logits + biases).softmax(dim=1)',
    ]
    return "\n".join(lines) + "\n"


def _made_of_layers(layers: list[nn.Module], head: nn.Module) -> list[str]:
    """Lines that make the net in plain torch."""
    body = ["        body=nn.Sequential(),"]
    if layers:
        body = ["        body=nn.Sequential(", *(f"            nn.{layer!r}," for layer in layers), "        ),"]
    return [
        *("import json", "from collections import OrderedDict", "from pathlib import Path", ""),
        *("import torch", "from safetensors.torch import load_file", "from torch import nn", ""),
        *("net = nn.Sequential(", "    OrderedDict(", *body, f"        head=nn.{head!r},", "    )", ")"),
    ]


def _made_by_umix(trained: TrainedModel) -> list[str]:
    """Lines that make the net by umix, whose layers are not all of torch.nn; a folder of the net must lie beside them."""
    record, options, name = trained.record, dict(trained.record.plan["net"]), trained.short_title
    kind, implied = net_kind(name)
    left_out = {"name", "content", *implied, *kind.from_data}
    arguments = "".join(f", {key}={value!r}" for key, value in options.items() if key not in left_out)
    with_categories = f".with_categories({tuple(record.input_categories)})" if record.input_categories else ""
    example = f"torch.zeros({record.input_shape}, dtype=torch.{record.input_dtype})"
    return [
        *("import json", "from pathlib import Path", ""),
        *("import torch", "from safetensors.torch import load_file", ""),
        *("from umix.models.registry import net_settings", ""),
        f"settings = net_settings({name!r}{arguments}){with_categories}",
        f"net = settings.build({example}, {len(record.classes)})",
        *_prototypes(trained.net.head),
    ]


def _prototypes(head: nn.Module) -> list[str]:
    """Lines that put a head of prototypes in place of the last layer, if the net has one."""
    if not isinstance(head, PrototypeHead):
        return []
    return [
        "from umix.models.prototypes import PrototypeHead, use_prototypes",
        f"use_prototypes(net, PrototypeHead{tuple(head.prototypes.shape)})",
    ]
