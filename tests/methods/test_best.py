"""best: a selection among methods with whatever is known of the groups."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from umix import RunSpec, execute, method
from umix.bench.runs.example_tables import load_examples, read_examples
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.task_reference import reference_to
from umix.checkpoint_pace import EVERY_EPOCH
from umix.core.evaluation import Evaluation
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.methods.best import selection_summary
from umix.models.mlp import MLP
from umix.selection.halving import SELECTION
from umix.selection.select import Candidate, CandidateResult, Selection, by_score, result_of, select
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.objective import MeanRisk
from umix.training.progress import Silent

#: Few candidates that are soon trained, among them all that a test lets win; DFR is the last.
FEW = {"best.trials": 11}
SHORT = {"fit.epochs": 6, "fit.lr": 0.02, "net.name": "linear", "fit.batch_size": 64, "fit.optimizer": "adamw"}


def shortcut(n=900, *, seed=0, agreement=0.95) -> Task:
    """The class depends on a faint feature; a loud one, which decides the group, agrees with it in most examples."""
    rng = np.random.default_rng(seed)
    splits = {}
    for name in ("train", "val", "test"):
        y = rng.integers(0, 2, n)
        place = np.where(rng.random(n) < (agreement if name == "train" else 0.7), y, 1 - y)
        x = rng.normal(size=(n, 6))
        x[:, 0] += 1.5 * (2 * y - 1)
        x[:, 1] += 4.0 * (2 * place - 1)
        groups = Groups.cells(torch.from_numpy(y), torch.from_numpy(place), labels=["0", "1"], attributes=["a", "b"])
        splits[name] = Split(torch.from_numpy(x).float(), torch.from_numpy(y), groups)
    return Task("shortcut", splits, ("0", "1"))


def run(task, out, name="best", seed=0, watched=None, **settings):
    """The record of a run that writes a checkpoint after every epoch; ``watched`` are options of ``execute``."""
    reference = reference_to(task)
    paths = RunPaths(out, tasks=reference.tasks, pace=EVERY_EPOCH)
    spec = RunSpec(task=reference.name, method=name, settings=SHORT | settings, seed=seed)
    return execute(spec, paths=paths, **(watched or {}))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A folder of runs: tests that ask for the same one train it once."""
    return tmp_path_factory.mktemp("runs")


@pytest.mark.parametrize("use_groups", ["test", "val", "train"])
def test_the_winner_is_the_run_of_its_own_method(shared, use_groups):
    task, evaluation = shortcut(), {"evaluation.use_groups": use_groups}
    best = run(task, shared, **evaluation)
    chosen = best.choices
    settings = {
        name: value for name, value in chosen.items() if name.startswith((f"{chosen['method']}.", "trajectory."))
    }
    again = run(task, shared, chosen["method"], **evaluation, **settings)
    for split in ("val", "test"):
        assert best.split_counts[split].hits == again.split_counts[split].hits


def test_dfr_as_the_winner_is_the_run_of_dfr(tmp_path, monkeypatch):
    won_by("dfr", monkeypatch)
    best, alone = run(shortcut(300), tmp_path, **FEW), run(shortcut(300), tmp_path, "dfr")
    assert best.split_counts == alone.split_counts
    assert best.warnings == alone.warnings
    weights = "weights/epoch-0000.safetensors"
    assert files_of(best)[weights] == files_of(alone)[weights]


def test_a_new_last_layer_as_the_winner_is_the_run_of_that_method(tmp_path, monkeypatch):
    won_by("cb_last_layer", monkeypatch)
    nothing = {"evaluation.use_groups": "test"}
    best, alone = (
        run(shortcut(300), tmp_path, **FEW, **nothing),
        run(shortcut(300), tmp_path, "cb_last_layer", **nothing),
    )
    assert best.choices["method"] == "cb_last_layer"
    for split in ("val", "test"):
        assert best.split_counts[split].hits == alone.split_counts[split].hits
    assert best.group_use == "none"
    assert best.summary("uncertainty_quintile").worst > 0  # the fifths of UMIX's first stage, as of any other winner


def test_without_groups_a_new_last_layer_wins_where_validation_shows_minorities_more_often(shared):
    task, nothing = shortcut(), {"evaluation.use_groups": "test"}
    best, tuned = run(task, shared, **nothing), run(task, shared, "erm", **nothing)
    assert best.choices["method"] == "cb_last_layer"
    assert best.summary().worst > tuned.summary().worst + 0.05


def test_what_is_known_of_the_groups_decides_what_is_tried(shared):
    task, tried = shortcut(), {}
    for use_groups in ("test", "val", "train"):
        record = run(task, shared, **{"evaluation.use_groups": use_groups})
        tried[use_groups] = {one["candidate"] for one in record.choices["candidates"]}
    assert {"erm", "reweight by=class", "cb_last_layer"} <= tried["test"]
    assert "dfr" in tried["train"]
    assert "cb_last_layer" not in tried["val"] | tried["train"]
    assert not any("group" in name for name in tried["test"])
    assert "group_mixup power=1 groups_from=few" in tried["val"]
    assert "group_mixup power=1" in tried["train"]
    assert "group_dro" in tried["train"]
    assert all(any(name.startswith("umix") for name in names) for names in tried.values())


def test_more_knowledge_of_the_groups_lifts_the_worst_group(shared):
    task = shortcut()
    erm = run(task, shared, "erm").summary(threshold="off").worst
    known = run(task, shared, **{"evaluation.use_groups": "val"}).summary().worst
    assert known > erm + 0.1


def test_the_record_says_whose_groups_the_winner_trains_with(shared):
    task = shortcut()
    used = {use: run(task, shared, **{"evaluation.use_groups": use}) for use in ("test", "val", "train")}
    assert used["test"].group_use == "none"
    for use, split in (("val", "validation"), ("train", "training")):
        with_groups = used[use].choices["method"] in ("group_mixup", "group_dro")
        assert used[use].group_use == (
            split if with_groups else "none" if used[use].choices["method"] != "dfr" else "validation"
        )


def test_what_was_chosen_and_what_the_others_reached_is_said(shared):
    record = run(shortcut(), shared)
    assert record.choices["chosen"].startswith("Chosen of ")
    assert "ordinary + threshold" in record.choices["others"]
    worst = [point["worst"] for point in record.choices["frontier"]]
    assert worst == sorted(worst, reverse=True)


def result(name: str, worst: float, average: float, score: float = 0.5) -> CandidateResult:
    return CandidateResult(name, score, worst, average, epochs=3)


def selection(*results: CandidateResult) -> Selection:
    context = Context(shortcut(10), MLP(hidden=()))
    return Selection(Candidate("erm", "erm", {}, MeanRisk()), results, (), "worst", context, context)


def test_the_average_is_compared_with_the_best_of_erm_and_not_with_its_epochs_in_the_selection():
    found = selection(result("umix eta=3", 0.6, 0.85), result("erm", 0.5, 0.8))
    assert selection_summary(found, erm=0.9)["chosen"] == (
        "Chosen of 2 candidates on validation: umix eta=3, worst group 50.0 % (small groups are pulled towards their class), "
        "average 85.0 %. Price: average 5.0 points below an ordinary model's."
    )
    assert selection_summary(found, erm=0.85)["chosen"].endswith("No price: same average.")
    assert "1.0 points above" in selection_summary(found, erm=0.84)["chosen"]


def test_what_every_kind_reached_says_what_is_over_the_budget_and_names_no_threshold_under_argmax():
    found = selection(
        result("umix eta=3", 0.6, 0.85), result("erm", 0.5, 0.8), result("group_dro", 0.7, 0.6, float("nan"))
    )
    assert selection_summary(found, erm=0.9)["others"] == (
        "The best of every kind by the same score: UMIX 50.0 %, ordinary + threshold 50.0 %, GroupDRO costs too much."
    )
    assert "threshold" not in selection_summary(found, erm=0.9, decides=False)["others"]


def test_a_single_trial_is_trained_without_a_selection_and_says_so(tmp_path):
    record = run(shortcut(300), tmp_path, **{"best.trials": 1})
    assert record.choices["method"] == "erm"
    assert record.choices["chosen"] == "Trained erm, the only candidate: trials=1 allows no other."
    assert SELECTION not in record.stages


def validation_average(record) -> float:
    choice, val = record.choice(), record.threshold_counts["val"]
    return val.at_threshold(choice.threshold).all_hits[choice.epoch] / val.n


def test_a_budget_limits_what_the_choice_costs_on_average(tmp_path):
    """Half of the labels of class 1 are flipped, so a better worst class costs average accuracy."""
    task = shortcut()
    rng = np.random.default_rng(2)
    for split in task.splits.values():
        split.y[(split.y == 1).numpy() & (rng.random(len(split)) < 0.5)] = 0
    none = Groups(torch.zeros(900, 0).bool(), ())
    task = Task("flipped", {name: Split(split.x, split.y, none) for name, split in task.splits.items()}, ("0", "1"))
    free = run(task, tmp_path, **{"evaluation.budget": 1.0})
    tight = run(task, tmp_path, **{"evaluation.budget": 0.005})
    assert validation_average(tight) >= tight.floor - 1e-9
    assert validation_average(tight) > validation_average(free)


def test_trials_limit_the_candidates(tmp_path):
    record = run(shortcut(300), tmp_path, **{"best.trials": 3})
    assert len(record.choices["candidates"]) == 3


@pytest.mark.parametrize(("name", "use_groups"), [("dfr", "train"), ("cb_last_layer", "test")])
def test_a_last_layer_is_compared_with_the_others_on_all_of_validation(tmp_path, monkeypatch, name, use_groups):
    counted = {}

    def counted_result(name, counts, *rest, **options):
        counted[name] = counts
        return result_of(name, counts, *rest, **options)

    monkeypatch.setattr("umix.methods.best.result_of", counted_result)
    task = shortcut(300)
    run(task, tmp_path, **FEW, **{"evaluation.use_groups": use_groups})
    assert counted[name].sizes.tolist() == task.splits["val"].groups.sizes.tolist()


@pytest.mark.parametrize("use_groups", ["train", "test"])
def test_a_last_layer_is_not_fitted_where_only_the_weights_of_examples_are_wanted(use_groups):
    fit = FitSettings(epochs=3, lr=0.02, batch_size=64)
    allowed = {"use_groups": use_groups, "evaluation": Evaluation(choose=use_groups != "test")}
    context = Context(shortcut(300), MLP(hidden=()), fit, only_weigh=True, **allowed)
    choices = method("best").train(context).choices
    assert not {"dfr", "cb_last_layer"} & {one["candidate"] for one in choices["candidates"]}


def test_a_selection_out_of_time_is_judged_by_its_first_round(tmp_path):
    record = run(shortcut(300), tmp_path, **{"best.time": 1e-6})
    assert record.stages[SELECTION].epochs == 1
    assert record.choices["not tried"] == "dfr: no time was left."


def test_the_time_of_a_run_counts_from_the_beginning_of_its_command(tmp_path):
    progress = Silent()
    progress.began = -math.inf
    record = run(shortcut(300), tmp_path, watched={"progress": progress}, **{"best.time": 1e9})
    assert record.stages[SELECTION].epochs == 1


def test_groups_that_cannot_be_told_apart_are_not_spread_and_the_run_says_so(tmp_path):
    task = shortcut()
    rng = np.random.default_rng(1)
    val = task.splits["val"]
    place = torch.from_numpy(rng.integers(0, 2, len(val)))
    random = Groups.cells(val.y, place, labels=["0", "1"], attributes=["a", "b"])
    noisy = Task("noisy", {**task.splits, "val": Split(val.x, val.y, random)}, task.classes)
    record = run(noisy, tmp_path, **{"evaluation.use_groups": "val"})
    assert "no better than chance" in record.choices["not tried"]


def test_blank_validation_groups_are_enough_for_a_few(tmp_path):
    task = shortcut()
    val = task.splits["val"]
    member = val.groups.member.clone()
    member[300:] = False
    attribute = torch.where(torch.arange(len(val)) < 300, val.groups.attribute, -1)
    few = replace(val, groups=replace(val.groups, member=member, attribute=attribute))
    record = run(Task("few", {**task.splits, "val": few}, task.classes), tmp_path, **{"evaluation.use_groups": "val"})
    assert any("groups_from=few" in one["candidate"] for one in record.choices["candidates"])


class Stopping:
    """Progress that interrupts the run when ``stage`` begins."""

    def __init__(self, stage):
        self.stage = stage

    def start(self, stage, *, total, done):
        if stage == self.stage:
            raise KeyboardInterrupt

    def advance(self, steps): ...

    def finish(self): ...

    def note(self, message): ...


def stops_at(epoch, val):
    """Interrupts the final fit in its last epoch but one."""
    if epoch == SHORT["fit.epochs"] - 2:
        raise KeyboardInterrupt


def files_of(record):
    """What a finished run leaves, by name, without the seconds that it took."""
    left = {path.relative_to(record.directory): path for path in record.directory.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in left.items() if path.suffix == ".safetensors"}


@pytest.mark.parametrize(
    ("winner", "stops"), [("group_mixup power=1", ("fit",)), ("erm", ("trial", "fit", "trial")), ("dfr", ("trial",))]
)
def test_a_run_stopped_in_its_fit_or_in_a_trial_of_dfr_ends_as_if_nothing_had_happened(
    tmp_path, monkeypatch, winner, stops
):
    won_by(winner, monkeypatch)
    task = shortcut(300)
    whole = run(task, tmp_path / "whole", **FEW)
    watched = {"fit": {"on_epoch": stops_at}, "trial": {"progress": Stopping("reference")}}
    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            run(task, tmp_path / "stopped", watched=watched[stop], **FEW)
    again = run(task, tmp_path / "stopped", **FEW)
    assert again.split_counts == whole.split_counts
    assert again.choices == whole.choices
    assert again.warnings == whole.warnings
    assert files_of(again) == files_of(whole)


def test_a_resumed_run_with_another_winner_does_not_go_on_from_the_first_ones_checkpoint(tmp_path, monkeypatch):
    """A selection with a time limit may come further when the run is resumed, and choose another candidate."""
    task = shortcut(300)
    won_by("erm", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(task, tmp_path / "stopped", watched={"on_epoch": stops_at}, **FEW)
    won_by("group_mixup power=1", monkeypatch)
    again, whole = (run(task, tmp_path / out, **FEW) for out in ("stopped", "whole"))
    assert again.split_counts == whole.split_counts
    assert files_of(again) == files_of(whole)


def won_by(name, monkeypatch):
    """Let the candidate ``name`` win, whatever validation says of it."""

    def decided(context, candidates, **options):
        found = select(context, candidates, **options)
        results = by_score([replace(one, score=2.0 if one.name == name else -1.0) for one in found.results])
        winner = next((one for one in candidates if one.name == name), found.winner)
        return replace(found, winner=winner, results=tuple(results))

    monkeypatch.setattr("umix.methods.best.select", decided)


@pytest.mark.parametrize("name", ["dfr", "reweight by=class", "group_mixup power=1"])
def test_the_weights_that_are_kept_are_those_that_the_winner_trains_with(tmp_path, monkeypatch, name):
    won_by(name, monkeypatch)
    task = shortcut(300)
    best = run(task, tmp_path, **FEW)
    assert best.choices["method"] == name.split()[0]
    kept, alone = load_examples(best), read_examples(run(task, tmp_path, name.split()[0]))
    assert ("weight" in kept.columns) == (alone is not None)
    if alone is not None:
        np.testing.assert_array_equal(kept["weight"], alone["weight"])
