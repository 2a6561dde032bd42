"""``umix.run_study``, ``umix.tune`` and ``umix.report`` as people type them."""

from pathlib import Path

import numpy as np
import polars
import pytest

import umix

FAST = {"fit": {"epochs": 2}}


def task() -> umix.Task:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    frame = polars.DataFrame({"x": rng.normal(size=120) + y, "a": rng.choice(["p", "q"], 120), "y": y})
    return umix.task_from_table(frame, label="y", groups=["a"])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> umix.StudyResult:
    return umix.run_study(
        tasks=[task(), "four_moons"],
        methods=["erm", {"name": "umix", "settings": {"eta": 3, "length": 2, "pool": "example"}}],
        seeds=range(2),
        settings=FAST,
        out=tmp_path_factory.mktemp("runs"),
    )


def test_a_study_compares_tasks_in_memory_with_named_ones(study: umix.StudyResult) -> None:
    assert list(study.records) == ["table", "four_moons"]
    assert {label: len(records) for label, records in study.records["table"].items()} == {"erm": 2, "umix": 2}
    assert study.failures == {}
    assert study.runs["table"]["umix"][0].predict(polars.DataFrame({"x": [0.0], "a": ["p"]})).height == 1


def test_its_table_prints_and_is_a_frame(study: umix.StudyResult) -> None:
    table = study.table()
    assert "four_moons: test rates" in str(table)
    frame = table.frame()
    assert frame.height == 6
    assert set(frame["method"]) == {"erm", "erm + threshold", "umix"}
    assert set(study.table(threshold="off").frame()["method"]) == {"erm", "umix"}
    assert "worst" in study.table(groups=True).markdown()
    assert "<pre" in study._repr_html_()


@pytest.mark.system
def test_workers_run_tasks_in_memory_with_the_same_numbers(study: umix.StudyResult, tmp_path: Path) -> None:
    other = umix.run_study(tasks=[task()], methods=["erm"], seeds=[0, 1], settings=FAST, out=tmp_path, workers=2)
    ours = [record.split_counts for record in other.records["table"]["erm"]]
    assert ours == [record.split_counts for record in study.records["table"]["erm"]]


def test_pages_are_made_of_folders_results_and_records(
    study: umix.StudyResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("umix.api.report.sections", lambda rows, **_: [])
    monkeypatch.setattr("umix.api.report.page", lambda gathered, sections, title: f"{gathered.n_runs} runs")
    out = study.plan.grid.paths.out
    assert umix.report(out) == out / "report.html"
    assert (out / "report.html").read_text() in ("8 runs", "9 runs")  # another test adds one
    single = study.runs["four_moons"]["umix"][0]
    assert umix.report(single, tmp_path / "run.html").read_text() == "1 runs"
    assert umix.report(study.all_records, tmp_path / "records.html").read_text() == "8 runs"
    assert study.report(tmp_path / "study.html").read_text() == "8 runs"
    with pytest.raises(umix.UserError, match=r"must end in \.html"):
        umix.report(out, tmp_path / "page.pdf")
    with pytest.raises(umix.UserError, match="got a run in memory"):
        umix.report(umix.train("four_moons", "erm", fit={"epochs": 1}), tmp_path / "none.html")


@pytest.mark.system
def test_a_search_finds_settings_that_train_takes(tmp_path: Path) -> None:
    best = umix.tune(task(), "umix", trials=2, out=tmp_path, space={"eta": umix.Range(low=1, high=9)}, length=2, **FAST)
    assert len(best.trials) == 2
    result = umix.train(task(), "umix", **best.settings)
    assert result.record.plan["method"]["eta"] == best.settings["umix.eta"]


def test_a_study_goes_on_where_it_was(study: umix.StudyResult) -> None:
    again = umix.run_study(
        tasks=["four_moons"], methods=["erm"], seeds=[0, 1, 2], settings=FAST, out=study.plan.grid.paths.out
    )
    assert sorted(again.plan.states.values()) == ["done", "done", "to run"]
    assert len(again.records["four_moons"]["erm"]) == 3


def test_a_study_is_given_one_way() -> None:
    with pytest.raises(umix.UserError, match="a study, or tasks and methods"):
        umix.run_study(tasks=["four_moons"])
    study = umix.Study(tasks=["four_moons"], methods=["erm"])
    with pytest.raises(umix.UserError, match="a study, or tasks and methods"):
        umix.run_study(study, tasks=["four_moons"], methods=["erm"])


@pytest.mark.system
def test_searches_of_two_frames_do_not_meet_and_keep_what_was_fixed(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = polars.DataFrame({"x": rng.normal(size=90), "y": np.arange(90) % 2})
    options = {"trials": 1, "out": tmp_path, "fit": {"epochs": 1}, "length": 1}
    first = umix.tune(task(), "umix", **options)
    second = umix.tune(umix.task_from_table(frame, label="y"), "umix", **options)
    assert first.name != second.name
    assert first.settings["fit.epochs"] == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": "four_moons"}, "tasks must be a list, got str"),
        ({"methods": "erm"}, "methods must be a list, got str"),
        ({"seeds": 3}, "seeds must be a list or a range, got 3"),
    ],
)
def test_one_alone_is_asked_for_as_a_list(changes: dict, message: str) -> None:
    with pytest.raises(umix.UserError, match=message):
        umix.run_study(**{"tasks": ["four_moons"], "methods": ["erm"], **changes})
