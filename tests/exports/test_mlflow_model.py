"""Models of MLflow: loaded by MLflow alone they predict as ``umix predict`` does."""

import json
from pathlib import Path

import polars
import pytest

import umix
from umix.bench.runs.record import RunRecord
from umix.errors import UserError
from umix.exports import mlflow_model


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_model_predicts_as_umix_does_and_nothing_of_it_is_pickled(
    record: RunRecord, people: polars.DataFrame, tmp_path: Path
) -> None:
    pandas, mlflow, folder = pytest.importorskip("pandas"), pytest.importorskip("mlflow"), tmp_path / "model"
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="it holds something else; choose another place"):
        umix.export(record, folder, format="mlflow")
    (tmp_path / "model" / "notes.txt").unlink()
    for threshold in ("off", "tuned"):  # the second takes the place of the first
        exported = umix.export(record, folder, format="mlflow", threshold=threshold)
        assert exported.check.sentence == "MLflow agrees with umix predict exactly on 1 made-up row."

    frame = pandas.DataFrame({name: people[name].to_list() for name in people.columns})
    frame["sex"] = frame["sex"].astype("category")
    assert frame["zip"].dtype == "int64"
    model = mlflow.pyfunc.load_model(str(folder))
    predicted, expected = model.predict(frame.drop(columns="income")), umix.predict(record, people)
    assert {name: predicted[name].to_list() for name in predicted} == expected.to_dict(as_series=False)

    signature = model.metadata.signature
    assert signature.inputs.input_names() == [name for name in people.columns if name != "income"]
    assert signature.outputs.input_names() == ["label", "p_poor", "p_rich"]
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    assert {"record.json", "columns.json", "epochs.csv"} & names == {"record.json", "columns.json"}
    assert not any(name.endswith((".pkl", ".pickle", ".parquet", ".py")) for name in names)
    example = json.loads((folder / "input_example.json").read_text())
    assert example["data"] == [[0.0, 0.0, 0.0, "f", "chef"]]  # made up, no row of the data


@pytest.mark.parametrize(("missing", "command"), [("mlflow", r"'umix\[mlflow\]'"), ("pandas", "pandas")])
def test_without_a_library_the_command_that_installs_it_is_said(
    record: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, command: str
) -> None:
    monkeypatch.setattr(mlflow_model, "installed", lambda name: name != missing)
    with pytest.raises(UserError, match=rf"needs {missing}, which is not installed: pip install {command}"):
        umix.export(record, tmp_path / "model", format="mlflow")
