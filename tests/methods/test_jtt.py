"""JTT: its error set, its copies, and what it shares."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from umix import RunSpec, execute
from umix.core.evaluation import Evaluation
from umix.core.selection import best_choice
from umix.core.weights import normalized
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.task import Task
from umix.methods.erm import ERM
from umix.methods.jtt import JTT
from umix.methods.umix import UMIX
from umix.models.mlp import Linear
from umix.models.net import Net
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.evaluate import correctness
from umix.training.stage import ErmStage

Make = Callable[..., Context]


def same(first: Net, second: Net) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("record", ["online", "epoch_end"])
def test_no_copies_are_erm(context: Make, record: str) -> None:
    assert same(JTT(upweight=0, record=record).train(context()).net, ERM().train(context()).net)


@pytest.mark.parametrize("epochs", [1, 3])
def test_the_error_set_is_what_the_first_net_gets_wrong(context: Make, epochs: int) -> None:
    run = context()
    result = JTT(identification_epochs=epochs, upweight=4).train(run)
    # The same net by hand: the stage's name decides its initialisation and order.
    first = context().reference(ErmStage("trajectory", epochs))
    wrong = ~correctness(first, run.splits["train"], batch_size=32)
    assert 0 < int(wrong.sum()) < len(wrong)
    assert torch.equal(result.per_example["uncertainty"], wrong.float())
    assert torch.equal(result.per_example["weight"], torch.where(wrong, 5.0, 1.0))


def test_a_longer_first_stage_does_not_move_the_error_set(context: Make) -> None:
    short, long = context(), context(stages={"trajectory": {"epochs": 5}})
    first, second = (JTT(identification_epochs=2).train(run).per_example["uncertainty"] for run in (short, long))
    assert torch.equal(first, second)
    assert long.journal.reports["trajectory"].epochs == 5


def test_k_copies_are_a_weight_of_k(context: Make) -> None:
    everything = {"batch_size": 10_000, "epochs": 6, "lr": 0.1}  # one batch: the copies of an example never part
    first_stage = {"trajectory": {"batch_size": 32}}
    copies = JTT(upweight=4).train(context(fit=everything, stages=first_stage))
    weighted = context(fit=everything).fit(BatchRisk(weights=normalized(copies.per_example["weight"])))
    for a, b in zip(copies.net.parameters(), weighted.net.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def test_an_epoch_visits_the_training_set_and_the_copies(context: Make) -> None:
    class Steps:
        totals: dict[str, int]

        def __init__(self) -> None:
            self.totals = {}

        def start(self, stage: str, *, total: int, done: int) -> None:
            self.totals[stage] = total

        def advance(self, steps: int) -> None: ...

        def finish(self) -> None: ...

        def note(self, message: str) -> None: ...

    steps = Steps()
    run = context(progress=steps, fit={"batch_size": 1, "epochs": 1, "lr": 0.01})
    wrong = JTT(upweight=3, identification_epochs=1).train(run).per_example["uncertainty"]
    assert steps.totals["fit"] == len(run.splits["train"]) + 3 * int(wrong.sum())


@pytest.mark.parametrize("record", ["online", "epoch_end"])
def test_jtt_and_umix_share_one_first_stage_where_their_settings_agree(
    context: Make, tmp_path: Path, record: str
) -> None:
    umix, jtt = (context(directory=tmp_path / name, cache=tmp_path / "stages") for name in ("umix", "jtt"))
    UMIX(start=1, length=2, record=record).train(umix)
    JTT(identification_epochs=3, record=record).train(jtt)
    assert jtt.journal.reports["trajectory"].reused
    assert jtt.journal.reports["trajectory"].key == umix.journal.reports["trajectory"].key


def test_an_empty_error_set_is_reported_and_trains_as_erm(context: Make) -> None:
    separable = FourMoons(sizes=(60, 0, 0, 60), eval_size=10).load()
    result = JTT(identification_epochs=12).train(context(task=separable, stages={"trajectory": {"lr": 0.1}}))
    assert not result.per_example["uncertainty"].any()
    assert [warning for warning in result.warnings if "error set is empty" in warning]
    assert len([warning for warning in result.warnings if "wrong" in warning]) == 1
    assert same(result.net, ERM().train(context(task=separable)).net)


def test_an_error_set_of_most_examples_is_reported(context: Make, moons: Task) -> None:
    untrained = {"stages": {"trajectory": {"lr": 1e-9}}}
    before, train = context(**untrained), moons.splits["train"]
    predicted = before.logits(before.reference(ErmStage("trajectory", 1)), "train").argmax(dim=1)
    contrary = Task(moons.name, {**moons.splits, "train": replace(train, y=1 - predicted)}, moons.classes)
    result = JTT(identification_epochs=1).train(context(task=contrary, **untrained))
    assert "got 100 % of the training rows wrong" in result.warnings[0]


AUTO = {"upweight": "auto", "identification_epochs": "auto"}


def test_an_auto_run_is_the_run_with_the_chosen_settings(tmp_path: Path) -> None:
    given = {"fit.epochs": 6, "net.name": "mlp"}
    auto = execute(RunSpec(task="four_moons", method="jtt", settings=AUTO | given), out=tmp_path)
    chosen = {name: auto.choices[name] for name in AUTO}
    fixed = RunSpec(task="four_moons", method="jtt", settings=given | chosen | {"trajectory.epochs": 5})
    again = execute(fixed, out=tmp_path)
    assert auto.split_counts == again.split_counts
    assert again.choices == {}
    for file in auto.directory.glob("weights/epoch-*"):
        assert file.read_bytes() == (again.directory / "weights" / file.name).read_bytes()


@pytest.mark.parametrize("net", [None, Linear()], ids=["mlp", "linear"])
def test_candidates_are_erm_and_weights_of_mean_one_in_the_ratio_of_copies(context: Make, net: Linear | None) -> None:
    run = context() if net is None else context(net=net)
    jtt = JTT(**AUTO)
    (stage,) = jtt.erm_stages(run.settings.epochs)
    assert stage.epochs == 2  # the longest candidate that is no longer than the final fit of 4 epochs
    trajectory = run.trajectory(stage)
    tried = jtt._tried(stage.epochs, many=net is not None)
    assert tried[0] == (1, 0)
    assert len(tried) == len(set(tried)) == (1 + 2 * 5 if net is not None else 1 + 4)
    for epochs, upweight in tried:
        weights = jtt._candidate(trajectory, run, epochs, upweight).weights
        copies = 1 + upweight * trajectory.uncertainty(start=epochs - 1, length=1)
        torch.testing.assert_close(weights, copies / copies.mean())


def test_only_what_is_auto_is_tried(context: Make) -> None:
    run = context()
    copies = JTT(upweight="auto", identification_epochs=3).train(run)
    epochs = JTT(upweight=4, identification_epochs="auto").train(context(net=Linear()))
    assert run.journal.reports["trajectory"].epochs == 3
    assert {one["candidate"].split()[1] for one in copies.choices["candidates"]} == {"identification_epochs=3"}
    assert {one["candidate"].split()[2] for one in epochs.choices["candidates"]} == {"upweight=4"}


def test_a_budget_is_counted_from_the_accuracy_of_erm(context: Make) -> None:
    result = JTT(**AUTO).train(context(evaluation=Evaluation(choose=False, budget=0.1)))
    best = max(context().trajectory(ErmStage("trajectory", 2, record="epoch_end")).val_rates())
    assert result.history.evaluation.floor == pytest.approx(best - 0.1)
    assert "(two fifths the worst class, three fifths the average)" in result.choices["reason"]


def test_where_labels_are_noisy_auto_stays_near_erm_and_twenty_copies_do_not(context: Make) -> None:
    task = FourMoons(sizes=(300, 30, 30, 300), eval_size=200).load()
    rng = torch.Generator().manual_seed(0)
    splits = {
        name: replace(split, y=torch.where(torch.rand(len(split), generator=rng) < 0.35, 1 - split.y, split.y))
        for name, split in task.splits.items()
    }
    averages = {}
    for name, jtt in {"erm": JTT(upweight=0), "paper": JTT(), "auto": JTT(**AUTO)}.items():
        run = context(task=Task(task.name, splits, task.classes), evaluation=Evaluation(choose=False))
        history = jtt.train(run).history
        choice = best_choice(history.counts("val"), "worst_class")
        test = history.counts("test").at_threshold(choice.threshold)
        averages[name] = test.all_hits[choice.epoch] / test.n
    assert averages["paper"] < averages["erm"] - 0.1
    assert averages["auto"] > averages["erm"] - 0.05
