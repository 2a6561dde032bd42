"""A file of torch.export (.pt2), which torch runs without umix: preprocessing, net and threshold as one graph."""

import io
import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from umix.core.calibration import Calibration
from umix.core.thresholds import calibrated_probabilities, predicted_classes
from umix.errors import UserError, cause
from umix.exports.preprocessing import SHORTEST, Preprocessing, Size

#: The name under which the description of the model is stored in the file.
EXTRA = "umix.json"
_LOUD = ("torch.onnx", "torch.export", "torch._export", "onnxscript", "onnx_ir")


@final
class WholeModel(nn.Module):
    """From the tensors that ``preprocessing`` takes to label [n], probabilities and logits [n, classes], as ``umix predict`` does.

    ``biases`` [classes] decide the label, ``calibration`` makes the probabilities; the logits are those of the net.
    """

    biases: Tensor

    def __init__(
        self, preprocessing: Preprocessing, net: nn.Module, biases: NDArray[np.float64], calibration: Calibration
    ) -> None:
        super().__init__()
        self.preprocessing = preprocessing
        self.net = net
        self.calibration = calibration
        self.register_buffer("biases", torch.from_numpy(biases))
        self.eval()

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits = self.net(self.preprocessing(*tensors))
        return predicted_classes(logits, self.biases), calibrated_probabilities(logits, self.calibration), logits


def traced(model: WholeModel, *, title: str) -> ExportedProgram:
    """The graph of ``model``; ``title`` names the net in errors.

    It is traced with zeros: the file keeps what it was traced with, which must not be rows of somebody's data.
    """
    inputs = model.preprocessing.tensors
    zeros = tuple(torch.zeros(tuple(map(_size, one.shape)), dtype=getattr(torch, one.dtype)) for one in inputs)
    axes = {"n": Dim("n"), "length": Dim("length", min=SHORTEST, max=model.preprocessing.longest)}
    shapes = tuple(
        {place: axes[size] for place, size in enumerate(one.shape) if isinstance(size, str)} for one in inputs
    )
    try:
        with quiet(), torch.no_grad():
            program = torch.export.export(model, zeros, dynamic_shapes=(shapes,))
    except Exception as error:  # tracing code of other libraries may raise anything
        raise UserError(
            f"The net {title} must be one that torch.export can trace, but it is not ({cause(error)}); export a state dict "
            "(.safetensors), or use umix predict."
        ) from error
    for part in program.graph_module.modules():
        if isinstance(part, torch.fx.GraphModule):
            for node in part.graph.nodes:
                node.meta.pop("stack_trace", None)  # names folders of this machine
    return program


def _size(size: Size) -> int:
    """The size of an axis of the zeros; one of 0 or 1 would not be traced as one that can be any."""
    return {"n": 2, "length": SHORTEST}[size] if isinstance(size, str) else size


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


@contextmanager
def quiet(*names: str) -> Iterator[None]:
    """Inside the block these loggers, and the exporters of torch, warn of nothing: what they warn of is not the user's."""
    loggers = [logging.getLogger(name) for name in (*_LOUD, *names)]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
