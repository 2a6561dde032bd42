"""A search is scored on validation only, is never worse than the settings it started from, and can be resumed."""

import contextlib
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Never

import optuna
import pytest
import sqlalchemy

from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord, load_run
from umix.bench.search import tune as search
from umix.bench.search.optuna_study import open_study, quiet_optuna, retry_dead_trials
from umix.bench.search.tune import SearchResult, tune
from umix.bench.spec.run_spec import RunSpec
from umix.errors import MachineError, UserError

pytestmark = pytest.mark.system

SETTINGS = {"epochs": 3, "task.sizes": [30, 6, 6, 30], "task.eval_size": 10, "net.hidden": [4]}
SPACE: dict[str, Any] = {"length": [1, 2], "alpha": [0.5], "sigma": [0.5, 1.0]}


def tuned_in(out: Path, trials: int, **more: Any) -> SearchResult:
    return tune("four_moons", "umix", trials=trials, settings=SETTINGS, space=SPACE, out=out, prune="none", **more)


def runs(out: Path) -> list[RunRecord]:
    return [load_run(path.parent) for path in sorted((out / "tune-four_moons-umix").glob("*/record.json"))]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchResult]:
    out = tmp_path_factory.mktemp("search")
    return out, tuned_in(out, 5)


def test_the_first_trial_is_the_settings_as_they_are_so_the_best_is_not_below_them(
    finished: tuple[Path, SearchResult],
) -> None:
    _, tuned = finished
    first = next(trial for trial in tuned.trials if trial.number == 0)
    default = RunSpec(task="four_moons", method="umix").plan.method.eta
    assert first.settings["umix.eta"] == default
    assert tuned.default == first.value
    assert tuned.value >= first.value
    assert tuned.value == max(trial.value for trial in tuned.trials if trial.value is not None)


def test_the_value_is_the_worst_validation_rate_at_the_epoch_and_decision_it_selects(
    finished: tuple[Path, SearchResult],
) -> None:
    out, tuned = finished
    assert tuned.value == max(record.validation_score() for record in runs(out))
    rates = []
    for record in runs(out):
        val, choice = record.threshold_counts["val"], record.choice()
        hits = val.threshold_hits[choice.epoch, choice.threshold]
        of_class = hits[4:] / val.class_sizes
        pulled = (hits[:4] + 20 * val.composition @ of_class / val.sizes) / (
            val.sizes + 20
        )  # groups are small: 20 of their class
        rates.append(min(pulled.min(), of_class.min()))
    assert tuned.value == pytest.approx(max(rates))


def test_searching_weights_and_windows_trains_one_first_stage(finished: tuple[Path, SearchResult]) -> None:
    out, _ = finished
    stages = [record.stages["trajectory"] for record in runs(out)]
    assert len(stages) > 1
    assert {stage.epochs for stage in stages} == {5}  # of the start, whose window is the longest
    assert sum(not stage.reused for stage in stages) == 1
    assert len(list((out / "stages").iterdir())) == 1
    assert {record.plan["method"]["length"] for record in runs(out)} == {1, 2, 5}


def test_the_preset_makes_the_run_of_the_best_trial(finished: tuple[Path, SearchResult]) -> None:
    out, tuned = finished
    spec = RunSpec(task="four_moons", method="umix", preset=str(tuned.preset))
    assert (out / "tune-four_moons-umix" / spec.directory_name / "record.json").exists()
    assert {key: tuned.settings[f"umix.{key}"] for key in ("eta", "sigma")} == {
        "eta": spec.plan.method.eta,
        "sigma": spec.plan.method.sigma,
    }
    text = tuned.preset.read_text(encoding="utf-8")
    assert f"{tuned.value:.4f}" in text
    assert "5 trials" in text


def test_a_search_may_start_from_what_is_found_automatically(tmp_path: Path) -> None:
    file = tmp_path / "auto.toml"
    file.write_text('[x.fit]\nlr = 0.05\n[x.umix]\neta = "auto"\nlength = "auto"\n', encoding="utf-8")
    tuned = tuned_in(tmp_path, 2, preset=str(file))
    first, second = sorted(tuned.trials, key=lambda trial: trial.number)
    assert (first.settings["umix.eta"], first.settings["umix.length"]) == ("auto", "auto")
    assert second.settings["umix.eta"] > 0
    assert {record.stages["trajectory"].epochs for record in runs(tmp_path)} == {3}


def test_a_search_of_jtt_may_start_from_what_is_found_automatically(tmp_path: Path) -> None:
    file = tmp_path / "auto.toml"
    file.write_text(
        '[x.fit]\nlr = 0.05\n[x.jtt]\nidentification_epochs = "auto"\nupweight = "auto"\n', encoding="utf-8"
    )
    tuned = tune(
        "four_moons", "jtt", trials=2, settings={"fit.epochs": 3}, preset=str(file), out=tmp_path, prune="none"
    )
    first, second = sorted(tuned.trials, key=lambda trial: trial.number)
    assert set(first.settings.values()) == {"auto"}
    assert all(isinstance(value, int) for value in second.settings.values())
    records = [load_run(file.parent) for file in (tmp_path / "tune-four_moons-jtt").glob("*/record.json")]
    assert [record.stages["trajectory"].epochs for record in records] == [10, 10]  # one first stage for all trials


def test_trials_keep_no_weights(finished: tuple[Path, SearchResult]) -> None:
    assert not list(finished[0].rglob("weights/*"))


def test_a_study_goes_on_and_ends_as_if_it_had_not_stopped(finished: tuple[Path, SearchResult], tmp_path: Path) -> None:
    for trials in (2, 5, 3):
        again = tuned_in(tmp_path, trials)
    assert again.trials == finished[1].trials


def test_test_counts_are_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Poisoned(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            assert name == "val", "the search looked at the test split"
            return dict.__getitem__(self, name)

        def values(self) -> Any:
            raise AssertionError("the search looked at all splits")

        items = __iter__ = values

    def poisoned(spec: RunSpec, **paths: Any) -> RunRecord:
        record = execute(spec, **paths)
        clean = {"val": record.split_counts["val"]}
        return record.model_copy(update={"split_counts": Poisoned(clean)})

    monkeypatch.setattr(search, "execute", poisoned)
    assert tuned_in(tmp_path, 2).value >= 0


def test_a_pruned_trial_leaves_no_run_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda trial: trial.number == 1)
    tuned = tuned_in(tmp_path, 3, seeds=(0, 1))
    assert [trial.state for trial in sorted(tuned.trials, key=lambda trial: trial.number)] == [
        "complete",
        "pruned",
        "complete",
    ]
    assert len(runs(tmp_path)) == len(list((tmp_path / "tune-four_moons-umix").glob("four_moons-*"))) == 4


def test_a_trial_whose_learner_is_left_open_is_pruned_and_leaves_no_unfinished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda trial: trial.number == 1)
    settings = {"epochs": 3, "task.sizes": [30, 6, 6, 30], "task.eval_size": 10, "net": "auto"}
    tuned = tune("four_moons", "umix", trials=3, settings=settings, space={**SPACE, "eta": [1.0, 9.0]}, out=tmp_path)
    states = [trial.state for trial in sorted(tuned.trials, key=lambda trial: trial.number)]
    assert states == ["complete", "pruned", "complete"]
    left = [folder for folder in (tmp_path / "tune-four_moons-umix").rglob("four_moons-*") if folder.is_dir()]
    assert left
    assert all((folder / "record.json").exists() for folder in left)


def test_impossible_settings_take_a_trial_and_are_kept_with_their_error_but_those_of_the_start_are_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def failing(spec: RunSpec, **paths: Any) -> RunRecord:
        calls.append(1)
        if len(calls) in (1, 3):
            raise UserError("This cannot be.")
        return execute(spec, **paths)

    monkeypatch.setattr(search, "execute", failing)
    with pytest.raises(UserError, match="This cannot be"):
        tuned_in(tmp_path, 3)
    tuned = tuned_in(tmp_path, 4)
    assert [trial.error for trial in sorted(tuned.trials, key=lambda trial: trial.number)] == [
        "This cannot be.",
        None,
        "This cannot be.",
        None,
    ]


def test_another_search_under_the_same_name_is_refused(finished: tuple[Path, SearchResult]) -> None:
    with pytest.raises(UserError, match=r"was begun with other seeds \(\[0\], now \[1\]\)"):
        tuned_in(finished[0], 5, seeds=(1,))


def as_if_long_ago(file: Path) -> None:
    """The trials of the database that are running have begun years ago, and had their last heartbeat then."""
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE trial_heartbeats SET heartbeat = '2000-01-01 00:00:00.000000'")
        database.execute("UPDATE trials SET datetime_start = '2000-01-01 00:00:00.000000' WHERE state = 'RUNNING'")


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")  # the trial is asked for without one
def test_a_trial_whose_process_died_before_its_first_heartbeat_is_queued_again(tmp_path: Path) -> None:
    with quiet_optuna(), open_study("x", None, tmp_path, about={}, start={"a": 0.25}, prune="none") as study:
        study.ask()
        retry_dead_trials(study)
        assert [trial.state.name for trial in study.trials] == ["RUNNING"]
        as_if_long_ago(tmp_path / "study.db")
        retry_dead_trials(study)
        assert [trial.state.name for trial in study.trials] == ["FAIL", "WAITING"]
        assert study.ask().suggest_float("a", 0, 1) == 0.25


def test_the_trial_of_a_killed_process_is_made_by_another_from_the_same_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(spec: RunSpec, **paths: Any) -> Never:
        raise SystemExit

    storage = f"sqlite:///{tmp_path / 'shared.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(search, "execute", killed)
        with pytest.raises(SystemExit):
            tuned_in(tmp_path, 1, storage=storage)
    as_if_long_ago(tmp_path / "shared.db")
    (trial,) = tuned_in(tmp_path, 1, storage=storage).trials
    assert (trial.state, trial.start) == ("complete", True)


@contextlib.contextmanager
def unreachable_database(*, here: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Inside the block, every statement for a database fails where ``here`` is true."""

    def refuse(*args: Any) -> None:
        if here():
            try:
                raise sqlalchemy.exc.OperationalError("SELECT 1", {}, Exception("connection refused\nIs it running?"))
            except sqlalchemy.exc.OperationalError:
                raise sqlalchemy.exc.PendingRollbackError("Cannot reconnect.")  # noqa: B904 (as SQLAlchemy does)

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", refuse)
    try:
        yield
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", refuse)


@pytest.mark.parametrize(
    ("owner", "last"),
    [(search, "retry_dead_trials"), (search, "record_settings"), (search, "execute"), (search._Worker, "trial")],
    ids=["before a trial", "before its run", "in its run", "after a trial"],
)
def test_a_search_whose_database_goes_away_says_so_and_goes_on_when_it_is_back(
    owner: Any, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, call = f"sqlite:///{tmp_path / 'shared.db'}", getattr(owner, last)
    with contextlib.ExitStack() as outage, monkeypatch.context() as patch:

        def then_gone(*args: Any, **more: Any) -> Any:
            result = call(*args, **more)
            outage.enter_context(unreachable_database())
            return result

        patch.setattr(owner, last, then_gone)
        with pytest.raises(
            MachineError, match=r"^The database sqlite:\S*shared.db .*\(connection refused\).* is kept\.$"
        ):
            tuned_in(tmp_path, 1, storage=storage)
    as_if_long_ago(tmp_path / "shared.db")
    (trial,) = tuned_in(tmp_path, 1, storage=storage).trials
    assert (trial.state, trial.start) == ("complete", True)


def test_a_lost_heartbeat_is_no_error_of_the_search(tmp_path: Path) -> None:
    with unreachable_database(here=lambda: threading.current_thread() is not threading.main_thread()):
        assert len(tuned_in(tmp_path, 1).trials) == 1


def test_an_interrupted_trial_is_the_next_and_the_search_ends_as_if_it_had_not_been(
    finished: tuple[Path, SearchResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(spec: RunSpec, **paths: Any) -> RunRecord:
        if spec.plan.method.eta != RunSpec(task="four_moons", method="umix").plan.method.eta:
            raise KeyboardInterrupt
        return execute(spec, **paths)

    monkeypatch.setattr(search, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tuned_in(tmp_path, 3)
    seen: list[float] = []

    def watched(spec: RunSpec, **paths: Any) -> RunRecord:
        seen.append(spec.plan.method.eta)
        return execute(spec, **paths)

    monkeypatch.setattr(search, "execute", watched)
    tuned = tuned_in(tmp_path, 3)
    assert len(seen) == 2
    first = [trial for trial in finished[1].trials if trial.number < 3]
    assert [(trial.settings, trial.value) for trial in tuned.trials] == [
        (trial.settings, trial.value) for trial in first
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": 0}, "trials= must be at least 1"),
        ({"name": "a/b"}, "name= must be letters"),
        ({"seeds": (1, 1)}, "each once"),
        ({"select": "wrost"}, "did you mean 'worst'"),
        ({"storage": "nonsense"}, "storage= must be the URL of a database"),
        ({"storage": "postgresql://host/x"}, r"umix\[postgresql\]"),
    ],
)
def test_what_cannot_be_searched_is_said_in_words(
    changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as if the extra were not installed
    with pytest.raises(UserError, match=message):
        tune("four_moons", "umix", **{"trials": 1, "settings": SETTINGS, "out": tmp_path, **changes})
