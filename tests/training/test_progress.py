"""What every epoch of a fit was like."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.data.batch import Batch
from umix.methods.umix import UMIX
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import MeanRisk, Objective, State
from umix.training.progress import _FOLD, EpochLog
from umix.training.stage import FINAL, ErmStage

Make = Callable[..., Context]


class Told(Objective):
    """The mean risk, whose value it also writes down."""

    def __init__(self) -> None:
        self.risks: list[float] = []

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        risk, state = MeanRisk().risk(net, batch, state, rng)
        self.risks.append(float(risk.detach()))
        return risk, state


def test_the_risk_of_an_epoch_is_the_mean_over_its_steps(context: Make) -> None:
    make, told = context(fit={"epochs": 3}), Told()
    make.fit(told)
    means = np.array(told.risks).reshape(3, -1).mean(axis=1)
    np.testing.assert_allclose([row["risk"] for row in make.journal.logs[FINAL].rows()], means, rtol=1e-12)


def test_many_steps_are_added_up_in_parts_without_loss() -> None:
    log, seen = EpochLog(), []
    backward = log.watching(seen.append)
    for step in range(_FOLD + 10):
        backward(torch.tensor(float(step)))
    log.end_epoch(learning_rate=0.1, seconds=1.0)
    assert log.rows()[0]["risk"] == (_FOLD + 9) / 2
    assert len(seen) == _FOLD + 10


def test_the_learning_rate_is_the_one_the_epoch_ended_with(context: Make) -> None:
    make = context(fit={"epochs": 2, "lr": 0.1, "schedule": "cosine"})
    make.fit(MeanRisk())
    rates = [row["learning_rate"] for row in make.journal.logs[FINAL].rows()]
    steps = -(-len(make.task.splits["train"]) // 32)
    course = make.settings.lr_course(2 * steps)
    assert course is not None
    assert rates == [course(steps - 1), course(2 * steps - 1)]


@pytest.mark.parametrize("per_example", [False, True])
def test_lambda_is_one_where_nothing_is_mixed_and_half_on_average_where_all_is(
    context: Make, per_example: bool
) -> None:
    never, always = context(), context(fit={"epochs": 40})
    UMIX(sigma=0, length=2, per_example=per_example).train(never)
    UMIX(sigma=1, alpha=1, length=2, per_example=per_example).train(always)
    assert [row["lambda"] for row in never.journal.logs[FINAL].rows()] == [1.0] * 4
    assert np.mean([row["lambda"] for row in always.journal.logs[FINAL].rows()]) == pytest.approx(0.5, abs=0.08)


def test_an_objective_that_mixes_nothing_has_no_lambda(context: Make) -> None:
    make = context(fit={"epochs": 1})
    make.fit(MeanRisk())
    assert np.isnan(make.journal.logs[FINAL].rows()[0]["lambda"])


def test_a_resumed_fit_has_every_epoch_once(context: Make, tmp_path: Path) -> None:
    def stop(epoch: int, val: object) -> None:
        if epoch == 1:
            raise KeyboardInterrupt

    whole, first = context(), context(directory=tmp_path, on_epoch=stop)
    whole.fit(MeanRisk())
    with pytest.raises(KeyboardInterrupt):
        first.fit(MeanRisk())
    second = context(directory=tmp_path)
    second.fit(MeanRisk())
    risks = [[row["risk"] for row in make.journal.logs[FINAL].rows()] for make in (whole, second)]
    assert risks[0] == risks[1]
    assert len(risks[1]) == 4


def test_after_every_epoch_the_validation_counts_so_far_are_shown(context: Make) -> None:
    seen = []
    make = context(on_epoch=lambda epoch, val: seen.append((epoch, val.epochs, val.class_hits[-1].tolist())))
    make.trajectory(ErmStage("trajectory", 2, record="online"))
    assert seen == []
    final = make.fit(MeanRisk()).history.counts("val").class_hits.tolist()
    assert seen == [(epoch, epoch + 1, final[epoch]) for epoch in range(4)]
