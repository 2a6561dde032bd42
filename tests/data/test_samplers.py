"""An epoch visits every example once, in an order that only the stream decides."""

import numpy as np
import pytest
import torch

from umix.core.streams import stream
from umix.data.groups import Groups
from umix.data.samplers import Balanced, BalancedDraws, FullBatchSampler, Repeated, Shuffled, SubsetSampler, Weighted
from umix.data.task import Split


def _split(n, fill=0.0):
    return Split(torch.full((n, 2), fill), torch.zeros(n).long(), Groups(torch.ones(n, 1).bool(), ("all",)))


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_shuffled_visits_every_example_once(n):
    order = Shuffled().draw(_split(n), np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(n))
    assert order.dtype == torch.int64


def test_shuffled_is_decided_by_the_stream_and_the_number_of_examples_alone():
    first = Shuffled().draw(_split(20, fill=0.0), stream(3, "fit", "order", 2))
    second = Shuffled().draw(_split(20, fill=1.0), stream(3, "fit", "order", 2))
    assert torch.equal(first, second)


def test_shuffled_leaves_the_global_generators_alone():
    before = np.random.get_state()[1].tolist(), torch.get_rng_state()
    Shuffled().draw(_split(20), np.random.default_rng(0))
    assert np.random.get_state()[1].tolist() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


def test_one_copy_of_each_is_shuffled():
    one = Repeated(torch.ones(20, dtype=torch.int64))
    split = _split(20)
    assert torch.equal(one.draw(split, np.random.default_rng(1)), Shuffled().draw(split, np.random.default_rng(1)))
    assert one.size(split) == 20


def test_repeated_visits_every_example_as_often_as_it_has_copies():
    copies = torch.tensor([1, 0, 3, 2])
    sampler = Repeated(copies)
    order = sampler.draw(_split(4), np.random.default_rng(0))
    assert torch.equal(torch.bincount(order, minlength=4), copies)
    assert sampler.size(_split(4)) == len(order) == 6


def test_weighted_draws_in_proportion_to_the_weights():
    weights = torch.tensor([1.0, 0.0, 3.0, 6.0]).repeat(2000)
    order = Weighted(weights).draw(_split(8000), np.random.default_rng(0))
    share = torch.bincount(order % 4, minlength=4) / 8000
    assert torch.allclose(share, torch.tensor([0.1, 0.0, 0.3, 0.6]), atol=0.02)
    assert len(order) == 8000


@pytest.mark.parametrize("sizes", [(90, 5, 5), (1, 99), (40, 0, 60), (7,)])
def test_balanced_batches_hold_as_many_of_each_group_give_or_take_one(sizes):
    group = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    order = Balanced(group).draw(_split(len(group)), np.random.default_rng(0))
    assert len(order) == len(group)
    for batch in order.split(16):
        counts = torch.bincount(group[batch], minlength=len(sizes))[torch.tensor(sizes) > 0]
        assert counts.max() - counts.min() <= 1


def test_balanced_goes_through_a_small_group_before_it_repeats():
    group = torch.tensor([0] * 30 + [1] * 10)
    order = Balanced(group).draw(_split(40), np.random.default_rng(0))
    small = order[group[order] == 1]
    assert sorted(small[:10].tolist()) == sorted(small[10:].tolist()) == list(range(30, 40))


def test_every_group_begins_some_epoch() -> None:
    group = torch.arange(40) % 4
    first = {int(group[Balanced(group).draw(_split(40), np.random.default_rng(epoch))[0]]) for epoch in range(40)}
    assert first == {0, 1, 2, 3}


def test_balanced_draws_of_known_groups_are_balanced():
    group = torch.tensor([0] * 30 + [2] * 5 + [3] * 15)
    p = torch.nn.functional.one_hot(group, 4).double()
    first, second = (
        sampler.draw(_split(50), stream(0, "fit", "order")) for sampler in (BalancedDraws(p), Balanced(group))
    )
    assert torch.equal(first, second)


def test_balanced_draws_visit_examples_as_often_as_their_expected_weight():
    p = torch.from_numpy(np.random.default_rng(0).dirichlet([0.5, 0.5], 200))
    p[:20] = torch.tensor([0.0, 1.0])
    p[20:, 1] *= 0.2
    p /= p.sum(1, keepdim=True)
    visits = torch.zeros(200)
    for epoch in range(400):
        visits += torch.bincount(BalancedDraws(p).draw(_split(200), stream(0, "fit", "order", epoch)), minlength=200)
    expected = p @ (1 / p.sum(0))
    assert (visits / visits.sum()).tolist() == pytest.approx((expected / expected.sum()).tolist(), rel=0.5)
    assert np.corrcoef(visits, expected)[0, 1] > 0.98


def test_among_visits_each_of_its_rows_once():
    rows = torch.tensor([7, 2, 5])
    drawn = SubsetSampler(rows).draw(_split(9), stream(0, "fit", "order"))
    assert sorted(drawn.tolist()) == [2, 5, 7]
    assert SubsetSampler(rows).size(_split(9)) == 3


def test_passes_visit_all_examples_in_order_several_times():
    n = len(_split(9))
    assert FullBatchSampler(2).draw(_split(9), stream(0, "fit", "order")).tolist() == [*range(n), *range(n)]
    assert FullBatchSampler(2).size(_split(9)) == 2 * n
