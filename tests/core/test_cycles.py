import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umix.core.pairing import partners_in_next


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.permutations(range(5)))
def test_every_example_meets_one_of_the_next_domain_that_the_batch_has(domain, cycle):
    domain, cycle = np.array(domain), np.array(cycle)
    pair = partners_in_next(domain, cycle)
    present = [d for d in cycle if d in domain]
    following = {d: present[(i + 1) % len(present)] for i, d in enumerate(present)}
    assert [following[d] for d in domain] == domain[pair].tolist()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.permutations(range(5)))
def test_the_kth_example_meets_the_kth_modulo_the_size_of_the_next_domain(domain, cycle):
    domain = np.array(domain)
    pair = partners_in_next(domain, np.array(cycle))
    for i, partner in enumerate(pair):
        place = int((domain[:i] == domain[i]).sum())
        others = np.flatnonzero(domain == domain[partner])
        assert partner == others[place % len(others)]


@pytest.mark.parametrize("n", [1, 4])
def test_the_examples_of_an_only_domain_are_their_own_partners(n):
    assert partners_in_next(np.full(n, 2), np.array([2, 0, 1])).tolist() == list(range(n))


def test_domains_of_one_size_are_permuted():
    domain = np.array([0, 1, 2, 2, 1, 0])
    pair = partners_in_next(domain, np.array([1, 2, 0]))
    assert sorted(pair.tolist()) == list(range(6))
    assert domain[pair].tolist() == [1, 2, 0, 0, 2, 1]


def test_a_batch_without_examples_has_no_pairs():
    assert partners_in_next(np.zeros(0, dtype=np.int64), np.arange(3)).tolist() == []
