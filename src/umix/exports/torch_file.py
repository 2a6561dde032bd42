"""A file of torch.export (.pt2), which torch runs without umix."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from umix.exports.traced import quiet

#: The name under which the description of the model is stored in the file.
EXTRA = "umix.json"


def torch_file(program: ExportedProgram, config: Mapping[str, Any]) -> bytes:
    """The content of the file: the graph, its weights, and ``config`` as JSON."""
    content = io.BytesIO()
    with quiet():
        torch.export.save(program, content, extra_files={EXTRA: json.dumps(config, ensure_ascii=False)})
    return content.getvalue()


def run_torch_file(content: bytes, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Label (its place among the classes) and probabilities that the file gives for ``tensors``."""
    with quiet(), torch.no_grad():
        module = torch.export.load(io.BytesIO(content)).module()
        label, probabilities, _ = module(*tensors)
    return label, probabilities
