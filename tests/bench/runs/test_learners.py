"""Runs on tables with trees, and runs whose learner is left open."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest

from umix import RunSpec, Study, UserError, execute, load_net, load_run, predict, run_study, task_from_table, train
from umix.bench.runs.learners import LEARNERS, LearnerChoice, choose_learner, learner_specs
from umix.bench.runs.record import RunRecord, load_runs
from umix.cli import main
from umix.core.epoch_counts import Counts
from umix.core.selection import best_score
from umix.data.rows.table_file import read_table
from umix.models.estimators.estimator import EstimatorModel
from umix.reports.arrange import arrange

FAST = {"task.label": "bought", "task.groups": ["town"], "epochs": 4}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with numbers, texts and gaps; in the small town the label depends on another column."""
    rng = np.random.default_rng(0)
    n = 600
    town = np.where(rng.random(n) < 0.2, "small", "large")
    age, kind = rng.normal(40, 10, n).round(1), rng.choice(["a", "b", "c"], n)
    score = np.where(town == "large", (age > 40) * 2.0, (kind == "a") * 2.0) + rng.normal(size=n) * 0.7
    frame = polars.DataFrame({"age": age, "kind": kind, "town": town, "bought": np.where(score > 1, "yes", "no")})
    frame = frame.with_columns(
        polars.when(polars.Series(rng.random(n) < 0.1)).then(None).otherwise(polars.col("age")).alias("age"),
        polars.when(polars.Series(rng.random(n) < 0.1)).then(None).otherwise(polars.col("kind")).alias("kind"),
    )
    path = tmp_path_factory.mktemp("data") / "shop.csv"
    frame.write_csv(path)
    return path


def spec(path: Path, method: str = "erm", **settings: object) -> RunSpec:
    return RunSpec(task=str(path), method=method, settings={**FAST, **settings})


def test_trees_are_trained_on_codes_and_predict_new_rows(shop: Path, tmp_path: Path) -> None:
    record = execute(spec(shop, net="trees"), out=tmp_path)
    assert record.input_shape == [3]
    assert record.input_categories == [0, 3, 2]
    table = predict(record, shop)
    net = load_net(record)
    assert isinstance(net, EstimatorModel)
    assert (table["label"] == polars.read_csv(shop)["bought"]).mean() > 0.75
    assert predict(record, shop)["p_yes"].to_list() == table["p_yes"].to_list()


@pytest.mark.parametrize("method", ["resample", "umix", "group_mixup", "dfr"])
def test_methods_that_weigh_examples_train_trees(shop: Path, tmp_path: Path, method: str) -> None:
    given = spec(shop, method, net="trees", **({"resample.by": "group"} if method == "resample" else {}))
    record = execute(given, out=tmp_path)
    assert record.summary().average > 0.6
    assert execute(given, out=tmp_path).model_dump() == record.model_dump()
    if method in ("umix", "group_mixup"):
        assert record.choices["mixing"]["words"].startswith("the weights of examples are used")


@pytest.mark.parametrize("method", ["afr", "crt", "evals"])
def test_methods_that_train_the_last_layer_again_weigh_the_parts_of_a_forest_anew(
    shop: Path, tmp_path: Path, method: str
) -> None:
    short = {} if method == "evals" else {"layer_epochs": 2}
    record = execute(spec(shop, method, net="trees", **short), out=tmp_path)
    assert record.summary().average > 0.6
    head = load_net(record).head.weight
    assert (head[:, :-2] != 0).any() != (record.choices.get("k") == 0)  # of trees alone only the last block counts
    assert predict(record, shop)["label"].n_unique() == 2


@pytest.mark.parametrize("method", ["mixup", "group_dro", "lff", "focal", "irm", "lisa"])
def test_methods_that_need_gradients_refuse_trees(shop: Path, method: str) -> None:
    with pytest.raises(UserError, match=f"^{method} must train a net: .* and trees is only fitted to weighted rows"):
        spec(shop, method, net="trees")


def test_settings_of_gradient_steps_are_refused_for_trees(shop: Path) -> None:
    with pytest.raises(UserError, match=r"^The setting fit.lr must be left out for trees"):
        spec(shop, net="trees", lr=0.1)
    with pytest.raises(UserError, match=r"^The setting trajectory.momentum must be left out for trees"):
        spec(shop, "umix", **{"net": "trees", "trajectory.momentum": 0.1})
    assert spec(shop, net="trees", learning_rate=0.3).plan.net.learning_rate == 0.3


def test_best_takes_the_run_of_the_better_learner(shop: Path, tmp_path: Path) -> None:
    best = spec(shop, "best", trials=3)
    record = execute(best, out=tmp_path)
    learners = record.choices["learner"]
    assert [row["learner"] for row in learners["candidates"]] == ["mlp", "trees"]
    alone = next(one for one in learner_specs(best) if one.plan.net.title == learners["name"])
    chosen = execute(alone, out=tmp_path / "alone")
    assert not (tmp_path / LEARNERS).exists()
    assert record.split_counts == chosen.split_counts
    assert record.net == learners["name"]
    assert record.key == best.key
    assert load_run(record.directory).model_dump() == record.model_dump()
    assert predict(record, shop).equals(predict(chosen, shop))
    assert [path.name for path in tmp_path.iterdir() if (path / "record.json").exists()] == [record.directory.name]
    assert execute(best, out=tmp_path).model_dump() == record.model_dump()


@pytest.mark.parametrize("step", ["as_run_of", "move_up"])
def test_a_run_that_is_killed_when_its_learner_is_chosen_ends_with_the_same(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    best = spec(shop, "best", trials=1)
    whole = execute(best, out=tmp_path / "whole")

    def killed(source: Path, directory: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"umix.bench.runs.learners.{step}", killed)
        with pytest.raises(KeyboardInterrupt):
            execute(best, out=tmp_path / "killed")
    directory = tmp_path / "killed" / best.directory_name
    assert not directory.exists()
    again = execute(best, out=tmp_path / "killed")
    assert again.split_counts == whole.split_counts
    assert again.choices == whole.choices
    assert {path.name for path in directory.iterdir()} == {path.name for path in whole.directory.iterdir()}
    assert not (tmp_path / "killed" / LEARNERS).exists()


@pytest.mark.parametrize("key", ["time", "best.time"])
def test_learners_that_come_first_leave_half_of_the_time_to_nets(shop: Path, key: str) -> None:
    open_learner = RunSpec(task=str(shop), method="best", settings={"task.label": "bought", "net": "auto", key: 60})
    times = {one.plan.net_name: one.plan.method.model_dump()["time"] for one in learner_specs(open_learner)}
    assert times == {"mlp": 60, "trees": 30}


def test_seeds_that_take_different_learners_are_one_row_of_one_task_everywhere(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_seed(records: list[RunRecord]) -> LearnerChoice:
        return replace(choose_learner(records), chosen=records[records[0].seed])

    monkeypatch.setattr("umix.bench.runs.execute.choose_learner", by_seed)
    methods = ["erm", {"name": "best", "settings": {"net": "auto", "trials": 1}}]
    study = Study(tasks=[str(shop)], methods=methods, seeds=(0, 1), settings=FAST)
    result = run_study(study, out=tmp_path)
    rows = {label: [run.net for run in runs] for label, runs in result.records["shop.csv"].items()}
    assert rows == {"erm": ["mlp", "mlp"], "best": ["mlp", "trees"]}
    found = arrange(load_runs(tmp_path).records)
    assert {label: [run.net for run in runs] for label, runs in found["shop.csv"].items()} == rows
    again = run_study(study, out=tmp_path)  # trees read the table in another form: they are no runs on other data
    assert [run.key for run in again.all_records] == [run.key for run in result.all_records]


def test_the_better_learner_in_memory_is_the_one_in_a_folder(shop: Path, tmp_path: Path) -> None:
    settings = {"label": "bought", "groups": "town", "fit": {"epochs": 4}, "trials": 1}
    folder, memory = (train(shop, out=out, **settings) for out in (tmp_path, None))
    assert memory.choices == folder.choices
    assert memory.summary() == folder.summary()
    assert memory.predict(shop).equals(folder.predict(shop))


def test_epochs_of_the_net_are_reported_with_the_counts_of_the_better_learner_so_far(
    shop: Path, tmp_path: Path
) -> None:
    seen: list[tuple[int, Counts]] = []
    mlp, trees = learner_specs(spec(shop, net="auto"))
    execute(spec(shop, net="auto"), out=tmp_path, on_epoch=lambda epoch, val: seen.append((epoch, val)))
    assert [epoch for epoch, _ in seen] == [0, 1, 2, 3]
    net, forest = (execute(one, out=tmp_path / "alone").threshold_counts["val"] for one in (mlp, trees))
    for epoch, val in seen:
        reached = [best_score(counts, "worst") for counts in (net.only(range(epoch + 1)), forest)]
        assert best_score(val, "worst") == max(reached)


def test_a_run_with_an_open_learner_stops_where_its_caller_says(shop: Path, tmp_path: Path) -> None:
    def stop(epoch: int, val: Counts) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(spec(shop, net="auto"), out=tmp_path / "stopped", on_epoch=stop)
    again = execute(spec(shop, net="auto"), out=tmp_path / "stopped")
    whole = execute(spec(shop, net="auto"), out=tmp_path / "whole")
    assert (again.split_counts, again.choices) == (whole.split_counts, whole.choices)


def test_an_open_learner_needs_a_method_that_all_can_be_trained_with(shop: Path) -> None:
    with pytest.raises(UserError, match=r"^mixup must train a net: .* auto may choose one that is only fitted"):
        spec(shop, "mixup", net="auto")
    one, two = learner_specs(spec(shop, "best", lr=0.5))
    assert one.plan.fit.lr == 0.5
    assert one.plan.net.hidden == (128, 64)  # the preset's, though its net for best is auto
    assert "lr" not in two.settings


def test_where_the_worst_groups_are_close_the_average_decides(shop: Path, tmp_path: Path) -> None:
    record = execute(spec(shop, net="trees"), out=tmp_path)
    other = execute(spec(shop, net="mlp"), out=tmp_path)
    counts = record.split_counts["val"].model_copy(deep=True)
    better = other.model_copy(update={"split_counts": {**other.split_counts, "val": counts}})
    assert choose_learner([record, better]).chosen is record  # equal: the first


def test_a_table_is_run_with_trees_from_the_command_line(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", str(shop), "umix", "--label", "bought", "--groups", "town", "--net", "trees", "--set", "epochs=4"]
    assert main([*run, "--out", str(tmp_path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["choices"]["mixing"]["words"].startswith("the weights of examples are used")
    (folder,) = tmp_path.glob("*-umix-*")
    assert main(["predict", str(folder), str(shop), "--output", str(tmp_path / "p.csv")]) == 0
    assert main(["run", str(shop), "mixup", "--label", "bought", "--net", "trees", "--out", str(tmp_path)]) == 2
    assert "choose another net with --net, or one of best, erm" in capsys.readouterr().err.replace("\n", " ")


def test_settings_that_do_nothing_for_trees_are_refused(shop: Path) -> None:
    with pytest.raises(UserError, match=r"^The setting umix.sigma must be left out for trees: .* nothing is mixed"):
        spec(shop, "umix", net="trees", sigma=0.5)
    assert spec(shop, "umix", net="trees", sigma=0).plan.method.sigma == 0
    mlp, trees = learner_specs(spec(shop, "best", mixing="features"))
    assert (mlp.plan.method.mixing, trees.plan.method.mixing) == ("features", "input")


def test_wrong_options_of_learners_are_refused_in_a_sentence(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^net.options must leave out max_iter"):
        execute(spec(shop, net="trees", **{"net.options": {"max_iter": 3}}), out=tmp_path)
    with pytest.raises(
        UserError, match=r"^trees must be fitted to 358 rows, but its estimator raised InvalidParameterError"
    ):
        execute(spec(shop, net="trees", **{"net.options": {"max_bins": "x"}}), out=tmp_path)
    assert spec(shop, net="trees", **{"net.options": '{"max_bins": 63}'}).plan.net.options == {"max_bins": 63}
    assert spec(shop, net="trees", **{"net.depth": "none"}).plan.net.depth is None
    with pytest.raises(
        UserError, match=r"^net.among must name different learners, and not auto itself, got \['auto'\]"
    ):
        spec(shop, "best", **{"net.among": ["auto"]})
    with pytest.raises(UserError, match=r"^net.learning_rate must be set for one learner, but auto tries several"):
        spec(shop, "best", **{"net.learning_rate": 0.3})


def test_images_are_refused_for_trees_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^trees must be given rows of numbers, got examples of shape \[2, 8, 8\]"):
        execute(RunSpec(task="colored_digits", method="erm", settings={"net": "trees"}), out=tmp_path)


def test_a_table_is_read_once_for_all_learners(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr("umix.data.tables.source.read_table", lambda path: read.append(path) or read_table(path))
    execute(spec(shop, net="auto", data_seed=7, epochs=1), out=tmp_path)
    assert len(read) == 1


def test_the_options_of_a_learner_are_a_name_or_a_dict(shop: Path) -> None:
    frame = polars.read_csv(shop)
    with pytest.raises(
        UserError, match=r"^net must be a name or a dict of options with the name among them, got object"
    ):
        train(task_from_table(frame, label="bought"), "erm", net=object())
    options = {"name": "trees", "options": {"max_bins": 63}}
    assert train(shop, "erm", net=options, label="bought", epochs=1).record.plan["net"]["options"] == {"max_bins": 63}
