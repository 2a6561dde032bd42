"""Runs on tables, and their predictions for new rows."""

import io
import json
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import polars
import pytest
import torch
from rich.console import Console

import umix
from umix import load_net, load_run, predict
from umix.bench.predict import predicted, write_predictions
from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main
from umix.data.inputs import Mapped
from umix.data.registry import READERS
from umix.data.rows.reader import NewInputs, Reader
from umix.errors import UserError
from umix.reports.tables.run_table import run_table
from umix.run_folder import TABLE_COLUMNS

FAST = {"epochs": 3, "hidden": [8], "batch_size": 20, "label": "y", "id": "key", "task.split": "part"}


def table(n: int = 200) -> polars.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    return polars.DataFrame(
        {
            "key": [f"row {i}" for i in range(n)],
            "x": x,
            "place": [["land", "water"][i % 2] for i in range(n)],
            "part": ["train"] * (n - 80) + ["val"] * 40 + ["test"] * 40 if n > 80 else ["train"] * n,
            "y": [["no", "yes"][int(value > 0)] for value in x],
        }
    )


def spec(path: Path, method: str = "erm", **settings: object) -> RunSpec:
    return RunSpec(task=str(path), method=method, settings={**FAST, **settings})


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "birds.csv"
    table().write_csv(path)
    return path


@pytest.fixture(scope="module")
def record(path: Path, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return execute(spec(path, groups="place", epochs=10, lr=0.01), out=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def groupless(path: Path, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return execute(spec(path, "umix", length=2), out=tmp_path_factory.mktemp("runs"))


def test_predictions_hit_as_many_rows_as_the_record_says(path: Path, record: RunRecord) -> None:
    predicted = predict(record, path)
    assert predicted.columns == ["key", "label", "p_no", "p_yes"]
    assert predicted["key"].to_list() == table()["key"].to_list()
    assert (predicted["p_no"] + predicted["p_yes"]).to_numpy() == pytest.approx(1, abs=1e-5)
    hit = predicted["label"] == table()["y"]
    choice = record.choice()
    for name in ("val", "test"):
        expected = record.threshold_counts[name].at_threshold(choice.threshold).class_hits[choice.epoch].sum()
        assert hit.filter(table()["part"] == name).sum() == expected
    assert hit.mean() > 0.9


def test_a_threshold_decides_labels_and_argmax_takes_the_most_probable(record: RunRecord) -> None:
    for rule, how in (("worst_class", "tuned"), ("worst_class", "off")):
        predicted, summary = predict(record, table(), select=rule, threshold=how), record.summary(rule, how)
        second = predicted["p_yes"] > summary.threshold
        assert (predicted["label"] == "yes").equals(second)
    assert predict(load_run(record.directory).with_threshold("off"), table()).equals(
        predict(record, table(), threshold="off")
    )


def test_frames_and_files_and_a_loaded_record_predict_the_same(path: Path, record: RunRecord) -> None:
    expected = predict(record, path)
    assert predict(load_run(record.directory), table()).equals(expected)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: table()[name].to_list() for name in table().columns})
    assert predict(record, frame).equals(expected)


def test_a_row_is_predicted_alike_alone_and_among_others(record: RunRecord) -> None:
    whole, alone = predict(record, table()), predict(record, table()[7:8])
    assert alone["p_yes"][0] == pytest.approx(whole["p_yes"][7], abs=1e-6)


def test_extra_columns_and_a_missing_id_are_noted_and_the_label_is_not_needed(record: RunRecord) -> None:
    new = table(5).drop("y", "key").with_columns(colour=polars.lit("red"), x=polars.lit("?"))
    made = predicted(record, new).whole()
    assert made.table.columns == ["label", "p_no", "p_yes"]
    assert made.notes == (
        "Ignored columns that the model was not trained with: colour.",
        "5 values of 'x' could not be read as numbers ('?'): treated as missing.",
        "The table has no id column 'key': predictions are in the order of its rows.",
    )


def test_values_that_training_never_saw_are_counted_and_named(record: RunRecord) -> None:
    paths = ["moon", "moon", "mars", "sun", "sky", "land", None, "?", " "]
    made = predicted(record, table(9).with_columns(place=polars.Series(paths))).whole()
    assert made.notes == (
        "5 values of 'place' did not occur in training ('mars', 'moon', 'sky', …): treated as none of its known values.",
    )
    assert predicted(record, table(9)).whole().notes == ()
    unseen = made.table.filter(polars.Series(paths) == "mars")["p_yes"][0]
    alone = predicted(record, table(9)[2:3].with_columns(place=polars.lit("nowhere"))).whole().table["p_yes"][0]
    assert unseen == pytest.approx(alone, abs=1e-6)


def test_missing_columns_an_empty_table_and_a_wrong_output_are_refused(record: RunRecord, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="but 'x' is missing"):
        predict(record, table().drop("x"))
    with pytest.raises(UserError, match="it is empty"):
        predict(record, table().head(0))
    with pytest.raises(UserError, match=r"must end in one of .parquet, .csv, .jsonl, .arrow, got .*out.xlsx"):
        write_predictions(record, table(), tmp_path / "out.xlsx")


def test_predictions_never_take_the_place_of_their_own_input(record: RunRecord, tmp_path: Path) -> None:
    new, link = tmp_path / "new.csv", tmp_path / "link.csv"
    table().write_csv(new)
    link.symlink_to(new)
    before = new.read_bytes()
    for output in (new, tmp_path / "." / "new.csv", link):
        with pytest.raises(UserError, match="output= must be another file than the new data"):
            write_predictions(record, new, output)
    assert new.read_bytes() == before
    with pytest.raises(UserError, match=r"There is no file .*absent\.csv"):
        write_predictions(record, tmp_path / "absent.csv", new)


def test_columns_that_became_lists_or_bytes_are_refused(record: RunRecord) -> None:
    for odd in ([[1.0]], [{"a": 1.0}], [b"1"]):
        frame = table(10).with_columns(polars.Series("x", odd * 10))
        with pytest.raises(UserError, match=r"^The column 'x' must hold numbers, texts or dates as in training, got "):
            predict(record, frame)


@pytest.mark.parametrize("name", ["predictions.parquet", "training.parquet", "epochs.csv"])
def test_predictions_never_take_the_place_of_a_file_of_the_run(record: RunRecord, name: str) -> None:
    before = (record.directory / name).read_bytes()
    with pytest.raises(UserError, match=rf"^output= must be no file of a run, got '.*/{name}'; choose another name\.$"):
        write_predictions(record, table(10), record.directory / name)
    assert (record.directory / name).read_bytes() == before


def test_a_run_whose_validation_groups_are_all_blank_selects_by_the_classes(tmp_path: Path) -> None:
    frame = table().with_columns(place=polars.when(polars.col("part") != "val").then("place"))
    frame.write_csv(tmp_path / "birds.csv")
    found = execute(spec(tmp_path / "birds.csv", groups="place"), out=tmp_path / "runs")
    assert found.rule() == "balanced"
    assert found.summary().select == "balanced"


def test_a_run_on_data_that_nobody_brings_cannot_predict(tmp_path: Path) -> None:
    moons = {"epochs": 1, "hidden": [4], "sizes": [8, 4, 4, 8], "eval_size": 4}
    run = execute(RunSpec(task="four_moons", method="erm", settings=moons), out=tmp_path)
    with pytest.raises(UserError, match="got a run on four_moons, which nothing new can be read for"):
        predict(run, table())


@final
class HalvedLater(Reader):
    """Reads nothing: four inputs that lie twice as large in a lazy store, and two columns that name them."""

    x = torch.linspace(-2, 2, 8).reshape(4, 2)

    @property
    def input_shape(self) -> None:
        return None

    def save(self, directory: Path) -> None:
        raise NotImplementedError

    @classmethod
    def load(cls, directory: Path) -> Self:
        return cls()

    def inputs(self, new: Any) -> NewInputs:
        lazy = Mapped(2 * self.x, "stored")
        ids = {"path": polars.Series(list("abcd")), "label": polars.Series(list("efgh"))}
        return NewInputs(lazy, transform=lambda x: x / 2, ids=ids, notes=("Halved.",))


def test_lazy_inputs_are_transformed_and_carry_the_columns_that_name_them(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(READERS, "table", HalvedLater)
    made = predicted(record, "anything").whole()
    assert made.table.columns == ["path", "id", "label", "p_no", "p_yes"]
    assert made.table["id"].to_list() == list("efgh")
    assert made.notes == ("Halved.",)
    with torch.inference_mode():
        expected = load_net(record)(HalvedLater.x).softmax(dim=1)
    assert made.table.select("p_no", "p_yes").to_numpy() == pytest.approx(expected.numpy(), abs=1e-6)


def test_a_run_on_arrays_predicts_new_arrays_as_the_record_says(tmp_path: Path) -> None:
    x, split = np.random.default_rng(0).normal(size=(90, 3)).astype(np.float16), np.repeat([0, 1, 2], 30)
    y = (x[:, 0] > 0).astype(int)
    np.savez(tmp_path / "birds.npz", x=x, y=y, split=split)
    settings = {"label": "y", "task.split": "split", "epochs": 5}
    run = execute(RunSpec(task=str(tmp_path / "birds.npz"), method="erm", settings=settings), out=tmp_path)
    predicted = predict(run, tmp_path / "birds.npz")
    assert predicted.columns == ["label", "p_0", "p_1"]
    hit = predicted["label"].to_numpy() == y.astype(str)
    assert hit[split == 2].mean() == pytest.approx(run.summary().average)
    plain = predict(run, tmp_path / "birds.npz", threshold="off")["label"].to_numpy() == y.astype(str)
    assert plain[split == 2].sum() == run.counts["test"].class_hits[run.best_epoch(threshold="off")].sum()
    assert predict(load_run(run.directory), x).equals(predicted)


def test_without_groups_the_classes_select_and_the_worst_group_is_unknown(groupless: RunRecord) -> None:
    again = load_run(groupless.directory)
    assert again.counts["val"].hits.shape == (3, 0)
    summary = again.summary()
    assert (summary.select, summary.worst, summary.group_mean, summary.adjusted) == ("balanced", None, None, None)
    assert set(summary.classes) == {"no", "yes"}
    assert summary.average is not None
    plain = again.summary(threshold="off")
    assert np.mean(plain.quintiles) == pytest.approx(plain.average)  # the fifths are all test examples
    assert summary.threshold != plain.threshold
    assert np.mean(summary.quintiles) == pytest.approx(summary.average)
    assert predict(again, table(), select="last").height == 200
    with pytest.raises(UserError, match="select=worst must know the groups"):
        again.summary("worst")


def test_fifths_of_uncertainty_are_reported_where_there_are_no_groups_only(path: Path, tmp_path: Path) -> None:
    plain, grouped = (
        execute(spec(path, "jtt", epochs=1, identification_epochs=1, **groups), out=tmp_path)
        for groups in ({}, {"groups": "place"})
    )
    assert len(plain.summary().quintiles) == 5
    assert grouped.summary().quintiles is None


def shown(record: RunRecord) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(run_table(record, record.summary()))
    return console.file.getvalue()


def test_the_table_of_a_run_without_groups_shows_fifths_or_says_why_not(
    path: Path, groupless: RunRecord, tmp_path: Path
) -> None:
    text = shown(groupless)
    for expected in ("least uncertain fifth", "most uncertain fifth", "The worst group is unknown"):
        assert expected in text
    text = shown(execute(spec(path, epochs=1), out=tmp_path))
    assert "fifth" not in text
    assert "erm has no first stage that tells how uncertain" in " ".join(text.split())


@pytest.mark.parametrize("method", ["group_dro", "dfr"])
def test_a_method_that_needs_groups_is_refused_before_anything_is_written(
    path: Path, tmp_path: Path, method: str
) -> None:
    with pytest.raises(
        UserError,
        match=rf"^{method} needs (training|validation) groups, but the task has none; name their columns with groups=",
    ):
        execute(spec(path, method), out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_the_content_decides_the_key_and_the_files_name_the_folder(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "birds.csv"
    copy.write_bytes(path.read_bytes())
    assert spec(copy).key == spec(path).key
    assert spec(copy).directory_name.startswith("birds-erm-")
    copy.write_bytes(path.read_bytes() + b"row 200,0.1,land,train,yes\n")
    assert spec(copy).key != spec(path).key
    assert spec(path, **{"task.data_seed": 1}).key != spec(path).key


def test_a_finished_run_on_a_table_is_found_again(path: Path, record: RunRecord) -> None:
    again = execute(spec(path, groups="place", epochs=10, lr=0.01), out=record.directory.parent)
    assert again.directory == record.directory
    assert (record.directory / TABLE_COLUMNS).exists()


def skewed(classes: list[str], shares: list[float], n: int = 900) -> polars.DataFrame:
    """Rows whose classes overlap and are of different sizes."""
    rng = np.random.default_rng(0)
    y = rng.choice(len(classes), size=n, p=shares)
    parts = ["train"] * (n - 500) + ["val"] * 250 + ["test"] * 250
    place = rng.choice(["land", "water"], size=n)
    x = y + rng.normal(size=n) + 0.5 * (place == "water")
    return polars.DataFrame({"key": range(n), "x": x, "place": place, "part": parts, "y": [classes[c] for c in y]})


@pytest.fixture(scope="module", params=[(["no", "yes"], [0.85, 0.15]), (["a", "b", "c"], [0.7, 0.2, 0.1])])
def calibrated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunRecord, RunRecord]:
    """A run with weighted classes, calibrated, and the same one without calibration; of two and of three classes."""
    folder = tmp_path_factory.mktemp("skewed")
    skewed(*request.param).write_csv(folder / "birds.csv")
    runs = [
        execute(
            spec(folder / "birds.csv", "reweight", groups="place", epochs=6, lr=0.03, **{"evaluation.calibrate": on}),
            out=folder / "runs",
        )
        for on in (True, False)
    ]
    return load_run(runs[0].directory), load_run(runs[1].directory)


@pytest.mark.parametrize("threshold", ["tuned", "off"])
@pytest.mark.parametrize("select", [None, "average", "last"])
def test_calibration_changes_no_rate_and_no_label(calibrated, select, threshold):
    run, plain = calibrated
    after, before = (one.summary(select, threshold) for one in (run, plain))
    left_out = {"threshold", "calibrated"}
    assert (after.calibrated, before.calibrated) == (True, False)
    assert after.model_dump(exclude=left_out) == before.model_dump(exclude=left_out)
    new = skewed(["no", "yes"], [0.5, 0.5], n=600).drop("y")
    labels = [predict(one, new, select=select, threshold=threshold) for one in (run, plain)]
    assert labels[0]["label"].to_list() == labels[1]["label"].to_list()
    assert labels[0].select("^p_.*$").to_numpy() != pytest.approx(labels[1].select("^p_.*$").to_numpy(), abs=0.01)
    assert labels[0].select("^p_.*$").to_numpy().sum(axis=1) == pytest.approx(1)


def test_of_two_classes_the_label_is_that_of_the_stated_threshold(calibrated):
    for run in calibrated:
        for threshold in ("tuned", "off"):
            stated = run.summary(threshold=threshold).threshold
            if len(run.classes) == 2:
                table = predict(run, skewed(["no", "yes"], [0.5, 0.5], n=600).drop("y"), threshold=threshold)
                assert stated is not None
                assert (table["p_yes"] > stated).to_list() == (table["label"] == "yes").to_list()
            else:
                assert stated is None


def test_calibrated_probabilities_have_the_shares_of_the_classes(calibrated):
    run, plain = (umix.load_result(one.directory).frame("val") for one in calibrated)
    shares = [(run["label"] == name).mean() for name in calibrated[0].classes]
    assert [run[f"p_{name}"].mean() for name in calibrated[0].classes] == pytest.approx(shares, abs=0.02)
    assert [plain[f"p_{name}"].mean() for name in calibrated[0].classes] != pytest.approx(shares, abs=0.1)


def test_a_run_with_few_validation_rows_keeps_the_probabilities_of_its_net(record, capsys, tmp_path):
    assert not record.summary().calibrated
    new = tmp_path / "new.csv"
    table(20).drop("y").write_csv(new)
    assert main(["predict", str(record.directory), str(new), "-o", str(tmp_path / "out.csv"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["calibrated"] is False
    assert " ".join(err.split()) == (
        "note: Probabilities are not calibrated: 100 validation examples and 10 of every class are needed, and there are 40, "
        f"{min(record.counts['val'].class_sizes)} of the rarest class."
    )
