"""The kinds of weights that UMIX chooses from."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.core.neighbours import class_neighbours
from umix.core.weights import importance_weights, normalized
from umix.data.benchmarks.four_moons import FourMoons
from umix.methods.parts.uncertainty_weights import POOLS, Weighting, weight_warnings, weightings
from umix.methods.umix import UMIX
from umix.training.context import Context

Make = Callable[..., Context]

U, Y = torch.tensor([0.0, 1.0, 0.0, 0.5, 1.0, 0.0]), torch.tensor([0, 0, 0, 0, 1, 1])


def test_example_weights_are_those_of_the_paper():
    w = Weighting("example", 3.0, 2).weights(U, Y, c=1.0, normalize=False)
    assert w.tolist() == [1.0, 4.0, 1.0, 2.5, 4.0, 1.0]


def test_balanced_weights_divide_by_the_size_of_the_class():
    w = Weighting("balance", 3.0, 2).weights(U, Y, c=1.0)
    expected = np.array([1, 4, 1, 2.5, 4, 1]) / np.array([4, 4, 4, 4, 2, 2])
    np.testing.assert_allclose(w.numpy(), expected / expected.mean(), rtol=1e-6)


def test_without_uncertainty_balance_gives_every_class_the_same_weight():
    w = Weighting("balance", 0.0, 2).weights(U, Y, c=1.0)
    assert float(w[Y == 0].sum()) == pytest.approx(float(w[Y == 1].sum()))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_cells_weigh_by_their_size_to_minus_the_power(power):
    w = Weighting("cell", 0.0, 2, power).weights(U, Y, c=1.0)
    size = np.array([2, 2, 2, 2, 1, 1])  # right and wrong of each class
    np.testing.assert_allclose(w.numpy(), size**-power / np.mean(size**-power), rtol=1e-6)


def test_classes_weigh_by_their_mean_uncertainty():
    w = Weighting("class", 2.0, 2).weights(U, Y, c=1.0)
    torch.testing.assert_close(w, normalized(torch.tensor([1.75] * 4 + [2.0] * 2)))


def test_neighbours_weigh_by_the_mean_uncertainty_around_them():
    neighbours = torch.tensor([[0, 1], [1, 3], [2, 0], [3, 3], [4, 5], [5, 5]])
    w = Weighting("neighbours", 2.0, 2).weights(U, Y, c=1.0, neighbours=neighbours, normalize=False)
    assert w.tolist() == [2.0, 2.5, 1.0, 2.0, 2.0, 1.0]


@pytest.mark.parametrize("pool", [pool for pool in POOLS if pool != "neighbours"])
def test_copies_of_an_example_and_an_example_of_that_weight_get_the_same(pool):
    by = torch.tensor([1.0, 2.0, 1.0, 1.0, 3.0, 1.0])
    rows = torch.repeat_interleave(torch.arange(6), by.long())
    weighting = Weighting(pool, 4.0, 2, 0.5)
    copied = weighting.weights(U[rows], Y[rows], c=1.0)
    weighed = weighting.weights(U, Y, c=1.0, sample_weight=by)
    torch.testing.assert_close(weighed[rows], copied)


def test_uncertainty_that_lies_together_weighs_more_than_scattered_uncertainty(context: Make) -> None:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(600, 2)).astype(np.float32))
    x[:60] += 8.0  # a minority that the first model gets wrong
    u = torch.zeros(600)
    u[:60] = 1.0
    u[60::9] = 1.0  # as many are wrong by chance
    y = torch.zeros(600, dtype=torch.long)
    neighbours = torch.from_numpy(class_neighbours(x.numpy(), y.numpy(), rng=rng))
    w = Weighting("neighbours", 10.0, 2).weights(u, y, c=1.0, neighbours=neighbours)
    assert float(w[:60].min()) > 3 * float(w[60:][u[60:] == 1].max())


def test_neighbours_are_found_where_they_are_asked_for(context: Make) -> None:
    result = UMIX(pool="neighbours", eta=10.0, length=2).train(context())
    plain = UMIX(pool="example", eta=10.0, length=2).train(context())
    assert torch.equal(result.per_example["uncertainty"], plain.per_example["uncertainty"])
    assert float(result.per_example["weight"].std()) < float(plain.per_example["weight"].std())


def free(**given):
    return weightings(
        **{"pools": POOLS, "etas": None, "lengths": None, "epochs": 20, "power": 1.0, "cost": "none"} | given
    )


@pytest.mark.parametrize("cost", ["none", "small", "large"])
def test_what_is_set_is_kept(cost):
    assert {one.length for one in free(lengths=(7,), cost=cost)} == {7}
    assert {one.pool for one in free(pools=("class",), etas=(5.0,), cost=cost)} == {"class"}
    assert {one.eta for one in free(etas=(5.0,), cost=cost) if one.pool != "cell"} == {5.0}
    assert free(pools=("example",), etas=(5.0,), lengths=(3,), cost=cost) == [Weighting("example", 5.0, 3)]
    assert free(pools=("cell",), etas=(5.0,), lengths=(3,), power=0.3, cost=cost) == [Weighting("cell", 0.0, 3, 0.3)]


def warnings_of(u: torch.Tensor, *, eta: float = 20.0, c: float = 1.0) -> tuple[str, ...]:
    return weight_warnings(importance_weights(u, eta=eta, c=c), u=u)


def test_weights_that_tell_examples_apart_are_not_warned_about() -> None:
    assert warnings_of(torch.linspace(0, 1, 50)) == ()


def test_a_window_without_mistakes_is_reported() -> None:
    (warning,) = warnings_of(torch.zeros(50))
    assert warning == "The first model got every training row right, so all weights are equal."


def test_more_than_half_always_wrong_is_reported_as_saturated() -> None:
    (warning,) = warnings_of(torch.tensor([1.0] * 3 + [0.5] * 2))
    assert "of the training rows wrong in every epoch" in warning
    assert "60 %" in warning


def test_weights_that_rest_on_few_examples_are_reported_with_the_number() -> None:
    u = torch.zeros(1000)
    u[:2] = 1.0
    (warning,) = warnings_of(u, eta=1.0, c=1e-6)
    assert "effective sample size is 2.0 of 1000" in warning


def test_umix_reports_a_window_without_mistakes(context: Make) -> None:
    separable = FourMoons(sizes=(60, 0, 0, 60), eval_size=10).load()
    run = context(task=separable, stages={"trajectory": {"epochs": 12, "lr": 0.1}})
    result = UMIX(start=10, length=2).train(run)
    assert not result.per_example["uncertainty"].any()
    assert result.warnings[0].startswith("The first model got every training row right")
