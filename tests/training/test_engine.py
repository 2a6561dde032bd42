"""Where and how a fit runs."""

import pytest
import torch
from torch import nn

from umix.errors import UserError
from umix.models.net import Net
from umix.training.engine import Engine


def net_of(width: int) -> Net:
    return Net(nn.Linear(4, width), nn.Linear(width, 2))


def test_small_nets_run_on_one_thread_and_those_that_are_large_or_convolve_on_all() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with Engine("cpu").threads(net_of(8)):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        convolving = Net(nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten()), nn.Linear(2, 2))
        for net in (net_of(200_000), convolving):
            with Engine("cpu").threads(net):
                assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match=r"must be one of .*cpu.* on this machine, got 'cuda'"):
        _ = Engine("cuda").device


def test_full_precision_runs_the_bare_net() -> None:
    net = net_of(8)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    prepared = Engine("cpu").prepare(net, optimizer, precision="32-true")
    assert prepared.net is net
    assert prepared.optimizer is optimizer
