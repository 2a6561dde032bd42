"""Random numbers are a function of their name, and the global generators stay as they were."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.core.streams import stream, torch_stream

NAMES = st.tuples(st.integers(0, 2**64), st.sampled_from("ab"), st.sampled_from(["order", "mix"]), st.integers(0, 300))


@given(NAMES)
@settings(deadline=None, max_examples=30)
def test_the_same_name_gives_the_same_numbers(name):
    assert stream(*name).random(4).tolist() == stream(*name).random(4).tolist()


@given(NAMES, NAMES)
@settings(deadline=None, max_examples=50)
def test_different_names_give_different_numbers(first, second):
    same = stream(*first).random(2).tolist() == stream(*second).random(2).tolist()
    assert same == (first == second)


@pytest.mark.parametrize(
    "other",
    [(1, "fit", "order", 0), (0, "trajectory", "order", 0), (0, "fit", "mix", 0), (0, "fit", "order", 1)],
    ids=["seed", "stage", "purpose", "epoch"],
)
def test_every_part_of_the_name_counts(other):
    assert stream(0, "fit", "order", 0).random() != stream(*other).random()


def test_a_stream_is_seeded_by_the_seed_and_the_hash_of_the_name():
    words = np.frombuffer(hashlib.sha256(b"fit/order/7").digest(), dtype="<u4").tolist()
    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence([5, *words])))
    assert stream(5, "fit", "order", 7).integers(2**60, size=8).tolist() == expected.integers(2**60, size=8).tolist()


def test_streams_do_not_change_between_versions():
    raw = stream(0, "fit", "order").bit_generator.random_raw(2).tolist()
    assert raw == [8293922023487766101, 17351239220336321045]


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="non-negative"):
        stream(-1, "fit", "order")


def test_a_stream_leaves_the_global_generators_alone():
    before = np.random.get_state()[1].tolist(), torch.get_rng_state()
    stream(0, "fit", "order").random(5)
    assert np.random.get_state()[1].tolist() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


def test_torch_draws_from_the_stream_inside_the_block():
    draws = []
    for _ in range(2):
        torch.rand(1)  # wherever the global generator is
        with torch_stream(0, "fit", "init"):
            draws.append(torch.rand(4))
    assert torch.equal(*draws)


def test_the_torch_generator_is_restored_after_the_block():
    before = torch.get_rng_state()
    with torch_stream(0, "fit", "init"):
        torch.rand(3)
        assert not torch.equal(torch.get_rng_state(), before)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_torch_generator_is_restored_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="size"), torch_stream(0, "fit", "init"):
        torch.rand(3) + torch.rand(2)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_inner_block_does_not_disturb_the_outer_one():
    with torch_stream(0, "fit", "init"):
        alone = torch.rand(4)
    with torch_stream(0, "fit", "init"):
        first = torch.rand(2)
        with torch_stream(1, "fit", "init"):
            torch.rand(7)
        second = torch.rand(2)
    assert torch.equal(torch.cat([first, second]), alone)
