"""A model in ONNX: columns of a table are inputs of their own, categories as texts, and the label is the name of the class."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.export import ExportedProgram

from umix.errors import UserError, cause
from umix.exports.comparison import places
from umix.exports.preprocessing import OUTPUTS, ColumnInput, Preprocessing, input_names
from umix.exports.torch_file import quiet
from umix.models.library import install_command, installed

if TYPE_CHECKING:
    import onnx

_INNER = "model/"  # begins the names of all values inside, which must not meet the names of columns
_OPSETS = {"": 20, "ai.onnx.ml": 3}
_TYPES = {"float32": "FLOAT", "int64": "INT64"}


def require_onnx() -> None:
    """Raise unless everything that writes and runs ONNX files is installed."""
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if not installed(name):
            raise UserError(
                f"A file in ONNX needs {name} to be written and checked, which is not installed: "
                f"{install_command(name, 'onnx')}."
            )


def onnx_file(
    program: ExportedProgram, preprocessing: Preprocessing, classes: Sequence[str], config: Mapping[str, Any]
) -> bytes:
    """The content of the file: ``program`` with columns as inputs and names of ``classes`` as labels; ``config`` as metadata."""
    import onnx
    from onnx import helper

    made = _converted(program, [tensor.name for tensor in preprocessing.tensors])
    graph, build = made.graph, _Nodes()
    inputs = _columns(build, preprocessing) if preprocessing.columns else _tensors(build, preprocessing)
    label = helper.make_node(
        "LabelEncoder",
        [_INNER + OUTPUTS[0]],
        [OUTPUTS[0]],
        domain="ai.onnx.ml",
        keys_int64s=list(range(len(classes))),
        values_strings=list(classes),
    )
    others = [helper.make_node("Identity", [_INNER + name], [name]) for name in OUTPUTS[1:]]
    model = helper.make_model(
        helper.make_graph(
            [*build.nodes, *graph.node, label, *others],
            "umix",
            inputs,
            [
                helper.make_tensor_value_info(OUTPUTS[0], onnx.TensorProto.STRING, ["n"]),
                *(
                    helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", len(classes)])
                    for name in OUTPUTS[1:]
                ),
            ],
            initializer=graph.initializer,
        ),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()],
        functions=made.functions,
        ir_version=made.ir_version,
        producer_name="umix",
        producer_version=config["umix"],
        doc_string=config["about"],
    )
    helper.set_model_props(model, {"umix": json.dumps(config, ensure_ascii=False)})
    try:
        content: bytes = model.SerializeToString()
    except ValueError as error:
        raise UserError(
            f"A file in ONNX must have less than 2 GB, but this model has more ({error}); export it as .pt2 or .safetensors."
        ) from None
    onnx.checker.check_model(content, full_check=True)
    return content


def run_onnx_file(content: bytes, feed: Mapping[str, NDArray[Any]], classes: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Label (its place among the ``classes``) and probabilities that onnxruntime gives for ``feed``, arrays by input."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    label, probabilities = session.run(list(OUTPUTS[:2]), dict(feed))
    return places(label.tolist(), classes), torch.from_numpy(probabilities)


def _converted(program: ExportedProgram, inputs: Sequence[str]) -> "onnx.ModelProto":
    """``program`` in ONNX; its values have names that no column has, and nothing in it tells of this machine."""
    try:
        with quiet():
            made: Any = torch.onnx.export(
                program,
                input_names=inputs,
                output_names=OUTPUTS,
                opset_version=_OPSETS[""],
                dynamo=True,
                verbose=False,
            )
        model: onnx.ModelProto = made.model_proto
    except Exception as error:  # operations that ONNX does not know raise various types
        raise UserError(
            f"The net must be one that torch can write in ONNX, but it is not ({cause(error)}); export it as .pt2."
        ) from error
    for node in model.graph.node:
        node.input[:] = [_INNER + name if name else "" for name in node.input]
        node.output[:] = [_INNER + name if name else "" for name in node.output]
        node.name = _INNER + node.name
        if any(attribute.HasField("g") for attribute in node.attribute):
            raise UserError(
                "A net that is written in ONNX must have no branches or loops, got some; export it as .pt2."
            )
    for constant in model.graph.initializer:
        constant.name = _INNER + constant.name
    for node in (*model.graph.node, *(node for function in model.functions for node in function.node)):
        del node.metadata_props[:]
        node.ClearField("doc_string")
    return model


@final
class _Nodes:
    """Nodes that come before the graph of the net."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []

    def add(self, kind: str, inputs: Sequence[str], output: str, **options: Any) -> str:
        """A node of this ``kind``; returns ``output``."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, list(inputs), [output], **options))
        return output


def _tensors(build: _Nodes, preprocessing: Preprocessing) -> "list[onnx.ValueInfoProto]":
    """The tensors that the graph takes, as inputs."""
    import onnx
    from onnx import helper

    names, inputs = input_names(preprocessing), []
    for tensor in preprocessing.tensors:
        kind = getattr(onnx.TensorProto, _TYPES[tensor.dtype])
        inputs.append(helper.make_tensor_value_info(names[tensor.name], kind, list(tensor.shape)))
        build.add("Identity", [names[tensor.name]], _INNER + tensor.name)
    return inputs


def _columns(build: _Nodes, preprocessing: Preprocessing) -> "list[onnx.ValueInfoProto]":
    """An input for each column, float, text or integer [n, 1], and the nodes that join them to the tensors that the graph takes."""
    import onnx
    from onnx import helper

    names, inputs = input_names(preprocessing), []
    types = {"number": onnx.TensorProto.FLOAT, "category": onnx.TensorProto.STRING, "date": onnx.TensorProto.INT64}
    parts: dict[str, list[str]] = {"numbers": [], "codes": [], "dates": []}
    for place, column in enumerate(preprocessing.columns):
        name = names[column.name]
        inputs.append(helper.make_tensor_value_info(name, types[column.kind], ["n", 1]))
        if column.kind == "category":
            parts["codes"].append(_code(build, column, name, f"{_INNER}column {place}"))
        else:
            parts["numbers" if column.kind == "number" else "dates"].append(name)
    for tensor in preprocessing.tensors:
        build.add("Concat", parts[tensor.name], _INNER + tensor.name, axis=1)
    return inputs


def _code(build: _Nodes, column: ColumnInput, name: str, prefix: str) -> str:
    """The name of the codes, int64 [n, 1], of a column of texts."""
    return build.add(
        "LabelEncoder",
        [name],
        f"{prefix} code",
        domain="ai.onnx.ml",
        keys_strings=list(column.values),
        values_int64s=list(range(len(column.values))),
        default_int64=-1,
    )
