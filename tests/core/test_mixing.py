"""Mixing against explicit loops in float64; at lam 0 and 1 it is exact."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from umix.core.losses import cross_entropy
from umix.core.mixing import cutmix, mix, mixed_loss, mixed_risk

LAMS = st.floats(0, 1)
SHAPES = st.sampled_from([(), (3,), (2, 3), (1, 2, 3)])


@st.composite
def pairs_of(draw, n):
    return torch.tensor(draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n)), dtype=torch.int64)


@st.composite
def mixups(draw):
    """Inputs float64 [n, …], their pairs, and one lam per example."""
    n = draw(st.integers(1, 4))
    x = draw(npst.arrays(np.float64, (n, *draw(SHAPES)), elements=st.floats(-1e3, 1e3)))
    lam = draw(npst.arrays(np.float64, n, elements=LAMS))
    return torch.from_numpy(x), draw(pairs_of(n)), torch.from_numpy(lam)


def _rng(seed=0):
    return np.random.default_rng(seed)


def _normal(seed, *shape, dtype=torch.float64):
    return torch.from_numpy(_rng(seed).normal(size=shape)).to(dtype)


# mix


@given(mixups())
@settings(deadline=None, max_examples=50)
def test_mix_is_the_convex_combination_of_an_example_and_its_partner(drawn):
    x, pair, lam = drawn
    mixed = mix(x, pair, lam)
    for i, j in enumerate(pair.tolist()):
        expected = lam[i].item() * x[i].numpy() + (1 - lam[i].item()) * x[j].numpy()
        np.testing.assert_allclose(mixed[i].numpy(), expected, rtol=1e-9, atol=1e-9)


@given(mixups())
@settings(deadline=None, max_examples=50)
def test_one_lam_for_all_is_the_same_lam_for_each(drawn):
    x, pair, lam = drawn
    torch.testing.assert_close(mix(x, pair, lam[0].item()), mix(x, pair, lam[:1].expand(len(x))))


@given(mixups())
@settings(deadline=None, max_examples=30)
def test_mix_stays_between_an_example_and_its_partner(drawn):
    x, pair, lam = drawn
    mixed, partner = mix(x, pair, lam), x[pair]
    assert (mixed <= torch.maximum(x, partner) + 1e-9).all()
    assert (mixed >= torch.minimum(x, partner) - 1e-9).all()


@pytest.mark.parametrize("per_example", [False, True], ids=["one lam", "lam per example"])
@pytest.mark.parametrize("grad", [False, True], ids=["no grad", "grad"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_mix_with_lam_one_is_the_input(per_example, grad, dtype):
    x, pair = _normal(0, 5, 3, dtype=dtype).mul(1e3).requires_grad_(grad), torch.tensor([4, 3, 2, 1, 0])
    assert torch.equal(mix(x, pair, torch.ones(5) if per_example else 1.0), x)


@pytest.mark.parametrize("per_example", [False, True], ids=["one lam", "lam per example"])
@pytest.mark.parametrize("grad", [False, True], ids=["no grad", "grad"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_mix_with_lam_zero_is_the_partner(per_example, grad, dtype):
    x, pair = _normal(0, 5, 3, dtype=dtype).mul(1e3).requires_grad_(grad), torch.tensor([4, 3, 2, 1, 0])
    assert torch.equal(mix(x, pair, torch.zeros(5) if per_example else 0.0), x[pair])


@pytest.mark.parametrize("lam", [0.3, torch.tensor([0.0, 0.4, 1.0])], ids=["one lam", "lam per example"])
def test_mix_passes_gradcheck(lam):
    x = _normal(3, 3, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: mix(x, torch.tensor([2, 2, 0]), lam), (x,))


# cutmix


@st.composite
def cutmixes(draw):
    """Images in which every pixel has its own value, their pairs, one lam per example and a seed."""
    n, height, width = draw(st.integers(1, 4)), draw(st.integers(1, 7)), draw(st.integers(1, 7))
    shape = (n, *draw(st.sampled_from([(), (1,), (2,)])), height, width)
    x = torch.arange(math.prod(shape), dtype=torch.float64).view(shape)
    lam = draw(npst.arrays(np.float64, n, elements=LAMS))
    return x, draw(pairs_of(n)), torch.from_numpy(lam), draw(st.integers(0, 1000))


def _box(side, lam, centre):
    half = int(side * math.sqrt(1 - lam)) // 2
    return range(max(0, centre - half), min(side, centre + half))


def _paste(image, partner, rows, columns):
    """The image with a box of its partner, pixel by pixel, and the share of pixels that stayed."""
    out, pasted = image.clone(), 0
    for row in range(image.shape[-2]):
        for column in range(image.shape[-1]):
            if row in rows and column in columns:
                out[..., row, column] = partner[..., row, column]
                pasted += 1
    return out, 1 - pasted / (image.shape[-2] * image.shape[-1])


@given(cutmixes())
@settings(deadline=None, max_examples=50)
def test_cutmix_with_one_lam_is_a_loop_over_pixels_with_one_box(drawn):
    x, pair, lam, seed = drawn
    mixed, true_lam = cutmix(x, pair, lam[0].item(), rng=_rng(seed))
    rng = _rng(seed)
    rows = _box(x.shape[-2], lam[0].item(), int(rng.integers(x.shape[-2])))
    columns = _box(x.shape[-1], lam[0].item(), int(rng.integers(x.shape[-1])))
    for i, j in enumerate(pair.tolist()):
        image, share = _paste(x[i], x[j], rows, columns)
        assert torch.equal(mixed[i], image)
        assert true_lam == pytest.approx(share)


@given(cutmixes())
@settings(deadline=None, max_examples=50)
def test_cutmix_with_a_lam_per_example_is_a_loop_over_pixels_with_a_box_each(drawn):
    x, pair, lam, seed = drawn
    mixed, true_lam = cutmix(x, pair, lam, rng=_rng(seed))
    rng = _rng(seed)
    centres = rng.integers(x.shape[-2], size=len(x)), rng.integers(x.shape[-1], size=len(x))
    for i, j in enumerate(pair.tolist()):
        rows = _box(x.shape[-2], lam[i].item(), int(centres[0][i]))
        columns = _box(x.shape[-1], lam[i].item(), int(centres[1][i]))
        image, share = _paste(x[i], x[j], rows, columns)
        assert torch.equal(mixed[i], image)
        assert true_lam[i].item() == pytest.approx(share)


@given(cutmixes(), st.booleans())
@settings(deadline=None, max_examples=50)
def test_the_returned_lam_is_the_true_share_and_never_below_the_one_asked_for(drawn, per_example):
    x, _, lam, seed = drawn
    lam = lam if per_example else lam[0].item()
    both = torch.cat([x, -1 - x])  # every image is paired with one that differs in every pixel
    lams = torch.cat([lam, lam]) if per_example else lam
    mixed, true_lam = cutmix(both, torch.arange(len(both)).roll(len(x)), lams, rng=_rng(seed))
    stayed = (mixed == both).flatten(1).double().mean(dim=1)
    torch.testing.assert_close(stayed, torch.as_tensor(true_lam, dtype=torch.float64).expand(len(both)))
    assert (stayed >= torch.as_tensor(lams) - 1e-9).all()


@pytest.mark.parametrize("per_example", [False, True], ids=["one lam", "lam per example"])
def test_cutmix_with_lam_one_is_the_input(per_example):
    x = _normal(0, 3, 2, 4, 4)
    mixed, true_lam = cutmix(x, torch.tensor([1, 2, 0]), torch.ones(3) if per_example else 1.0, rng=_rng())
    assert torch.equal(mixed, x)
    assert torch.equal(torch.as_tensor(true_lam).expand(3).double(), torch.ones(3).double())


def test_cutmix_with_lam_zero_and_a_central_box_is_the_partner():
    class Central:
        def integers(self, side, size=()):
            return np.full(size, side // 2)

    x = _normal(0, 2, 1, 4, 6)
    mixed, true_lam = cutmix(x, torch.tensor([1, 0]), 0.0, rng=Central())
    assert torch.equal(mixed, x[[1, 0]])
    assert true_lam == 0.0


# mixed_loss


@st.composite
def mixed_batches(draw):
    n, n_classes = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    logits = draw(npst.arrays(np.float64, (n, n_classes), elements=st.floats(-20, 20)))
    y = draw(npst.arrays(np.int64, n, elements=st.integers(0, n_classes - 1)))
    w = draw(npst.arrays(np.float64, n, elements=st.floats(0, 50)))
    lam = draw(npst.arrays(np.float64, n, elements=LAMS))
    return *map(torch.from_numpy, (logits, y, w, lam)), draw(pairs_of(n))


def _reference(logits, y, w, pair, lam):
    """UMIX eq. 4, term by term."""
    losses = []
    for i, j in enumerate(pair):
        log_z = np.log(np.exp(logits[i]).sum())
        own, partners = log_z - logits[i][y[i]], log_z - logits[i][y[j]]
        losses.append(w[i] * lam[i] * own + w[j] * (1 - lam[i]) * partners)
    return np.array(losses)


@given(mixed_batches())
@settings(deadline=None, max_examples=60)
def test_mixed_loss_is_equation_four(drawn):
    logits, y, w, lam, pair = drawn
    expected = _reference(logits.numpy(), y.tolist(), w.tolist(), pair.tolist(), lam.tolist())
    np.testing.assert_allclose(mixed_loss(logits, y, w, pair, lam).numpy(), expected, rtol=1e-9, atol=1e-9)


@given(mixed_batches())
@settings(deadline=None, max_examples=30)
def test_lam_one_costs_exactly_the_weighted_loss(drawn):
    logits, y, w, _, pair = drawn
    assert torch.equal(mixed_loss(logits, y, w, pair, 1.0), w * cross_entropy(logits, y))


@given(mixed_batches())
@settings(deadline=None, max_examples=30)
def test_unit_weights_cost_the_cross_entropy_of_mixed_labels(drawn):
    logits, y, w, lam, pair = drawn
    labels = torch.eye(logits.shape[1], dtype=torch.float64)[y]
    soft = mix(labels, pair, lam)
    expected = torch.nn.functional.cross_entropy(logits, soft, reduction="none")
    torch.testing.assert_close(mixed_loss(logits, y, torch.ones_like(w), pair, lam), expected)


def test_a_weight_of_k_is_k_copies_of_the_row_where_rows_are_paired_with_themselves():
    copies = torch.tensor([2, 0, 3, 1])
    logits, y = _normal(5, 4, 3), torch.tensor([0, 2, 1, 1])
    weighted = mixed_loss(logits, y, copies, torch.arange(4), 0.3).sum()
    rows, labels = logits.repeat_interleave(copies, 0), y.repeat_interleave(copies)
    repeated = mixed_loss(rows, labels, torch.ones(6), torch.arange(6), 0.3).sum()
    torch.testing.assert_close(weighted, repeated)


@pytest.mark.parametrize(
    "lam", [0.0, 0.3, 1.0, torch.tensor([0.0, 0.4, 1.0, 0.5])], ids=["zero", "between", "one", "per example"]
)
def test_mixed_loss_passes_gradcheck(lam):
    logits, w = _normal(7, 4, 3).requires_grad_(), _normal(8, 4).exp().requires_grad_()
    y, pair = torch.tensor([0, 1, 2, 1]), torch.tensor([3, 0, 2, 0])
    assert torch.autograd.gradcheck(lambda logits, w: mixed_loss(logits, y, w, pair, lam), (logits, w))


def test_mixed_loss_is_finite_at_extreme_logits():
    logits = torch.tensor([[1e4, -1e4], [-1e4, 1e4]])
    loss = mixed_loss(logits, torch.tensor([0, 0]), torch.tensor([1.0, 2.0]), torch.tensor([1, 0]), 0.5)
    assert loss.tolist() == [0.0, 3e4]


@pytest.mark.parametrize("n", [64, 59, 1])
@pytest.mark.parametrize("per_example", [False, True])
def test_the_mixed_risk_is_the_mean_mixed_loss_with_the_same_bits_in_its_gradient(n, per_example):
    generator = torch.Generator().manual_seed(n)
    y, w = torch.randint(3, (n,), generator=generator), torch.rand(n, generator=generator)
    pair = torch.randperm(n, generator=generator)
    lam = torch.rand(n, generator=generator) if per_example else 0.3
    one, two = (torch.randn(n, 3, generator=torch.Generator().manual_seed(0)).requires_grad_() for _ in range(2))
    risk, mean = mixed_risk(one, y, w, pair, lam), mixed_loss(two, y, w, pair, lam).mean()
    torch.testing.assert_close(risk, mean)
    risk.backward()
    mean.backward()
    assert torch.equal(one.grad, two.grad)


@pytest.mark.parametrize("per_example", [False, True])
def test_without_weights_the_mixed_risk_is_that_of_unit_weights_to_the_bit(per_example):
    y, pair = torch.tensor([0, 2, 1, 1]), torch.tensor([3, 0, 2, 0])
    lam = torch.tensor([0.0, 0.4, 1.0, 0.5]) if per_example else 0.3
    one, two = (_normal(5, 4, 3).requires_grad_() for _ in range(2))
    plain, weighted = mixed_risk(one, y, None, pair, lam), mixed_risk(two, y, torch.ones(4), pair, lam)
    assert torch.equal(*(torch.autograd.grad(risk, z)[0] for risk, z in ((plain, one), (weighted, two))))
    assert torch.equal(plain, weighted)


@pytest.mark.parametrize("lam", [None, 0.3], ids=["not mixed", "mixed"])
def test_the_risk_of_a_stack_is_the_sum_of_its_members_and_has_the_gradient_of_each(lam):
    logits, w = _normal(5, 2, 4, 3), _normal(6, 4, 2).exp()  # two members, four examples
    y, pair = torch.tensor([0, 2, 1, 1]), torch.tensor([3, 0, 2, 0])
    stack, singles = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    together = mixed_risk(stack, y, w, pair, lam)
    alone = [mixed_risk(singles[member], y, w[:, member], pair, lam) for member in range(2)]
    torch.testing.assert_close(together, sum(alone))
    torch.testing.assert_close(
        *(torch.autograd.grad(risk, z)[0] for risk, z in ((together, stack), (sum(alone), singles)))
    )


@pytest.mark.parametrize("w", [None, torch.tensor([1.0, 0.5, 2.0, 0.0], dtype=torch.float64)], ids=["equal", "weights"])
@pytest.mark.parametrize(
    "lam", [None, 0.3, torch.tensor([0.0, 0.4, 1.0, 0.5])], ids=["not mixed", "one lam", "lam per example"]
)
def test_the_risk_of_any_loss_is_that_of_the_cross_entropy_where_it_is_one(lam, w):
    logits, y, pair = _normal(5, 4, 3), torch.tensor([0, 2, 1, 1]), torch.tensor([3, 0, 2, 0])
    by_loss = mixed_risk(logits, y, w, pair, lam, loss=cross_entropy)
    torch.testing.assert_close(by_loss, mixed_risk(logits, y, w, pair, lam))
