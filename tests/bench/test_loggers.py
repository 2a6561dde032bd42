"""Loggers write the selected result, and every row of the run's table of epochs exactly once."""

import sys
import warnings
from pathlib import Path

import pytest

from umix.bench.loggers import DATABASE, loggers, selected
from umix.bench.runs.epoch_table import EpochRow, read_epochs, write_epochs
from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main
from umix.errors import UserError

SETTINGS = {"epochs": 2, "sizes": [60, 10, 10, 60], "eval_size": 20, "net.hidden": [8]}


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    return execute(RunSpec(task="four_moons", method="erm", settings=SETTINGS), out=tmp_path)


@pytest.mark.system
def test_tensorboard_holds_every_epoch_once_however_often_it_is_written(record: RunRecord, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (log,) = loggers(["tensorboard", "tensorboard"], out=tmp_path)
    log(record)
    log(record)
    events = EventAccumulator(str(record.directory / "tensorboard"))
    events.Reload()
    rows = read_epochs(record.directory)
    logged = {tag: events.Tensors(tag)[0].tensor_proto.float_val[0] for tag in events.Tags()["tensors"]}
    assert {tag for tag in logged if not tag.startswith("summary/")} == {row.tag for row in rows}
    summary = record.summary()
    assert logged["summary/worst"] == pytest.approx(summary.worst)
    assert logged["summary/epoch"] == summary.epoch
    for tag in {row.tag for row in rows}:
        got = [(event.step, event.tensor_proto.float_val[0]) for event in events.Tensors(tag)]
        assert got == [(row.epoch, pytest.approx(row.value, rel=1e-6)) for row in rows if row.tag == tag]


@pytest.mark.system
def test_mlflow_holds_settings_and_every_epoch_once_however_often_it_is_written(
    record: RunRecord, tmp_path: Path
) -> None:
    pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    from mlflow import MlflowClient

    odd = [EpochRow("fit", 0, "val", "group_rate", rate, name) for rate, name in ((0.25, "a=1/b"), (0.75, "a:1/b"))]
    rows = [*read_epochs(record.directory), *odd]
    write_epochs(record.directory, rows)
    (log,) = loggers(["mlflow"], out=tmp_path)
    log(record)
    log(record)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of SQLAlchemy, within MLflow
        client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / DATABASE}")
        (run,) = client.search_runs([client.get_experiment_by_name("umix four_moons").experiment_id])
        history = client.get_metric_history(run.info.run_id, "fit/train/risk")
    risks = [(row.epoch, row.value) for row in rows if row.measure == "risk"]
    assert [(metric.step, metric.value) for metric in history] == risks
    assert run.data.params["method.name"] == "erm"
    assert run.data.params["fit.epochs"] == "2"
    metrics = {name: value for name, value in run.data.metrics.items() if not name.startswith("summary/")}
    assert len(metrics) == len({row.tag for row in rows})
    odd_rates = [metrics[f"fit/val/argmax/group_rate/a_1/b{more}"] for more in ("", " 2")]
    assert odd_rates == [0.25, 0.75]


@pytest.mark.system
def test_mlflow_holds_the_selected_result_under_the_names_of_the_json(record: RunRecord, tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    from mlflow import MlflowClient

    summary = record.summary("average")
    (log,) = loggers(["mlflow"], out=tmp_path, select="average")
    log(record)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of SQLAlchemy, within MLflow
        client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / DATABASE}")
        (run,) = client.search_runs([client.get_experiment_by_name("umix four_moons").experiment_id])
    logged = {name: value for name, value in run.data.metrics.items() if name.startswith("summary/")}
    for name in ("epoch", "threshold", "average", "adjusted", "group_mean", "worst"):
        assert logged[f"summary/{name}"] == pytest.approx(getattr(summary, name))
    for name, group in summary.groups.items():
        assert logged[f"summary/groups/{name}/rate"] == pytest.approx(group.rate)
    words = {name: value for name, value in run.data.tags.items() if name.startswith("summary/")}
    assert (words["summary/select"], words["summary/worst_group"]) == ("average", summary.worst_group)


def test_a_run_without_a_score_under_the_rule_is_logged_under_its_own(record: RunRecord) -> None:
    assert selected(record, "uncertainty_quintile") == selected(record, None)
    assert selected(record, None).words["summary/select"] == "worst"


@pytest.mark.parametrize("name", ["tensorboard", "mlflow"])
def test_a_missing_extra_is_said_before_anything_is_trained(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    assert main(["run", "four_moons", "erm", "--log", name, "--out", str(tmp_path / "out")]) == 2
    assert f"pip install 'umix[{name}]'" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.system
def test_a_server_that_does_not_answer_is_said_before_anything_is_trained(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    with pytest.raises(
        UserError, match=r"^mlflow_uri= must be a tracking server .* but nowhere://x answers: [^ ].*\.$"
    ):
        loggers(["mlflow"], out=tmp_path, mlflow_uri="nowhere://x")


def test_an_unknown_logger_is_named() -> None:
    with pytest.raises(UserError, match="did you mean 'tensorboard'"):
        loggers(["tensorbord"], out=Path())
