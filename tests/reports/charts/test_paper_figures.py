"""The paper's figures draw what the runs recorded."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from umix.bench.runs.record import RunRecord
from umix.cli import main
from umix.errors import UserError
from umix.reports.charts.paper_figures import points_figure, training_figure, uncertainty_figure
from umix.reports.training_examples import training_of

Study = Callable[..., list[RunRecord]]


def test_training_accuracy_is_the_share_of_right_predictions_in_each_epoch(tmp_path: Path, study: Study) -> None:
    run = study(tmp_path, seeds=1)[1]
    some = training_of(run)
    assert some is not None
    assert some.correct is not None
    assert some.group is not None
    rows = training_figure(run, name="t").rows
    expected = 100 * some.correct[3, some.group == 1].mean()
    found = [row["rate"] for row in rows if row["group"] == run.groups[1] and row["epoch"] == 4]
    assert found == [pytest.approx(expected, abs=0.01)]


def test_shares_of_a_run_name_sizes_and_how_well_the_minority_is_found(tmp_path: Path, study: Study) -> None:
    run = study(tmp_path, seeds=1)[1]
    figure = uncertainty_figure(run, name="d", title="Uncertainty")
    assert "AUROC 0.9" in figure.title
    assert {row["size"] for row in figure.rows} == {360, 20}
    assert np.isclose(max(row["u"] for row in figure.rows), 1)


def test_a_run_without_uncertainty_is_refused_in_words(tmp_path: Path, study: Study) -> None:
    with pytest.raises(UserError, match="must have measured uncertainty, but erm does not"):
        uncertainty_figure(study(tmp_path, seeds=1)[0], name="d", title="t")


def test_points_keep_their_groups_and_colours() -> None:
    points = [{"x": 0.0, "y": 1.0, "group": "a"}, {"x": 1.0, "y": 0.0, "group": "b"}]
    figure = points_figure(points, ["a", "b"])
    assert "a 1, b 1" in figure.description
    assert figure.chart.to_dict()["encoding"]["shape"]["scale"]["range"] == ["circle", "square"]


def test_a_folder_without_data_is_refused_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--paper", "--root", str(tmp_path)]) == 2
    assert "--root must hold one of waterbirds, celeba, camelyon17" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
