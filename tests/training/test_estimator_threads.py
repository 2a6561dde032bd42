"""Threads of estimators and of torch, which share one count."""

import os

import pytest
import torch

from umix.data.task import Task
from umix.training import estimator_threads
from umix.training.estimator_threads import one_torch_thread, threads_for


def seen() -> int:
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    return int(_openmp_effective_n_threads())


def test_estimators_have_their_threads_inside_of_a_block_in_which_torch_has_one() -> None:
    before = torch.get_num_threads()
    with one_torch_thread(), estimator_threads.estimator_threads(2):
        assert seen() == min(2, os.cpu_count() or 1)
    with estimator_threads.estimator_threads(1):
        assert seen() == 1
    assert torch.get_num_threads() == before


def test_few_rows_have_one_thread_and_many_as_many_as_torch(moons: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert threads_for(moons.splits["train"]) == 1
    monkeypatch.setattr(estimator_threads, "_FEW", 10)
    assert threads_for(moons.splits["train"]) == 7
