"""A model of MLflow (python_function): a folder like a run's with what predictions need, a signature and an example.

MLflow imports this module to load the model and calls ``_load_pyfunc``.
"""

import json
import warnings
from importlib.metadata import packages_distributions, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch

from umix.bench.runs.record import load_run
from umix.data.arrays import ArrayPreprocessing
from umix.data.images.folder_listing import PATH
from umix.data.images.image_folder import ImageReader
from umix.data.rows.reader import NewInputs, Reader
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.texts.text_reader import TextReader
from umix.errors import UmixWarning, UserError
from umix.exports.comparison import Expected, compare, places
from umix.exports.exported import Agreement, whole_folder
from umix.exports.torch_file import quiet
from umix.exports.trained_model import TrainedModel, described
from umix.models.library import install_command, installed
from umix.models.registry import net_kind
from umix.run_folder import weights_path
from umix.store import atomic_write, write_tensors
from umix.version import __version__

if TYPE_CHECKING:
    import pandas
    import polars

#: The file in which MLflow describes a model.
MODEL = "MLmodel"
#: The file in the folder that says which epoch and threshold were exported.
CHOSEN = "chosen.json"
_RUN = "run"


def require_mlflow() -> None:
    """Raise unless everything that writes a model of MLflow is installed."""
    for name, command in (("mlflow", install_command("mlflow", "mlflow")), ("pandas", "pip install pandas")):
        if not installed(name):
            raise UserError(f"A model of MLflow needs {name}, which is not installed: {command}.")


def write_mlflow_model(trained: TrainedModel, output: Path) -> Agreement:
    """Write the model into the folder ``output``, after MLflow has loaded it and predicted as umix does."""
    reader = trained.require_reader()
    example = _example(reader)
    with quiet():
        import mlflow.pyfunc  # sets the level of its logger
    with whole_folder(output, marked=MODEL) as folder, quiet("mlflow"):  # it warns of its own code
        run = folder.with_name(_RUN)
        _write_run(trained, run)
        mlflow.pyfunc.save_model(
            folder,
            loader_module=__name__,
            data_path=str(run),
            signature=_signature(trained, example),
            input_example=None if isinstance(reader, ImageReader) else example,
            pip_requirements=_requirements(trained),
            metadata={"umix": described(trained) | {"columns": getattr(reader, "kinds", {})}},
        )
        return _check(trained, mlflow.pyfunc.load_model(str(folder)), output)


def _write_run(trained: TrainedModel, folder: Path) -> None:
    """Write what predictions need, as it lies in the folder of a run."""
    record, net = trained.record, trained.net
    folder.mkdir()
    trained.require_reader().save(folder)
    frozen = bool(record.plan["net"].get("freeze"))
    state = net.state_dict()
    weights = {name: tensor for name, tensor in state.items() if name.startswith("head.") or not frozen}
    write_tensors(weights_path(folder, trained.choice.epoch), weights, {"kind": "weights"})
    copy = record.model_copy()
    copy.keep_thresholds(record.threshold_counts)
    copy.save(folder)
    chosen = {"select": trained.select, "threshold": trained.threshold}
    atomic_write(folder / CHOSEN, json.dumps(chosen).encode())


def _signature(trained: TrainedModel, example: Any) -> Any:
    """The inputs and outputs: an array has its shape; columns may hold whatever ``umix predict`` reads, and may be missing.

    A column of MLflow's type double takes no whole numbers and one of strings no pandas categories, so their type is any.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema, TensorSpec
    from mlflow.types.schema import AnyType

    reader = trained.require_reader()
    inputs: list[ColSpec | TensorSpec]
    if isinstance(reader, ArrayPreprocessing):
        inputs = [TensorSpec(np.dtype(np.float32), (-1, *reader.shape))]
    elif isinstance(reader, TablePreprocessing):
        inputs = [ColSpec(AnyType(), name) for name in _used(reader)]
        inputs += [ColSpec(AnyType(), reader.id, required=False)] if reader.id else []
    else:
        inputs = [ColSpec("string", name) for name in example.columns]
    ids = [PATH] if isinstance(reader, ImageReader) else []
    outputs: list[ColSpec | TensorSpec] = [ColSpec("string", name) for name in (*ids, "label")]
    outputs += [ColSpec("double", f"p_{name}") for name in trained.record.classes]
    return ModelSignature(inputs=Schema(inputs), outputs=Schema(outputs))


def _used(reader: TablePreprocessing) -> list[str]:
    return [name for name in reader.columns if name not in reader.dropped]


def _example(reader: Reader) -> Any:
    """An example that is made up, so that no row of the data leaves with the model."""
    import pandas

    if isinstance(reader, ArrayPreprocessing):
        return np.zeros((1, *reader.shape), dtype=np.float32)
    if isinstance(reader, ImageReader):
        return pandas.DataFrame({PATH: ["image.png"]})
    if isinstance(reader, TextReader):
        return pandas.DataFrame({reader.column: ["a text"]})
    if isinstance(reader, TablePreprocessing):
        kinds: dict[str, Any] = {"number": 0.0, "decimal_comma": 0.0, "text": "a text", "moment": "2024-01-31"}
        values = {name: next(iter(reader.values.get(name, ())), kinds[reader.kinds[name]]) for name in _used(reader)}
        return pandas.DataFrame({name: [value] for name, value in values.items()})
    raise UserError(f"A model of MLflow must read tables, arrays, texts or images, got {type(reader).__name__}.")


def _requirements(trained: TrainedModel) -> list[str]:
    """The packages that predicting needs, at the versions of this environment."""
    library = net_kind(trained.title)[0].library.partition(".")[0]
    packages = packages_distributions().get(library, [library])[:1] if library else []
    pinned = [f"{name}=={version(name).partition('+')[0]}" for name in ("torch", "pandas", *packages)]
    return [f"umix=={__version__}", *pinned]


def _check(trained: TrainedModel, model: Any, output: Path) -> Agreement:
    """The comparison of what MLflow's model predicts of a made-up row with what ``umix predict`` does."""
    reader, classes = trained.require_reader(), trained.record.classes
    with TemporaryDirectory() as folder:
        example = _example(reader)
        if isinstance(reader, ImageReader):
            example[PATH] = str(_gray_image(Path(folder), reader.size))
        predicted, expected = model.predict(example), Expected.of(trained, _new_inputs(reader, example))
    probabilities = np.stack([predicted[f"p_{name}"].to_numpy(np.float32) for name in classes], axis=1)
    label = places(predicted["label"].to_list(), classes)
    return compare(expected, label, torch.from_numpy(probabilities), by="MLflow", output=str(output))


@final
class Predictor:
    """Predicts as ``umix predict`` does, and gives a pandas frame."""

    def __init__(self, trained: TrainedModel) -> None:
        self._trained = trained

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> "pandas.DataFrame":
        """Label and probability of every class for each row; MLflow hands over ``params``, of which there are none."""
        prediction = self._trained.predict(_new_inputs(self._trained.require_reader(), model_input))
        for note in prediction.notes:
            warnings.warn(note, UmixWarning, stacklevel=2)
        return _as_pandas(prediction.table)


def _new_inputs(reader: Reader, model_input: Any) -> NewInputs:
    """What MLflow hands over, as inputs: a frame or an array, or a frame with the paths of images."""
    import polars

    if isinstance(reader, ImageReader):
        files = [str(path) for path in model_input[PATH]]
        return NewInputs(reader.images(Path(), files), reader.transform, ids={PATH: polars.Series(files)})
    return reader.inputs(model_input)


def _gray_image(folder: Path, size: int) -> Path:
    """An image file in ``folder``."""
    from PIL import Image

    path = folder / "image.png"
    Image.new("RGB", (size, size), "gray").save(path)
    return path


def _as_pandas(table: "polars.DataFrame") -> "pandas.DataFrame":
    """The same columns in pandas, for which polars itself would need pyarrow."""
    import pandas

    return pandas.DataFrame({column.name: column.to_list() for column in table.iter_columns()})


def _load_pyfunc(data_path: str) -> Predictor:
    """The model in the folder ``data_path``; MLflow calls it by this name."""
    folder = Path(data_path)
    chosen = json.loads((folder / CHOSEN).read_text(encoding="utf-8"))
    # A model of MLflow is code: MLflow imports what its file names. So its net may be code as well.
    trained = TrainedModel.in_folder(
        load_run(folder), select=chosen["select"], threshold=chosen["threshold"], trust_code=True
    )
    return Predictor(trained)
