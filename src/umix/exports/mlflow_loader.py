"""What MLflow imports to load a model that umix exported: a run's folder with nothing but what predictions need."""

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from umix.bench.runs.record import load_run
from umix.data.images.image_folder import ImageReader
from umix.data.rows.reader import NewInputs
from umix.errors import UmixWarning
from umix.exports.trained_model import TrainedModel

if TYPE_CHECKING:
    import pandas
    import polars

#: The file in the folder that says which epoch and decision were exported.
CHOSEN = "chosen.json"


@final
class Predictor:
    """Predicts as ``umix predict`` does, and gives a pandas frame."""

    def __init__(self, trained: TrainedModel) -> None:
        self._trained = trained

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> "pandas.DataFrame":
        """Label and probability of every class for each row; MLflow hands over ``params``, of which there are none."""
        prediction = self._trained.predict(self._inputs(model_input))
        for note in prediction.notes:
            warnings.warn(note, UmixWarning, stacklevel=2)
        return as_pandas(prediction.table)

    def _inputs(self, model_input: Any) -> NewInputs:
        import polars

        reader = self._trained.reader
        if isinstance(reader, ImageReader):
            files = [str(path) for path in model_input["path"]]
            return NewInputs(reader.images(Path(), files), reader.transform, ids={"path": polars.Series(files)})
        return reader.inputs(model_input)


def as_pandas(table: "polars.DataFrame") -> "pandas.DataFrame":
    """The same columns in pandas, for which polars itself would need pyarrow."""
    import pandas

    return pandas.DataFrame({column.name: column.to_list() for column in table.iter_columns()})


def _load_pyfunc(data_path: str) -> Predictor:
    """The model in the folder ``data_path``; MLflow calls it by this name."""
    folder = Path(data_path)
    chosen = json.loads((folder / CHOSEN).read_text(encoding="utf-8"))
    # A model of MLflow is code: MLflow imports what its file names. So its net may be code as well.
    trained = TrainedModel.in_folder(
        load_run(folder), select=chosen["select"], decide=chosen["decide"], trust_code=True
    )
    return Predictor(trained)
