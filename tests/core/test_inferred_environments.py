"""Environment inference against its known optimum."""

import numpy as np
import pytest
import torch

from umix.core.environments import infer_environments

STEPS = {"steps": 100, "lr": 0.1}


def data(n=300, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    z = 3 * rng.standard_normal((n, classes))
    z[np.arange(n), y] += 4 * rng.random(n)
    return torch.from_numpy(z), torch.from_numpy(y)


def slopes(logits, y):
    """The derivative of every loss in the scale of its logits, by differences."""
    z, step = logits.double(), 1e-6
    losses = [torch.nn.functional.cross_entropy(s * z, y, reduction="none") for s in (1 + step, 1 - step)]
    return ((losses[0] - losses[1]) / (2 * step)).numpy()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("classes", [2, 5])
def test_it_finds_the_known_optimum_whatever_it_starts_from(seed, classes):
    logits, y = data(classes=classes)
    found = infer_environments(logits, y, **STEPS, rng=np.random.default_rng(seed))
    slope = slopes(logits, y)
    clear = np.abs(slope) > 1e-6  # what differences can tell
    np.testing.assert_array_equal(found.numpy()[clear], (slope > 0)[clear])
    assert set(found.tolist()) == {0, 1}


def test_no_other_split_of_a_few_examples_has_a_larger_penalty():
    logits, y = data(n=10)
    found, slope = infer_environments(logits, y, **STEPS, rng=np.random.default_rng(0)).numpy(), slopes(logits, y)

    def penalty(environment):
        return sum((slope[environment == e].sum() / len(slope)) ** 2 for e in (0, 1))

    every = (np.array([i >> bit & 1 for bit in range(10)]) for i in range(2**10))
    assert penalty(found) >= max(map(penalty, every)) - 1e-9


def test_with_two_classes_environment_one_holds_the_mistakes():
    logits, y = data(classes=2)
    found = infer_environments(logits, y, **STEPS, rng=np.random.default_rng(0))
    assert torch.equal(found == 1, logits.argmax(1) != y)


def test_the_same_stream_gives_the_same_environments_and_moves_no_global_generator():
    logits, y = data()
    before = torch.get_rng_state()
    first, second = (infer_environments(logits, y, steps=3, lr=0.01, rng=np.random.default_rng(4)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(before, torch.get_rng_state())


def test_the_number_of_examples_does_not_decide_who_moves():
    logits, y = data(n=100)
    logits[:50] = torch.nn.functional.one_hot(y[:50], 3) * 25.0  # slopes of 1e-9: right, and almost certain
    many, labels = logits.repeat(200, 1), y.repeat(200)
    found = infer_environments(many, labels, **STEPS, rng=np.random.default_rng(0)).reshape(200, 100)
    assert (found[:, :50] == 0).all()


@pytest.mark.parametrize("right", [True, False])
def test_a_classifier_that_is_always_right_or_always_wrong_has_one_environment(right):
    y = torch.tensor([0, 1, 1, 0])
    logits = torch.nn.functional.one_hot(y if right else 1 - y, 2).float()
    assert infer_environments(logits, y, **STEPS, rng=np.random.default_rng(0)).tolist() == [int(not right)] * 4


def test_logits_that_say_nothing_give_finite_answers_and_gradients_are_not_kept():
    logits = torch.zeros(4, 2, requires_grad=True)
    found = infer_environments(logits, torch.tensor([0, 1, 1, 0]), **STEPS, rng=np.random.default_rng(0))
    assert found.dtype == torch.int64
    assert set(found.tolist()) <= {0, 1}
    assert logits.grad is None
