"""Fits: what is shared, saved, resumed and refused."""

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.core.selection import RULES, best_epoch
from umix.data.batch import Batch
from umix.data.task import Task
from umix.errors import UserError
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import MeanRisk, Objective, State
from umix.training.stage import ErmStage, SideStage, side_fit

Make = Callable[..., Context]


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_same_seed_runs_share_initialisation_and_order(context: Make) -> None:
    class Seen(Objective):
        def __init__(self) -> None:
            self.first: list[Tensor] = []

        def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
            self.first.append(batch.index)
            return net(batch.x).square().mean(), state

    one, two = Seen(), Seen()
    context(seed=3).fit(one)
    context(seed=3, net=MLP(hidden=(5, 5)), fit={"lr": 0.2}).fit(two)
    assert all(torch.equal(a, b) for a, b in zip(one.first, two.first, strict=True))


def test_an_epoch_visits_every_example_once_in_another_order_each_time(context: Make) -> None:
    visits: list[Tensor] = []
    make = context(fit={"epochs": 2})
    make.fit(MeanRisk(watch=lambda index, logits, y: visits.append(index)))
    n = len(make.task.splits["train"])
    whole = torch.cat(visits)
    first, second = whole[:n], whole[n:]
    assert first.sort().values.tolist() == list(range(n)) == second.sort().values.tolist()
    assert not torch.equal(first, second)


def test_dropout_draws_from_the_run_and_leaves_global_state_alone(context: Make) -> None:
    before = torch.get_rng_state()
    nets = [context(net=MLP(hidden=(16,), dropout=0.5)).fit(MeanRisk()).net for _ in range(2)]
    assert torch.equal(parameters(nets[0]), parameters(nets[1]))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    "fit",
    [{"optimizer": "sgd"}, {"optimizer": "adamw", "schedule": "cosine"}, {"optimizer": "adam", "clip_norm": 0.1}],
    ids=["sgd", "adamw-cosine", "adam-clipped"],
)
def test_two_plus_two_epochs_by_resume_are_four(context: Make, tmp_path: Path, fit: dict[str, object]) -> None:
    class StopError(Exception):
        pass

    class Stop:
        def __init__(self) -> None:
            self.left = 2

        def start(self, stage: str, *, total: int, done: int) -> None: ...

        def advance(self, steps: int) -> None:
            if not self.left:
                raise StopError
            self.left -= 1

        def finish(self) -> None: ...

        def note(self, message: str) -> None: ...

    expected = context(fit=fit).fit(MeanRisk())
    with pytest.raises(StopError):
        context(fit=fit, directory=tmp_path, progress=Stop()).fit(MeanRisk())
    resumed = context(fit=fit, directory=tmp_path)
    result = resumed.fit(MeanRisk())
    assert torch.equal(parameters(result.net), parameters(expected.net))
    np.testing.assert_array_equal(result.history.counts("val").hits, expected.history.counts("val").hits)
    assert not resumed.journal.reports["fit"].reused


def test_a_finished_fit_is_not_trained_again(context: Make, tmp_path: Path) -> None:
    expected = context(directory=tmp_path).fit(MeanRisk()).net
    again = context(directory=tmp_path)
    assert torch.equal(parameters(again.fit(MeanRisk()).net), parameters(expected))
    assert again.journal.reports["fit"].reused


def test_weights_are_kept_for_the_epochs_that_rules_select(context: Make, tmp_path: Path) -> None:
    result = context(directory=tmp_path, fit={"epochs": 8}).fit(MeanRisk())
    val = result.history.counts("val")
    kept = {int(path.stem.split("-")[1]) for path in (tmp_path / "weights").iterdir()}
    assert kept == {best_epoch(val, rule) for rule in RULES if rule != "uncertainty_quintile"}
    from umix.store import read_tensors

    last, _ = read_tensors(tmp_path / "weights" / "epoch-0007.safetensors", kind="weights")
    assert all(torch.equal(last[name], tensor) for name, tensor in result.net.state_dict().items())


def test_a_trajectory_is_shared_by_runs_with_the_same_data_net_settings_and_seed(
    context: Make, moons: Task, tmp_path: Path
) -> None:
    def record(name: str, **changes: object) -> bool:
        run = context(directory=tmp_path / name, cache=tmp_path / "stages", **changes)
        run.trajectory(ErmStage("trajectory", 3, record="online"))
        return run.journal.reports["trajectory"].reused

    assert not record("first")
    assert record("second")
    assert record("third", fit={"epochs": 9})  # the final fit's length is not the trajectory's
    assert not record("other seed", seed=1)
    assert not record("other rate", stages={"trajectory": {"lr": 0.5}})
    assert not record("other net", net=MLP(hidden=(8,)))
    splits = {**moons.splits, "val": moons.splits["test"]}
    assert not record("other validation", task=Task(moons.name, splits, moons.classes))


def test_online_and_epoch_end_record_different_passes_of_the_same_training(context: Make) -> None:
    online = context().trajectory(ErmStage("trajectory", 3, record="online"))
    clean = context().trajectory(ErmStage("trajectory", 3, record="epoch_end"))
    assert not torch.equal(online.uncertainty(start=0, length=3), clean.uncertainty(start=0, length=3))


def test_a_window_longer_than_the_stage_is_refused_before_training(context: Make, tmp_path: Path) -> None:
    run = context(stages={"trajectory": {"epochs": 2}}, directory=tmp_path / "run")
    with pytest.raises(UserError, match=r"within the 2 epochs of stage 'trajectory', but it needs 3"):
        run.trajectory(ErmStage("trajectory", 3, record="online"))
    assert not (tmp_path / "run").exists()


@dataclass(frozen=True, eq=False)
class NeedsGroups(Objective):
    needs_groups = True

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        return net(batch.x).square().mean() + 0 * batch.group.sum(), state


def test_batches_carry_groups_only_where_they_are_declared(context: Make) -> None:
    seen: list[object] = []

    class Look(Objective):
        def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
            seen.append(batch.group)
            return net(batch.x).square().mean(), state

    context(groups=True).fit(Look())
    assert set(map(type, seen)) == {type(None)}
    context(groups=True).fit(NeedsGroups())


def test_an_objective_that_needs_groups_is_refused_in_an_oblivious_run(context: Make) -> None:
    with pytest.raises(UserError, match=r"NeedsGroups needs training groups"):
        context().fit(NeedsGroups())


@pytest.mark.system
def test_mixed_precision_trains_through_fabric_close_to_full_precision(context: Make) -> None:
    mixed = context(fit={"precision": "bf16-mixed", "epochs": 8}).fit(MeanRisk())
    full = context(fit={"epochs": 8}).fit(MeanRisk())
    difference = mixed.history.counts("test").all_hits - full.history.counts("test").all_hits
    assert abs(difference[-1]) <= 8


RECORD = """
from pathlib import Path
from umix.data.benchmarks.four_moons import FourMoons
from umix.models.mlp import MLP
from umix.training import Context, FitSettings
from umix.training.stage import ErmStage
run = Context(FourMoons(sizes=(60, 10, 10, 60)).load(), MLP(hidden=(8,)), FitSettings(batch_size=2), cache=Path(cache))
run.trajectory(ErmStage("trajectory", 8, record="online"))
print(run.journal.reports["trajectory"].reused, flush=True)
"""


def test_processes_that_want_the_same_trajectory_train_it_once(
    tmp_path: Path, start_program: Callable[..., BaseProcess]
) -> None:
    said = [tmp_path / f"said-{n}.txt" for n in range(3)]
    running = [start_program(RECORD, output=path, cache=str(tmp_path / "stages")) for path in said]
    for process in running:
        process.join()
    assert sorted(path.read_text().strip() for path in said) == ["False", "True", "True"]


def test_a_side_fit_returns_its_net_and_state_and_is_shared_by_content(context: Make, tmp_path: Path) -> None:
    class Counts(Objective):
        def init(self, n_groups: int) -> State:
            return {"seen": torch.zeros(())}

        def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
            assert net.companion is not None
            return (net(batch.x) + net.companion(batch.x)).square().mean(), {"seen": state["seen"] + len(batch.y)}

    def fit(content: str) -> tuple[Context, Net, State]:
        run = context(cache=tmp_path)
        half = run.splits["train"].rows(torch.arange(6))
        stage = SideStage("twins", 2, content, changes={"lr": 0.01})
        return run, *side_fit(run, stage, Counts(), train=half, n_classes=3, companion=True)

    (first, net, state), (again, same, restored), (other, *_) = fit("a"), fit("a"), fit("b")
    assert int(state["seen"]) == int(restored["seen"]) == 12
    assert net(first.splits["train"].x[:2]).shape == (2, 3)
    assert torch.equal(parameters(net), parameters(same))
    assert not first.journal.reports["twins"].reused
    assert again.journal.reports["twins"].reused
    assert not other.journal.reports["twins"].reused


def test_a_trial_leaves_no_trace_in_the_run(context: Make, tmp_path: Path) -> None:
    seen: list[int] = []
    run = context(directory=tmp_path / "run", cache=tmp_path / "stages", on_epoch=lambda epoch, val: seen.append(epoch))
    trial = run.scratch()
    trial.adopt(trial.reference(ErmStage("reference", 4)))
    assert trial.journal.reports
    assert not (tmp_path / "run").exists()
    assert not any([run.journal.reports, run.journal.logs, seen])


def test_a_trial_sees_what_the_run_sees_and_shares_its_stages(context: Make, tmp_path: Path) -> None:
    whole = context(directory=tmp_path / "run", cache=tmp_path / "stages", seed=3)
    run = whole.with_validation(whole.splits["val"].rows(torch.arange(9)))
    trial = run.scratch()
    assert trial.splits is run.splits
    net = trial.reference(ErmStage("reference", 4))
    assert torch.equal(parameters(run.reference(ErmStage("reference", 4))), parameters(net))
    assert run.journal.reports["reference"].reused
