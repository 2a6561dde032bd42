"""From a trained model to files: described, made, compared with ``umix predict``, and only then written."""

import json
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from umix.core.words import counted
from umix.errors import Setting, UserError
from umix.exports.comparison import CheckRows, Expected, check_rows, compare
from umix.exports.exported import Exported, Format, check_replaceable, format_of, is_folder, write_all
from umix.exports.mlflow_model import require_mlflow, write_mlflow_model
from umix.exports.model_card import CARD, card_of
from umix.exports.onnx_file import onnx_file, require_onnx, run_onnx_file
from umix.exports.preprocessing import OUTPUTS, Preprocessing, Ready, input_names
from umix.exports.preprocessing_of import preprocessing_of, ready_input, recipe
from umix.exports.state_dict import CONFIG, WEIGHTS, loaded, loading_lines, state_dict_file
from umix.exports.torch_file import WholeModel, run_torch_file, torch_file, traced
from umix.exports.trained_model import Roles, TrainedModel, described


def export_model(
    trained: TrainedModel, output: Path, *, format: str | None = None, license: str | None = None
) -> Exported:
    """Write ``trained`` to ``output``, in the format that its suffix or ``format`` says, and return what was written."""
    chosen = format_of(output, format)
    if license is not None and not (chosen == "card" or (chosen == "state_dict" and is_folder(output))):
        raise UserError(
            Setting("license"), f" must be given with a model card (README.md or a folder), got {str(output)!r}."
        )
    if chosen == "card":
        return _card(trained, output, license)
    if chosen in ("onnx", "pt2"):
        return _graph(trained, output, chosen)
    if chosen == "mlflow":
        return _mlflow(trained, output)
    return _state_dict(trained, output, license)


def _graph(trained: TrainedModel, output: Path, format: Format) -> Exported:
    """Export preprocessing, net and threshold as one graph, to ONNX or by torch.export."""
    if format == "onnx":
        require_onnx()
    check_replaceable(output)
    record, reader = trained.record, trained.reader
    preprocessing = preprocessing_of(reader, record)
    module = trained.net.as_module(trained.title)
    program = traced(WholeModel(preprocessing, module, trained.biases, trained.calibration), title=trained.title)
    config = described(trained, preprocessing, outputs=OUTPUTS)
    rows = check_rows(record, reader, trained.net, preprocessing)
    halves = (slice(None, -1), slice(-1, None))  # one row alone must do as well
    if format == "onnx":
        content, by = onnx_file(program, preprocessing, record.classes, config), "onnxruntime"
        feed = rows.columns or _named(preprocessing, rows)
        parts = [
            run_onnx_file(content, {name: given[half] for name, given in feed.items()}, record.classes)
            for half in halves
        ]
    else:
        content, by = torch_file(program, config), "torch"
        parts = [run_torch_file(content, [given[half] for given in rows.tensors]) for half in halves]
    label, probabilities = map(torch.cat, zip(*parts, strict=True))
    expected = Expected.of(trained, rows.inputs)
    check = compare(expected, label, probabilities, by=by, output=str(output))
    write_all({output: content})
    return Exported(output, format, (output,), _inputs(preprocessing, format), OUTPUTS, preprocessing.left_out, check)


def _state_dict(trained: TrainedModel, output: Path, license: str | None) -> Exported:
    """Export the weights of the net with their config: in one file, or as a folder with a card."""
    folder = is_folder(output)
    files = [output / name for name in (WEIGHTS, CONFIG, CARD)] if folder else [output]
    for file in files:
        check_replaceable(file)
    reader, net = trained.reader, trained.net.as_layers(trained.title)
    lines = loading_lines(trained)
    config = described(trained, outputs=("logits",)) | {"preprocessing": recipe(reader), "load": lines.splitlines()}
    content = state_dict_file(net, config)
    where = CONFIG if folder else "the metadata of the file"
    beyond = preprocessing_of(reader, trained.record).left_out
    left_out = [f"preprocessing, threshold and calibration, which {where} describes", *beyond]
    ready = Ready(ready_input(trained.record), left_out)
    rows = check_rows(trained.record, reader, net, ready)
    expected = Expected.of(trained, rows.inputs)
    with torch.no_grad():
        whole = WholeModel(ready, loaded(net, content), trained.biases, trained.calibration)
        label, probabilities, _ = whole(rows.inputs.ready())
    check = compare(expected, label, probabilities, by="The state dict", output=str(output))
    contents = {files[0]: content}
    if folder:
        contents[files[1]] = (json.dumps(config, indent=1, ensure_ascii=False) + "\n").encode()
        card = card_of(trained, reader, license=license, loading=lines, not_included=ready.left_out)
        contents[files[2]] = card.encode()
    write_all(contents)
    return Exported(
        output, "state_dict", tuple(files), _inputs(ready, "state_dict"), ("logits",), ready.left_out, check
    )


def _card(trained: TrainedModel, output: Path, license: str | None) -> Exported:
    """Write the model card alone; a run on a benchmark has one too."""
    check_replaceable(output)
    write_all({output: card_of(trained, trained.reader, license=license).encode()})
    return Exported(output, "card", (output,))


def _mlflow(trained: TrainedModel, output: Path) -> Exported:
    """Export a model of MLflow."""
    trained.require_reader()
    require_mlflow()
    check = write_mlflow_model(trained, output)
    files = tuple(sorted(path for path in output.rglob("*") if path.is_file()))
    content = trained.record.plan["net"].get("content")
    not_included = (f"the files of the net {trained.title}, which must stay there",) if content else ()
    takes = Roles.of(trained.record, trained.reader).inputs
    outputs = ("label", *(f"p_{name}" for name in trained.record.classes))
    return Exported(output, "mlflow", files, takes, outputs, not_included, check)


def _named(preprocessing: Preprocessing, rows: CheckRows) -> dict[str, NDArray[Any]]:
    """The tensors of ``rows`` by the name of the input in ONNX."""
    names = input_names(preprocessing)
    return {names[one.name]: given.numpy() for one, given in zip(preprocessing.tensors, rows.tensors, strict=True)}


def _inputs(preprocessing: Preprocessing, format: Format) -> str:
    """What the model takes, in words."""
    if format == "onnx" and preprocessing.columns:
        kinds = {"numbers": preprocessing.numbers, "texts": preprocessing.categories, "dates": preprocessing.dates}
        return " and ".join(
            f"{counted(len(columns), 'column')} of {kind}" for kind, columns in kinds.items() if columns
        )
    return " and ".join(
        f"{tensor.name} {tensor.dtype} [{', '.join(map(str, tensor.shape))}]" for tensor in preprocessing.tensors
    )
