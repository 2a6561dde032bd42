"""An epoch visits every example once, in an order that only the stream decides."""

import numpy as np
import pytest
import torch

from umix.core.streams import stream
from umix.data.groups import Groups
from umix.data.samplers import Shuffled
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


def test_epochs_have_different_orders():
    orders = {tuple(Shuffled().draw(_split(20), stream(0, "fit", "order", epoch)).tolist()) for epoch in range(5)}
    assert len(orders) == 5


def test_every_example_can_come_first():
    rng = np.random.default_rng(0)
    assert {int(Shuffled().draw(_split(4), rng)[0]) for _ in range(100)} == {0, 1, 2, 3}


def test_shuffled_leaves_the_global_generators_alone():
    before = np.random.get_state()[1].tolist(), torch.get_rng_state()
    Shuffled().draw(_split(20), np.random.default_rng(0))
    assert np.random.get_state()[1].tolist() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
