"""The flips and the risk of twins against a loop over examples."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from umix.methods.xrm import both_environments, flip_probability, flipped, twins_risk

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_a_prediction_at_chance_never_flips_and_a_certain_one_always(classes: int) -> None:
    p = torch.tensor([1 / classes, 1.0], dtype=torch.float64)
    assert flip_probability(p, n_classes=classes).tolist() == pytest.approx([0, 1], abs=1e-15)


@pytest.mark.parametrize("strength", [1.0, 0.3, 0.0])
def test_labels_are_flipped_as_in_a_loop_over_examples(strength: float) -> None:
    z, label, draws = 3 * RNG.standard_normal((200, 4)), RNG.integers(0, 4, 200), RNG.random(200)
    expected = []
    for i in range(200):
        p = np.exp(z[i]) / np.exp(z[i]).sum()
        flips = draws[i] < strength * (p.max() - 1 / 4) * 4 / 3
        expected.append(int(p.argmax()) if flips else int(label[i]))
    found = flipped(*(torch.from_numpy(a) for a in (label, z, draws)), strength=strength)
    assert found.tolist() == expected
    assert strength > 0 or found.tolist() == label.tolist()


def test_the_risk_is_the_sum_of_class_means_over_twins_as_in_a_loop() -> None:
    z, label, first = 2 * RNG.standard_normal((40, 5)), RNG.integers(0, 4, 40), RNG.random(40) < 0.5
    total = 0.0
    for twin in (True, False):
        for c in range(5):  # the last one has no example
            losses = [np.log(np.exp(z[i]).sum()) - z[i][c] for i in range(40) if first[i] == twin and label[i] == c]
            total += float(np.mean(losses)) if losses else 0.0
    found = twins_risk(torch.from_numpy(z), torch.from_numpy(label), torch.from_numpy(first))
    assert found.item() == pytest.approx(total, rel=1e-12)


def test_the_gradient_of_the_risk_is_that_of_differences() -> None:
    z = torch.from_numpy(RNG.standard_normal((6, 3))).requires_grad_()
    label, first = torch.tensor([0, 1, 1, 2, 0, 0]), torch.tensor([True, False, True, True, False, True])
    assert gradcheck(lambda logits: twins_risk(logits, label, first), z)


def test_a_batch_without_examples_of_a_twin_costs_it_nothing() -> None:
    z = torch.zeros(2, 2, requires_grad=True)
    risk = twins_risk(z, torch.tensor([0, 1]), torch.tensor([True, True]))
    assert risk.item() == pytest.approx(2 * np.log(2))


def test_every_class_that_occurs_must_have_both_environments() -> None:
    y = torch.tensor([0, 0, 3, 3])
    assert both_environments(torch.tensor([0, 1, 1, 0]), y)
    assert not both_environments(torch.tensor([0, 1, 1, 1]), y)
    assert not both_environments(torch.tensor([0, 0, 0, 0]), y)
