"""Folds as one result: the counts by hand, the same numbers from the command line, from Python and in tables."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import umix
from umix.bench.runs.folds import by_seed, fold_settings, pooled_summary, seed_summaries
from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import RunRecord, load_runs
from umix.bench.runs.split_counts import SplitCounts
from umix.bench.study.study import StudyTask
from umix.bench.study.study_plan import make_grid
from umix.bench.study.study_search import search_jobs
from umix.cli import main
from umix.errors import UmixWarning, UserError
from umix.reports.page.section import sections

FOLDS = 3
ARGUMENTS = ["--label", "status", "--groups", "site", "--split-by", "patient", "--folds", str(FOLDS)]
FAST = ["--net", "mlp", "--set", "fit.epochs=3", "--set", "net.hidden=[4]"]


def make_fold(
    fold: int | None, val: list[list[int]], test: list[list[int]], *, seed: int = 0, method: str = "erm", size: int = 10
) -> RunRecord:
    """A run whose hits out of ``size`` by epoch and group are ``val`` and ``test``; both groups are of one class each."""

    def counts(hits: list[list[int]]) -> SplitCounts:
        return SplitCounts(
            hits=hits,
            sizes=[size] * 2,
            class_hits=hits,
            class_sizes=[size] * 2,
            composition=[[size, 0], [0, size]],
        )

    folds = {} if fold is None else {"folds": FOLDS, "fold": fold}
    plan = {"task": {"name": "table", "content": "c", **folds}, "method": {"name": method}, "net": {"name": "mlp"}}
    return RunRecord(
        task="toy.csv",
        method=method,
        seed=seed,
        settings={},
        plan=plan,
        key=f"{method}{seed}{fold}",
        fingerprint=f"f{fold}",
        groups=["a", "b"],
        classes=["no", "yes"],
        input_shape=[2],
        train_sizes=[30, 10],
        min_group=1,
        prior=0,
        split_counts={"val": counts(val), "test": counts(test)},
        stages={},
        warnings=[],
        versions={},
    )


@pytest.fixture
def folds() -> list[RunRecord]:
    """Validation chooses the epochs 1, 0 and 1; the test hits there are (9, 4), (7, 6) and (8, 2)."""
    return [
        make_fold(1, [[3, 3], [5, 5]], [[1, 1], [9, 4]]),
        make_fold(2, [[6, 6], [5, 5]], [[7, 6], [0, 0]]),
        make_fold(3, [[0, 9], [4, 4]], [[10, 10], [8, 2]]),
    ]


def test_pooled_counts_are_the_sums_of_each_fold_at_its_own_epoch(folds: list[RunRecord]) -> None:
    summary = pooled_summary(folds)
    assert {name: (rate.hits, rate.size) for name, rate in summary.groups.items()} == {"a": (24, 30), "b": (12, 30)}
    assert (summary.worst_group, summary.worst, summary.average) == ("b", 12 / 30, 36 / 60)
    assert summary.group_mean == pytest.approx((24 / 30 + 12 / 30) / 2)
    assert summary.adjusted == pytest.approx(0.75 * 24 / 30 + 0.25 * 12 / 30)
    assert summary.epoch is None  # every fold has its own
    assert pooled_summary(folds, "last").groups["a"].hits == 9 + 0 + 8


def test_the_order_of_folds_makes_no_difference(folds: list[RunRecord]) -> None:
    assert seed_summaries(folds[::-1]) == seed_summaries(folds)
    assert [run.fold for run in by_seed(folds[::-1])[0]] == [1, 2, 3]


def test_a_single_run_is_its_own_pool(folds: list[RunRecord]) -> None:
    assert pooled_summary(folds[:1]) == folds[0].summary()


def test_a_group_that_is_small_in_every_fold_is_judged_on_all_of_its_rows(folds: list[RunRecord]) -> None:
    strict = [fold.model_copy(update={"min_group": 30}) for fold in folds]
    assert strict[0].summary().n_judged == 0 or strict[0].summary().worst_group not in ("a", "b")
    assert pooled_summary(strict).worst_group == "b"


def test_fewer_than_two_folds_are_refused() -> None:
    with pytest.raises(UserError, match="folds= must be at least 2, got 1"):
        fold_settings(1)


def ward(n: int = 240) -> polars.DataFrame:
    rng = np.random.default_rng(0)
    site = rng.choice(["north", "south", "west"], n, p=[0.6, 0.3, 0.1])
    age = rng.normal(size=n)
    ill = age + 0.5 * rng.normal(size=n) - (site == "west") > 0
    patient = [f"p{row // 3}" for row in range(n)]
    return polars.DataFrame({"age": age, "site": site, "patient": patient, "status": np.where(ill, "ill", "well")})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "ward.csv"
    ward().write_csv(path)
    return path


@pytest.fixture(scope="module")
def runs(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of ``umix run`` with a method beside the ordinary model."""
    out = tmp_path_factory.mktemp("runs")
    assert main(["run", str(table), "reweight", *ARGUMENTS, *FAST, "-q", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def result(table: Path) -> umix.RunResult:
    settings = {"fit.epochs": 3, "net.hidden": [4]}
    given: dict[str, Any] = {"label": "status", "groups": "site", "split_by": "patient", "net": "mlp"}
    return umix.train(table, "reweight", folds=FOLDS, settings=settings, **given)


def test_pooled_hits_and_sizes_equal_those_counted_in_the_predictions_of_every_row(result: umix.RunResult) -> None:
    frame = result.frame()
    assert sorted(frame["row"]) == list(range(240))
    assert frame.sort("row")["label"].to_list() == ward()["status"].to_list()
    sizes = Counter(frame["group"])
    hits = Counter(frame.filter(polars.col("label") == polars.col("prediction"))["group"])
    groups = result.summary().groups
    assert {name: (rate.hits, rate.size) for name, rate in groups.items()} == {
        name: (hits[name], sizes[name]) for name in groups
    }
    assert result.metrics("accuracy")["value"][0] == pytest.approx(result.summary().average)


def test_no_patient_of_a_fold_was_trained_on(table: Path) -> None:
    patient = ward()["patient"]
    for fold in range(1, FOLDS + 1):
        task = umix.load_task(str(table), label="status", split_by="patient", folds=FOLDS, fold=fold)
        seen = [set(patient.gather(split.origin)) for split in task.splits.values()]
        assert not seen[0] & seen[1]
        assert not (seen[0] | seen[1]) & seen[2]


def test_folds_have_no_model_to_predict_with_and_say_which_to_train(result: umix.RunResult, table: Path) -> None:
    assert len(result.folds) == FOLDS
    for use in (lambda: result.predict(table), lambda: result.net(), lambda: result.weights()):
        with pytest.raises(UserError, match="3 folds with a model each; train without folds"):
            use()
    with pytest.raises(UserError, match="split must be test"):
        result.frame("val")
    with pytest.warns(UmixWarning, match="fold 2 of 3.*train without --folds"):
        assert len(result.folds[1].predict(table)) == 240


def test_a_result_of_folds_shows_the_pool_and_a_line_for_every_fold(result: umix.RunResult) -> None:
    assert repr(result).startswith("<RunResult ward.csv · reweight · seed 0, 3 folds: worst 0.")
    assert "Pooled over 3 folds" in str(result)
    assert sum(line.split()[:1] == [str(fold)] for fold in (1, 2, 3) for line in str(result).splitlines()) == 3


def test_the_command_prints_the_numbers_of_python_and_a_folder_for_each_fold(
    runs: Path, table: Path, result: umix.RunResult, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", str(table), "reweight", *ARGUMENTS, *FAST, "-q", "--out", str(runs)]
    times = {path: path.stat().st_mtime_ns for path in runs.glob("*/record.json")}
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["summary"] == result.summary().model_dump(mode="json")
    assert [fold["summary"]["worst"] for fold in found["folds"]] == [one.summary().worst for one in result.folds]
    assert sum(one["size"] for one in found["ordinary"]["summary"]["classes"].values()) == 240
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "3 folds by patient" in printed
    assert all(Path(fold["directory"]).name in printed for fold in found["folds"])
    assert "the same command without --folds" in printed
    assert {path: path.stat().st_mtime_ns for path in runs.glob("*/record.json")} == times  # nothing was trained again


def test_a_folder_with_folds_is_one_task_whose_methods_are_pooled(
    runs: Path, result: umix.RunResult, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["table", str(runs), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["task"] for row in rows} == {"ward.csv"}
    by_method = {row["method"]: row for row in rows}
    assert by_method["reweight"]["worst_mean"] == pytest.approx(result.summary().worst, abs=1e-6)
    assert (by_method["reweight"]["seeds"], by_method["reweight"]["n_folds"]) == ([0], FOLDS)
    assert not any("seeds" in doubt for doubt in by_method["reweight"]["doubts"])  # three fits on different rows
    assert main(["table", str(runs), "--groups"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Pooled over 3 folds: every row is tested once" in printed
    assert main(["table", str(runs), "--metric", "recall:ill"]) == 0
    assert main(["table", str(runs), "--select", "all"]) == 0
    assert main(["report", str(runs)]) == 0
    assert "Pooled over 3 folds" in (runs / "report.html").read_text()


def test_a_fold_that_is_missing_is_said(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from umix.reports.arrange import arrange
    from umix.reports.comparison import compare

    records = [one for one in load_runs(runs).records if (one.method, one.fold) != ("reweight", 2)]
    comparison = compare(arrange(records))
    (note,) = comparison.notes
    assert "reweight, seed 0: only 2 of 3 folds are finished" in note
    assert not comparison.cells["ward.csv"]["reweight"].gains  # its rows are others than those of erm


def test_a_study_pools_folds_and_needs_no_further_seeds(table: Path, tmp_path: Path) -> None:
    task = {"name": str(table), "settings": {"label": "status", "groups": "site", "split_by": "patient"}}
    settings = {"net": "mlp", "fit.epochs": 3, "net.hidden": [4]}
    study = umix.run_study(tasks=[task], methods=["erm", "reweight"], settings=settings, folds=FOLDS, out=tmp_path)
    assert len(study.all_records) == 2 * FOLDS
    cell = study.table().comparison.cells["ward.csv"]["reweight"]
    assert cell.seeds == (0,)
    pooled = pooled_summary(study.records["ward.csv"]["reweight"])
    assert cell.rates["worst"].mean == pooled.worst
    assert "1 × 3 folds" in study.table().markdown()


@pytest.mark.parametrize(
    "call",
    [
        lambda task: umix.train(task, "erm", folds=3),
        lambda task: umix.run_study(tasks=[task], methods=["erm"], folds=3),
    ],
    ids=["train", "run_study"],
)
def test_what_is_divided_already_has_no_folds(call: Callable[[Any], object]) -> None:
    for task in ("four_moons", umix.task_from_table(ward(), label="status")):
        with pytest.raises(UserError, match="folds= must be about a file or folder of your own"):
            call(task)


def test_a_task_of_a_file_is_divided_anew(table: Path) -> None:
    task = umix.task_from_table(table, label="status", groups="site", drop=["patient"])
    result = umix.train(task, "erm", folds=2, net="mlp", settings={"fit.epochs": 1})
    assert sum(rate.size for rate in result.summary().classes.values()) == 240


def test_settings_are_searched_for_each_fold_by_its_own_validation_rows(table: Path, tmp_path: Path) -> None:
    """The validation rows of one fold are test rows of another."""
    pytest.importorskip("optuna")
    task = StudyTask(name=str(table), settings={"label": "status"})
    study = umix.Study(tasks=[task], methods=["focal"], folds=2, settings={"net": "mlp"})
    jobs = search_jobs(make_grid(study, RunPaths(tmp_path)), trials=1, select=None)
    assert [job.spec.settings["task.fold"] for job in jobs] == [1, 2]


def test_the_seconds_of_a_command_are_shared_by_its_folds(table: Path, tmp_path: Path, capsys) -> None:
    command = ["run", str(table), "best", *ARGUMENTS, *FAST, "--trials", "1", "--time", "600", "-q", "--json"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {fold["plan"]["method"]["time"] for fold in found["folds"]} == {200.0}


def test_a_fold_alone_is_shown_as_a_run(table: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = ["--set", f"task.folds={FOLDS}", "--set", "task.fold=2"]
    command = ["run", str(table), "reweight", *ARGUMENTS[:-2], *one, *FAST, "-q", "--out", str(runs)]
    capsys.readouterr()
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "fold 2 of 3 by patient" in printed
    assert "Pooled" not in printed
    assert len(list(runs.glob("ward-reweight-*/record.json"))) == FOLDS  # it is the run that the folds made
    folder = next(runs.glob("ward-reweight-fold2-*"))
    assert main(["report", str(folder)]) == 0
    assert "Pooled" not in (folder / "report.html").read_text()


def test_the_report_checks_a_target_for_all_folds_together(folds: list[RunRecord], tmp_path: Path) -> None:
    for number, fold in enumerate(folds):
        fold.save(tmp_path / str(number))
    (section,) = sections({"toy": {"erm": folds}}, target=0.4)
    assert section.target is not None
    check, _ = section.target
    assert check.met  # 12 of 30 in group b; the third fold has 2 of 10
    assert check.rates["b"].size == 30
