"""A head of prototypes: its probabilities, and nets that are stored with it."""

import numpy as np
import torch

from umix.models.mlp import MLP, Linear
from umix.models.prototypes import PrototypeHead, match_head, prototype_logits, use_prototypes


def drawn(members: int, n_classes: int, width: int) -> PrototypeHead:
    rng, head = np.random.default_rng(0), PrototypeHead(members, n_classes, width).double()
    for tensor in (head.prototypes.data, head.scale.data, head.mean):
        tensor.copy_(torch.from_numpy(rng.standard_normal(tensor.shape)))
    head.deviation.copy_(torch.from_numpy(rng.uniform(0.5, 2.0, width)))
    return head


def test_the_output_is_the_logarithm_of_the_mean_of_the_members_probabilities() -> None:
    head, z = drawn(4, 3, 5), np.random.default_rng(1).standard_normal((6, 5))
    p, s = head.prototypes.detach().numpy(), head.scale.detach().numpy()
    unit = (z - head.mean.numpy()) / head.deviation.numpy()
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    mean = np.zeros((6, 3))
    for member in range(4):
        near = p[member] / np.linalg.norm(p[member], axis=1, keepdims=True)
        logits = -abs(s[member]) * np.linalg.norm(unit[:, None] - near, axis=2)
        mean += np.exp(logits) / np.exp(logits).sum(1, keepdims=True) / 4
    np.testing.assert_allclose(head(torch.from_numpy(z)).exp().detach().numpy(), mean, rtol=1e-10)


def test_the_gradient_is_finite_where_an_example_lies_on_a_prototype() -> None:
    z = torch.tensor([[1.0, 2.0]], requires_grad=True)
    prototypes = torch.tensor([[2.0, 4.0], [0.0, 1.0]], requires_grad=True)
    prototype_logits(z, prototypes, torch.tensor(1.0)).sum().backward()
    assert z.grad.isfinite().all()
    assert prototypes.grad.isfinite().all()


def test_a_stored_net_gets_the_head_that_its_weights_are_of() -> None:
    example = torch.zeros(4)
    net, plain = MLP(hidden=(5,)).build(example, 3), MLP(hidden=(5,)).build(example, 3)
    use_prototypes(net, drawn(2, 3, 5).float())
    match_head(plain, net.state_dict())
    plain.load_state_dict(net.state_dict())
    x = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(plain(x), net(x))


def test_other_weights_leave_the_last_layer_as_it_is() -> None:
    net = Linear().build(torch.zeros(4), 3)
    head = net.head
    match_head(net, net.state_dict())
    assert net.head is head
    assert net.is_linear
