"""Graphs in files: run without umix, they give what ``umix predict`` gives."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import polars
import pytest
import torch

import umix
from umix.bench.predict import reader
from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.errors import UserError
from umix.exports import onnx_file, write
from umix.exports.preprocessing import NO_DATE
from umix.exports.torch_file import EXTRA
from umix.exports.trained_model import TrainedModel
from umix.models.registry import net_settings


@pytest.fixture(scope="module")
def new(people: polars.DataFrame) -> polars.DataFrame:
    """Rows with every kind of missing and unseen value."""
    return polars.concat(
        [
            people.drop("income").head(20).cast({"zip": polars.Float64}),
            polars.DataFrame(
                {
                    "age": [None, 1e6, -3.0, float("nan")],
                    "hours-per-week": [40.0, None, 1e-9, 5.0],
                    "zip": [3e6, 3.2e6, None, 7.0],
                    "sex": ["x", None, "", "f"],
                    "label": [None, "  ", "N/A", "pilot"],
                }
            ),
        ]
    )


def predicted(run: RunRecord, new: polars.DataFrame) -> tuple[list[str], np.ndarray]:
    with pytest.warns(UserWarning, match="did not occur in training"):
        table = umix.predict(run, new)
    return table["label"].to_list(), table.select("p_poor", "p_rich").to_numpy()


@pytest.mark.system
def test_onnx_takes_raw_columns_gives_the_predictions_of_umix_and_says_what_it_is(
    record: RunRecord, new: polars.DataFrame, tmp_path: Path
) -> None:
    onnxruntime, path = pytest.importorskip("onnxruntime"), tmp_path / "model.onnx"
    exported = umix.export(record, path)
    first, second = str(exported).splitlines()
    assert first.endswith("takes 3 columns of numbers and 2 columns of texts; gives label, probabilities, logits.")
    assert second.startswith("onnxruntime agrees with umix predict ")
    assert exported.check.difference < 1e-5

    session = onnxruntime.InferenceSession(path)
    feed = {}
    for column in new.iter_columns():
        if column.dtype == polars.String:
            name = "label (input)" if column.name == "label" else column.name  # no input may be called as an output is
            feed[name] = np.array(column.fill_null("").to_list(), dtype=object)[:, None]
        else:
            feed[column.name] = column.cast(polars.Float32).fill_null(np.nan).to_numpy()[:, None]
    assert [one.name for one in session.get_inputs()] == list(feed)
    label, probabilities, logits = session.run(["label", "probabilities", "logits"], feed)
    labels, expected = predicted(record, new)
    assert label.tolist() == labels
    assert probabilities == pytest.approx(expected, abs=1e-5)
    assert torch.from_numpy(logits).softmax(dim=1).numpy() == pytest.approx(expected, abs=1e-5)

    about = session.get_modelmeta()
    config = json.loads(about.custom_metadata_map["umix"])
    assert (config["key"], config["classes"]) == (record.key, ["poor", "rich"])
    assert [column["name"] for column in config["columns"]] == ["age", "hours-per-week", "zip", "sex", "label"]
    assert about.description.startswith("Predicts income (poor, rich), trained on people.csv")
    for folder in (str(Path(write.__file__).parents[1]), torch.__path__[0]):
        assert folder.encode() not in path.read_bytes()


def test_torch_export_takes_numbers_and_codes_and_holds_no_row_of_the_data(
    coded: RunRecord, new: polars.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "model.pt2"
    assert umix.export(coded, path).check.by == "torch"
    extra = {EXTRA: ""}
    program = torch.export.load(path, extra_files=extra)
    columns = json.loads(extra[EXTRA])["columns"]
    numbers = [new[one["name"]].cast(polars.Float32) for one in columns if one["kind"] == "number"]
    codes = [
        [one["values"].index(text) if text in one["values"] else -1 for text in new[one["name"]]]
        for one in columns
        if one["kind"] == "category"
    ]
    given = torch.tensor(np.stack([column.fill_null(np.nan).to_numpy() for column in numbers], axis=1))
    label, probabilities, _ = program.module()(given, torch.tensor(codes).T)
    labels, expected = predicted(coded, new)
    assert [coded.classes[place] for place in label] == labels
    assert probabilities.detach().numpy() == pytest.approx(expected, abs=1e-5)
    assert all(not tensor.any() for tensor in program.example_inputs[0])


def test_three_classes_in_an_array_are_decided_as_predict_does_it(arrays: RunRecord, tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(3, [1, 5, 100], size=(50, 3))
    for how in ("tuned", "off"):
        umix.export(arrays, tmp_path / "model.pt2", threshold=how)
        label, _, _ = torch.export.load(tmp_path / "model.pt2").module()(torch.from_numpy(x).float())
        assert [arrays.classes[place] for place in label] == umix.predict(arrays, x, threshold=how)["label"].to_list()


def test_texts_come_in_as_token_ids_of_any_length_and_no_folder_of_this_machine_is_named(
    tiny_bert: Path, tmp_path: Path
) -> None:
    texts = ["good film", "bad", "the film was bad, bad film", "good"] * 10
    polars.DataFrame({"text": texts, "y": ["pos", "neg"] * 20}).write_csv(tmp_path / "films.csv")
    settings = {"label": "y", "text": "text", "net": f"hf:{tiny_bert}", "epochs": 1}
    run = execute(RunSpec(task=str(tmp_path / "films.csv"), method="erm", settings=settings), out=tmp_path)
    exported = umix.export(run, tmp_path / "model.pt2")
    assert exported.not_included == ("turning the texts of 'text' into 2 to 16 token ids, padded with 0",)
    assert str(tiny_bert).encode() not in (tmp_path / "model.pt2").read_bytes()
    module = torch.export.load(tmp_path / "model.pt2").module()
    for new in (texts[:2], texts[2:3]):  # of 4 and of 9 tokens
        frame = polars.DataFrame({"text": new})
        label, _, _ = module(umix.load_result(run.directory).inputs(frame))
        assert [run.classes[place] for place in label] == umix.predict(run, frame)["label"].to_list()


def test_a_result_in_memory_is_exported_too(people: polars.DataFrame, tmp_path: Path) -> None:
    task = umix.task_from_table(people, label="income")
    result = umix.train(task, "erm", fit={"epochs": 1}, net={"name": "mlp", "hidden": [4]})
    exported = result.export(tmp_path / "model.pt2")
    assert exported.check.rows == 33
    assert (tmp_path / "model.pt2").stat().st_size == exported.size


def test_a_model_that_differs_from_predict_is_not_written(
    arrays: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Callable[..., tuple[torch.Tensor, torch.Tensor]] = write.run_torch_file

    def shifted(*given: object) -> tuple[torch.Tensor, torch.Tensor]:
        label, probabilities = run(*given)
        return label, probabilities + 2e-5

    monkeypatch.setattr(write, "run_torch_file", shifted)
    with pytest.raises(UserError, match=r"must give what umix predict gives to 1e-05, but it differs by 2\.0e-05"):
        umix.export(arrays, tmp_path / "model.pt2")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["onnx", "onnxscript", "onnxruntime"])
def test_without_a_library_of_onnx_the_command_that_installs_it_is_said(
    record: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(onnx_file, "installed", lambda name: name != missing)
    with pytest.raises(UserError, match=rf"needs {missing} .* not installed: pip install 'umix\[onnx\]'"):
        umix.export(record, tmp_path / "model.onnx")


def test_a_net_that_cannot_be_traced_is_refused_in_one_sentence(
    arrays: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object, **options: object) -> None:
        raise RuntimeError("data-dependent\ncontrol flow")

    monkeypatch.setattr(torch.export, "export", refuse)
    with pytest.raises(
        UserError, match=r"The net linear must be one that torch\.export can trace.*data-dependent control flow"
    ):
        umix.export(arrays, tmp_path / "model.pt2")


@pytest.mark.parametrize("output", ["model.safetensors", "model"])
def test_trees_have_no_state_dict(arrays: RunRecord, tmp_path: Path, output: str) -> None:
    trees = net_settings("trees").build(torch.zeros(3), 3)
    forest = arrays.model_copy(update={"net": "trees"})
    trained = TrainedModel(forest, lambda epoch: trees, lambda: reader(arrays))
    with pytest.raises(
        UserError,
        match=r"^A state dict is one of a net, but this run is trees; export it as \.onnx or \.pt2, or use format=mlflow\.$",
    ):
        write.export_model(trained, tmp_path / output)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [pytest.param("model.onnx", marks=pytest.mark.system), "model.pt2"])
def test_trees_and_dates_are_exported_and_agree_with_predict(
    people: polars.DataFrame, tmp_path: Path, name: str
) -> None:
    if name == "model.onnx":
        pytest.importorskip("onnxruntime")
    hours = np.random.default_rng(0).integers(0, 40_000, len(people))
    moments = polars.Series("moment", hours).cast(polars.Int64) * 3_600_000_000
    dated = people.with_columns(moments.cast(polars.Datetime("us"))).drop("label")
    task = umix.task_from_table(dated, label="income", groups="sex")
    result = umix.train(task, "reweight", net="trees", fit={"epochs": 3})
    exported = result.export(tmp_path / name)
    assert exported.not_included == ()
    assert exported.check.difference < 1e-5

    new = dated.drop("income").head(40)
    new = new.with_columns(moment=new["moment"].scatter(3, None), sex=new["sex"].scatter(5, "x"))
    with pytest.warns(UserWarning, match="did not occur in training"):
        expected = result.predict(new)
    seconds = new["moment"].dt.epoch("s").fill_null(NO_DATE).to_numpy()[:, None]
    numbers = {
        column: new[column].cast(polars.Float32).fill_null(np.nan).to_numpy()[:, None] for column in new.columns[:3]
    }
    if name == "model.onnx":
        feed = {**numbers, "sex": new["sex"].to_numpy()[:, None].astype(object), "moment": seconds}
        session = pytest.importorskip("onnxruntime").InferenceSession(tmp_path / name)
        label, probabilities = session.run(["label", "probabilities"], feed)
    else:
        codes = torch.tensor([["f", "m"].index(sex) if sex != "x" else -1 for sex in new["sex"]])[:, None]
        given = torch.from_numpy(np.concatenate(list(numbers.values()), axis=1)), codes, torch.tensor(seconds)
        places, p, _ = torch.export.load(tmp_path / name).module()(*given)
        label, probabilities = np.array(["poor", "rich"])[places.numpy()], p.numpy()
    assert label.tolist() == expected["label"].to_list()
    assert probabilities == pytest.approx(expected.select("p_poor", "p_rich").to_numpy(), abs=1e-5)


@pytest.mark.parametrize("name", [pytest.param("model.onnx", marks=pytest.mark.system), "model.pt2"])
def test_a_net_reads_dates_before_1970_and_missing_ones_as_predict_does(
    people: polars.DataFrame, tmp_path: Path, name: str
) -> None:
    if name == "model.onnx":
        pytest.importorskip("onnxruntime")
    minutes = np.random.default_rng(1).integers(-5_000_000, 5_000_000, len(people))  # nine years around 1970
    born = polars.Series("born", minutes * 60_000_000).cast(polars.Datetime("us")).scatter([0, 9], None)
    dated = people.select("age", "income").with_columns(born)
    task = umix.task_from_table(dated, label="income")
    result = umix.train(task, "erm", net={"name": "mlp", "hidden": [4]}, fit={"epochs": 1})
    result.export(tmp_path / name)

    new = dated.drop("income").head(40)
    expected = result.predict(new)
    age = new["age"].cast(polars.Float32).fill_null(np.nan).to_numpy()[:, None]
    seconds = new["born"].dt.epoch("s").fill_null(NO_DATE).to_numpy()[:, None]
    if name == "model.onnx":
        session = pytest.importorskip("onnxruntime").InferenceSession(tmp_path / name)
        label, probabilities = session.run(["label", "probabilities"], {"age": age, "born": seconds})
    else:
        places, p, _ = torch.export.load(tmp_path / name).module()(torch.tensor(age), torch.tensor(seconds))
        label, probabilities = np.array(["poor", "rich"])[places.numpy()], p.detach().numpy()
    assert label.tolist() == expected["label"].to_list()
    assert probabilities == pytest.approx(expected.select("p_poor", "p_rich").to_numpy(), abs=1e-5)


def test_dates_of_the_year_9999_that_stand_for_no_end_are_exported(people: polars.DataFrame, tmp_path: Path) -> None:
    ends = polars.Series("end", [date(9999, 12, 31), date(2020, 1, 1), date(2021, 6, 1)] * 100)
    task = umix.task_from_table(people.select("age", "income").with_columns(ends), label="income")
    result = umix.train(task, "erm", net={"name": "mlp", "hidden": [4]}, fit={"epochs": 1})
    assert result.export(tmp_path / "model.pt2").check.difference < 1e-5


def test_a_run_on_a_benchmark_takes_ready_inputs(tmp_path: Path) -> None:
    run = execute(RunSpec(task="four_moons", method="erm", settings={"epochs": 1}), out=tmp_path / "runs")
    exported = umix.export(run, tmp_path / "model.pt2")
    assert exported.not_included == ("what umix.load_task('four_moons') does to make its inputs",)
    x = umix.load_task("four_moons").splits["test"].x[:50]
    _, _, logits = torch.export.load(tmp_path / "model.pt2").module()(x)
    with torch.no_grad():
        torch.testing.assert_close(logits, TrainedModel.in_folder(run).net(x))
    assert umix.export(run, tmp_path / "folder").files
    with pytest.raises(UserError, match=r"^A model of MLflow must be of a run on data of one's own .* got a run on "):
        umix.export(run, tmp_path / "mlflow", format="mlflow")


@pytest.mark.system
def test_what_onnx_cannot_express_is_refused_in_one_sentence(
    arrays: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")

    def refuse(*given: object, **options: object) -> None:
        raise RuntimeError("no such\noperation")

    monkeypatch.setattr(torch.onnx, "export", refuse)
    with pytest.raises(UserError, match=r"write in ONNX, but it is not .*no such operation.*; export it as \.pt2"):
        umix.export(arrays, tmp_path / "model.onnx")


def test_a_licence_needs_a_card(arrays: RunRecord, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"license= must be given with a model card"):
        umix.export(arrays, tmp_path / "model.pt2", license="mit")


@pytest.mark.parametrize(
    "name", [pytest.param("model.onnx", marks=pytest.mark.system), "model.pt2", "model.safetensors", "folder"]
)
def test_a_calibrated_run_is_exported_with_its_calibration(record: RunRecord, tmp_path: Path, name: str) -> None:
    if name == "model.onnx":
        pytest.importorskip("onnxruntime")
    kept = {epoch: [0.4, -0.8, 0.8] for epoch in range(4)}
    run = record.model_copy(update={"calibrations": kept})
    trained = TrainedModel.in_folder(run)
    assert umix.export(run, tmp_path / name).check.difference < 1e-5  # compared with predict, which is calibrated
    inputs = trained.reader.inputs(polars.read_csv(record.task).drop("income"))
    with torch.no_grad():
        logits = trained.net(inputs.ready())
    expected = (0.4 * logits + torch.tensor([-0.8, 0.8])).softmax(dim=1).numpy()
    assert trained.predict(inputs).table.select("p_poor", "p_rich").to_numpy() == pytest.approx(expected, abs=1e-6)
    if name == "folder":
        config = json.loads((tmp_path / name / "config.json").read_text())
        assert config["calibration"] == {"scale": 0.4, "biases": [-0.8, 0.8]}
        assert config["threshold"] == pytest.approx(run.summary().threshold)
        assert "calibrated on validation, and so is the threshold" in (tmp_path / name / "README.md").read_text()
