"""Tables of a metric: of the worst group, of every group, before and after calibration, against a target."""

import json
import math

import numpy as np
import polars
import pytest
from fairlearn.metrics import MetricFrame
from sklearn.metrics import brier_score_loss, f1_score

import umix
from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord, load_run
from umix.bench.spec.run_spec import RunSpec
from umix.reports.tables.metric_tables import metric_csv, metric_json, metric_rows, metric_tables

Runs = dict[str, dict[str, list[RunRecord]]]
SETTINGS = {"label": "y", "groups": "place", "task.split": "part", "epochs": 5, "lr": 0.03, "hidden": [8]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Two seeds of ERM with weighted classes, which distort its probabilities, on rows of three places of different sizes."""
    folder, rng, n = tmp_path_factory.mktemp("metrics"), np.random.default_rng(0), 1000
    y = rng.random(n) < 0.2
    place = rng.choice(["land", "sea", "sky"], n, p=[0.6, 0.37, 0.03])
    parts = np.repeat(["train", "val", "test"], [400, 250, 350])
    x = y + rng.normal(size=n) + 0.7 * (place == "sea")
    frame = polars.DataFrame({"x": x, "place": place, "part": parts, "y": np.where(y, "yes", "no")})
    frame.write_csv(folder / "birds.csv")
    specs = [
        RunSpec(task=str(folder / "birds.csv"), method="reweight", settings=SETTINGS, seed=seed) for seed in (0, 1)
    ]
    return {"birds": {"reweight": [load_run(execute(spec, out=folder / "runs").directory) for spec in specs]}}


def test_the_value_of_every_group_is_the_mean_of_fairlearns_over_seeds(runs: Runs) -> None:
    frames = [umix.load_result(run.directory).frame() for run in runs["birds"]["reweight"]]
    expected = [
        MetricFrame(
            metrics=lambda y, q: f1_score(y, q, pos_label="yes"),
            y_true=frame["label"].to_numpy(),
            y_pred=frame["prediction"].to_numpy(),
            sensitive_features=frame["place"].to_numpy(),
        )
        for frame in frames
    ]
    rows = {row["group"]: row for row in metric_rows(runs, "f1")}
    assert rows["all"]["value"] == pytest.approx(np.mean([one.overall for one in expected]), abs=1e-6)
    for place in ("land", "sea", "sky"):
        values = [one.by_group[place] for one in expected]
        assert rows[place]["value"] == pytest.approx(np.mean(values), abs=1e-6)
        assert rows[place]["low"] <= rows[place]["value"] <= rows[place]["high"]
        assert rows[place]["n"] == int((frames[0]["place"] == place).sum())
        assert rows[place]["before_calibration"] is None


def test_the_brier_score_before_calibration_is_that_of_the_run_that_does_not_calibrate(runs: Runs) -> None:
    run = runs["birds"]["reweight"][0]
    spec = RunSpec(task=run.task, method="reweight", settings={**SETTINGS, "evaluation.calibrate": False})
    plain = execute(spec, out=run.directory.parent)
    raw = umix.load_result(plain.directory).frame()
    y, sea = (raw["label"] == "yes").to_numpy(), (raw["place"] == "sea").to_numpy()
    rows = {row["group"]: row for row in metric_rows({"birds": {"reweight": [run]}}, "brier")}
    before = brier_score_loss(y[sea], raw["p_yes"].to_numpy()[sea])
    assert rows["sea"]["before_calibration"] == pytest.approx(before, abs=1e-5)
    assert rows["all"]["value"] < rows["all"]["before_calibration"] - 0.02
    without = metric_tables({"birds": {"reweight": [plain]}}, "brier")[0]
    assert "No run here has calibrated its probabilities." in without.notes
    measured = umix.load_result(run.directory).metrics("brier", "accuracy")
    of_sea = measured.filter((polars.col("metric") == "brier") & (polars.col("group") == "sea"))
    assert of_sea["before_calibration"].to_list() == pytest.approx([rows["sea"]["before_calibration"]], abs=1e-6)
    assert measured.filter(polars.col("metric") == "accuracy")["before_calibration"].is_null().all()


def test_the_worst_group_of_a_loss_has_the_highest_value_and_is_compared_with_a_target(runs: Runs) -> None:
    rows = {row["group"]: row for row in metric_rows(runs, "log_loss") if row["group"] != "sky"}
    worst = max(("land", "sea"), key=lambda name: rows[name]["value"])
    (table,) = metric_tables(runs, "log_loss", target=rows[worst]["value"] - 0.1)
    cells = dict(zip(table.header, (entry.text for entry in table.rows[0]), strict=True))
    assert cells["worst judged group"].startswith(f"{rows[worst]['value']:.3f} ± ")
    assert cells["which"] == worst
    assert cells[f"target {rows[worst]['value'] - 0.1:.3f}"] == "missed by 0.100"
    (table,) = metric_tables(runs, "balanced_accuracy", target=0.1)
    assert table.rows[0][-1].text == "met"


def test_groups_are_rows_with_intervals_and_small_ones_in_brackets(runs: Runs) -> None:
    _, table = metric_tables(runs, "brier", groups=True)
    assert table.header == ["group", "method", "n", "brier", "before calibration"]
    assert {row[0].text for row in table.rows} == {"all", "land", "sea", "(sky)"}
    assert all("[" in row[3].text for row in table.rows)
    _, table = metric_tables(runs, "macro_f1", groups=True)
    assert table.header == ["group", "method", "n", "macro_f1"]
    assert len(metric_tables(runs, "equalized_odds_difference", groups=True)) == 1


def test_json_and_csv_have_the_same_rows(runs: Runs) -> None:
    rows = json.loads(metric_json(runs, "cost:FN=5,FP=1"))["rows"]
    assert rows == metric_rows(runs, "cost:FN=5,FP=1")
    frame = polars.read_csv(metric_csv(runs, "cost:FN=5,FP=1").encode())
    assert frame["value"].to_list() == pytest.approx([row["value"] for row in rows])
    (row,) = metric_rows(runs, "demographic_parity_difference")
    assert (row["group"], row["n"]) == ("all", None)
    assert not math.isnan(row["value"])


def test_intervals_that_the_table_does_not_print_are_not_drawn(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [metric_tables(runs, name) for name in ("brier", "macro_f1")]

    def refuse(*_: object) -> None:
        raise AssertionError("a bootstrap interval was drawn")

    monkeypatch.setattr("umix.reports.metrics.stream", refuse)
    assert [metric_tables(runs, name) for name in ("brier", "macro_f1")] == expected
