"""A module as a graph that needs no Python code: by torch.export, for any number of rows."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.export import Dim, ExportedProgram

from umix.errors import UserError, cause
from umix.exports.preprocessing import SHORTEST, Size
from umix.exports.whole_model import WholeModel

_LOUD = ("torch.onnx", "torch.export", "torch._export", "onnxscript", "onnx_ir")


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


@contextmanager
def quiet() -> Iterator[None]:
    """Inside the block the exporters of torch warn of nothing; what they warn of is not the user's."""
    loggers = [logging.getLogger(name) for name in _LOUD]
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
