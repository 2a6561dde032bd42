import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar

from umix.core import risks
from umix.core.environments import indicators
from umix.core.risks import (
    chi2,
    chi2_doro,
    cvar,
    cvar_doro,
    group_risks,
    worst_group_risk,
)

ALPHAS = [0.01, 0.1, 0.2, 0.37, 0.5, 0.8, 0.99, 1.0]
ROBUST = pytest.mark.parametrize("risk", [cvar, chi2], ids=["cvar", "chi2"])


def _with_doro(epsilon):
    return {
        "cvar": cvar,
        "chi2": chi2,
        "cvar_doro": lambda losses, *, alpha: cvar_doro(losses, alpha=alpha, epsilon=epsilon),
        "chi2_doro": lambda losses, *, alpha: chi2_doro(losses, alpha=alpha, epsilon=epsilon),
    }


ALL = _with_doro(0.13)
EVERY = pytest.mark.parametrize("risk", ALL.values(), ids=ALL.keys())
DROPPING_MORE = pytest.mark.parametrize("risk", _with_doro(0.3).values(), ids=ALL.keys())

some_losses = st.lists(st.floats(0, 10), min_size=1, max_size=40).map(np.array)
some_alpha = st.floats(0.01, 1)


def _batches():
    rng = np.random.default_rng(0)
    yield "normal", rng.normal(size=7)
    yield "exponential", rng.exponential(size=64)
    yield "heavy", rng.pareto(1.5, size=128)
    yield "one large", np.r_[np.full(31, 0.1), 50.0]
    yield "ties", rng.integers(0, 3, size=40).astype(float)
    yield "largest tied", np.r_[rng.uniform(size=20), 1.0, 1.0, 1.0]
    yield "equal", np.full(9, 0.7)
    yield "zeros", np.zeros(6)
    yield "one", np.array([1.3])
    yield "two", np.array([0.2, 0.9])
    yield "nearly equal", 5 + 1e-9 * rng.normal(size=30)


BATCHES = dict(_batches())
EACH_BATCH = pytest.mark.parametrize("losses", BATCHES.values(), ids=BATCHES.keys())


def _value(risk, losses, **settings):
    return risk(torch.as_tensor(losses, dtype=torch.float64), **settings).item()


def _weights(risk, losses, **settings):
    """The weights with which the losses sum to the risk: its gradient."""
    losses = losses.clone().requires_grad_()
    return torch.autograd.grad(risk(losses, **settings), losses)[0]


def _on_unit_scale(oracle):
    """The oracle with its losses moved to [−1, 0]: the optimisers of SciPy have absolute tolerances."""

    def scaled(losses, alpha):
        top, width = losses.max(), np.ptp(losses)
        return top + width * oracle((losses - top) / width, alpha) if width > 0 else top

    return scaled


@_on_unit_scale
def _cvar_by_linear_program(losses, alpha):
    n = len(losses)
    best = linprog(-losses, A_eq=np.ones((1, n)), b_eq=[1], bounds=(0, 1 / (alpha * n)), method="highs")
    return -best.fun


def _cvar_by_definition(losses, alpha):
    n, mass, total = len(losses), 0.0, 0.0
    for loss in sorted(losses, reverse=True):
        taken = min(1 / n, alpha - mass)
        if taken <= 0:
            break
        mass, total = mass + taken, total + taken * loss
    return total / mass


@_on_unit_scale
def _chi2_by_dual(losses, alpha):
    if alpha == 1:  # the infimum lies at −∞
        return losses.mean()
    c = np.sqrt(1 + (1 / alpha - 1) ** 2)

    def dual(eta):
        return c * np.sqrt(np.mean(np.maximum(losses - eta, 0) ** 2)) + eta

    bounds = (losses.mean() - losses.std() / (1 / alpha - 1) - 1, 0.0)
    best = minimize_scalar(dual, bounds=bounds, method="bounded", options={"xatol": 1e-15, "maxiter": 1000})
    return min(best.fun, dual(0.0))


def _chi2_by_bisection(losses, alpha):
    """The primal: weights that satisfy the conditions of Karush, Kuhn and Tucker, η found by bisection."""
    n, radius = len(losses), (1 / alpha - 1) ** 2
    largest = (losses == losses.max()) / np.sum(losses == losses.max())
    if np.mean((n * largest - 1) ** 2) <= radius or alpha == 1:
        return largest if alpha < 1 else np.full(n, 1 / n)

    def weights(eta):
        excess = np.maximum(losses - eta, 0)
        return excess / excess.sum()

    low, high = losses.mean() - 2 * losses.std() / (1 / alpha - 1) - np.ptp(losses), losses.max()
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        inside = np.mean((n * weights(middle) - 1) ** 2) <= radius
        low, high = (middle, high) if inside else (low, middle)
    return weights(low)


def _copies_without_largest(losses, epsilon, copies):
    """Every loss ``copies`` times, without the epsilon share of largest ones: whole copies for a fractional share."""
    rows = np.sort(np.repeat(losses, copies))
    dropped = epsilon * len(rows)
    assert abs(dropped - round(dropped)) < 1e-9
    return rows[: len(rows) - round(dropped)]


@EACH_BATCH
@pytest.mark.parametrize("alpha", ALPHAS)
def test_cvar_is_the_optimum_of_its_linear_program(losses, alpha):
    np.testing.assert_allclose(_value(cvar, losses, alpha=alpha), _cvar_by_linear_program(losses, alpha), rtol=1e-10)


@EACH_BATCH
@pytest.mark.parametrize("alpha", ALPHAS)
def test_chi2_is_the_minimum_of_its_dual(losses, alpha):
    np.testing.assert_allclose(_value(chi2, losses, alpha=alpha), _chi2_by_dual(losses, alpha), rtol=1e-12, atol=1e-13)


@EACH_BATCH
@pytest.mark.parametrize("alpha", ALPHAS)
def test_chi2_weights_are_the_maximiser_of_the_primal(losses, alpha):
    q = _weights(chi2, torch.tensor(losses), alpha=alpha).numpy()
    assert np.mean((len(q) * q - 1) ** 2) / 2 <= (1 / alpha - 1) ** 2 / 2 * (1 + 1e-9) + 1e-13
    expected = _chi2_by_bisection(losses, alpha)
    np.testing.assert_allclose(q @ losses, expected @ losses, rtol=1e-12)
    np.testing.assert_allclose(q, expected, atol=1e-6 if np.ptp(losses) < 1e-6 else 1e-10)


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_chi2_is_the_maximum_up_to_its_threshold_and_less_beyond(n):
    alpha = 1 / 3  # C² = 5
    losses = np.arange(n, dtype=float)
    assert _value(chi2, losses, alpha=alpha) == pytest.approx(n - 1, abs=1e-12)
    more = np.arange(6, dtype=float)
    assert _value(chi2, more, alpha=alpha) < 5 - 1e-3


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.75, 1.0])
@pytest.mark.parametrize(("epsilon", "copies"), [(0.0, 1), (0.1, 10), (0.25, 4), (0.3, 10), (0.5, 2), (0.95, 20)])
@pytest.mark.parametrize("name", ["normal", "ties", "largest tied", "one", "two", "one large"])
def test_doro_is_dro_of_the_copies_left_without_the_largest(name, epsilon, copies, alpha):
    losses = BATCHES[name]
    left = _copies_without_largest(losses, epsilon, copies)
    ours = _value(cvar_doro, losses, alpha=alpha, epsilon=epsilon)
    np.testing.assert_allclose(ours, _cvar_by_definition(left, alpha), rtol=1e-11)
    ours = _value(chi2_doro, losses, alpha=alpha, epsilon=epsilon)
    np.testing.assert_allclose(ours, _chi2_by_dual(left, alpha), rtol=1e-11, atol=1e-13)


@DROPPING_MORE
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@EACH_BATCH
def test_the_gradient_has_weights_that_sum_to_one_are_not_negative_and_give_the_risk(losses, dtype, risk):
    for alpha in ALPHAS:
        batch = torch.tensor(losses, dtype=dtype)
        q = _weights(risk, batch, alpha=alpha)
        tolerance = 100 * torch.finfo(dtype).eps
        assert (q >= 0).all()
        assert q.sum().item() == pytest.approx(1, abs=tolerance)
        assert risk(batch, alpha=alpha).item() == pytest.approx((q * batch).sum().item(), rel=tolerance, abs=1e-30)


def test_doro_weights_drop_the_largest_and_keep_a_fraction_of_the_one_at_the_border():
    losses = torch.tensor([5.0, 1.0, 4.0, 2.0, 3.0], dtype=torch.float64)
    expected = torch.tensor([0.0, 2 / 7, 1 / 7, 2 / 7, 2 / 7], dtype=torch.float64)  # 0.3 · 5 = 1.5 dropped, 3.5 left
    torch.testing.assert_close(_weights(cvar_doro, losses, alpha=1.0, epsilon=0.3), expected)
    torch.testing.assert_close(_weights(chi2_doro, losses, alpha=1.0, epsilon=0.3), expected)


@pytest.mark.parametrize("doro", [cvar_doro, chi2_doro])
def test_a_whole_share_in_decimals_drops_whole_examples(doro):
    losses = torch.tensor(np.r_[np.linspace(1e6, 2e6, 29), np.linspace(0, 1, 71)], dtype=torch.float32)
    assert (_weights(doro, losses, alpha=0.5, epsilon=0.29)[:29] == 0).all()  # 0.29 · 100 = 28.999999999999996


@pytest.mark.parametrize("doro", [cvar_doro, chi2_doro])
def test_the_smallest_loss_always_stays(doro):
    assert doro(torch.tensor([3.0, 1.0, 2.0]), alpha=0.5, epsilon=1 - 1e-12) == 1


@EACH_BATCH
def test_doro_with_epsilon_zero_is_dro_to_the_bit(losses):
    batch = torch.tensor(losses, dtype=torch.float32)
    for alpha in ALPHAS:
        assert torch.equal(cvar_doro(batch, alpha=alpha, epsilon=0.0), cvar(batch, alpha=alpha))
        assert torch.equal(chi2_doro(batch, alpha=alpha, epsilon=0.0), chi2(batch, alpha=alpha))


@ROBUST
@EACH_BATCH
def test_alpha_one_is_the_mean(losses, risk):
    np.testing.assert_allclose(_value(risk, losses, alpha=1.0), losses.mean(), rtol=1e-14)


@EVERY
@pytest.mark.parametrize("n", [1, 2, 5, 128])
@pytest.mark.parametrize("loss", [0.0, 0.7, 1e4])
def test_equal_losses_give_that_loss(risk, n, loss):
    for alpha in [1e-300, *ALPHAS]:
        assert risk(torch.full((n,), loss), alpha=alpha).item() == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5, 0.9])
def test_examples_with_equal_losses_have_equal_chi2_weights(alpha):
    losses = torch.tensor(BATCHES["ties"], dtype=torch.float32)
    q = _weights(chi2, losses, alpha=alpha)
    assert all(len(q[losses == value].unique()) == 1 for value in losses.unique())


@EVERY
@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5, 0.9])
def test_the_gradient_is_that_of_differences_away_from_ties(risk, alpha):
    losses = torch.tensor(np.random.default_rng(1).permutation(np.arange(11.0)) ** 1.3, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: risk(x, alpha=alpha), losses)


@EVERY
@pytest.mark.parametrize("name", [*BATCHES, "huge", "huge and small", "tiny"])
def test_risk_and_gradient_are_finite_in_single_precision(name, risk):
    hostile = {
        "huge": 1e4 * np.random.default_rng(0).exponential(size=50),
        "huge and small": np.r_[1e4, 1e4, np.random.default_rng(0).exponential(size=30)],
        "tiny": 1e-20 * np.random.default_rng(0).exponential(size=30),
    }
    for alpha in [1e-300, 1e-3, 0.1, 0.5, 0.999999, 1 - 1e-15, 1.0]:
        batch = torch.tensor((BATCHES | hostile)[name], dtype=torch.float32, requires_grad=True)
        value = risk(batch, alpha=alpha)
        value.backward()
        assert value.isfinite()
        assert batch.grad.isfinite().all()
        assert batch.grad.sum().item() == pytest.approx(1, abs=1e-5)


def test_chi2_keeps_its_precision_on_a_far_outlier_in_single_precision():
    losses = torch.tensor([1e4, *np.linspace(0, 1e-2, 4095)], dtype=torch.float32)
    for alpha in (0.02, 0.1, 0.5):
        np.testing.assert_allclose(chi2(losses, alpha=alpha), chi2(losses.double(), alpha=alpha), rtol=1e-4)


@EVERY
@given(losses=some_losses, alpha=some_alpha, scale=st.floats(1e-3, 1e3), shift=st.floats(-10, 10))
@settings(max_examples=60, deadline=None)
def test_a_risk_scales_and_shifts_with_its_losses(risk, losses, alpha, scale, shift):
    value = _value(risk, losses, alpha=alpha)
    moved = _value(risk, scale * losses + shift, alpha=alpha)
    assert moved == pytest.approx(scale * value + shift, rel=1e-9, abs=1e-9)


@EVERY
@given(losses=some_losses, alpha=some_alpha, copies=st.integers(2, 4))
@settings(max_examples=60, deadline=None)
def test_a_risk_does_not_depend_on_how_often_the_batch_is_repeated(risk, losses, alpha, copies):
    repeated = _value(risk, np.tile(losses, copies), alpha=alpha)
    assert repeated == pytest.approx(_value(risk, losses, alpha=alpha), rel=1e-9, abs=1e-12)


@given(losses=some_losses, alpha=st.floats(0.01, 0.99))
@settings(max_examples=150, deadline=None)
def test_chi2_is_the_minimum_of_its_dual_for_any_losses(losses, alpha):
    assert _value(chi2, losses, alpha=alpha) == pytest.approx(_chi2_by_dual(losses, alpha), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize(
    ("alpha", "epsilon", "n"), [(0.0, 0.0, 3), (20.0, 0.0, 3), (0.5, 1.0, 3), (0.5, -0.1, 3), (0.5, 0.0, 0)]
)
@pytest.mark.parametrize("doro", [cvar_doro, chi2_doro])
def test_shares_out_of_range_and_empty_batches_are_refused(doro, alpha, epsilon, n):
    with pytest.raises(ValueError, match=rf"got {alpha}, {epsilon} for {n} losses"):
        doro(torch.ones(n), alpha=alpha, epsilon=epsilon)


@EVERY
def test_a_loss_that_is_not_a_number_is_never_hidden(risk):
    assert risk(torch.tensor([0.1, float("nan"), 0.3, 0.2]), alpha=0.5).isnan()


@EVERY
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_risks_keep_dtype_and_device_and_read_nothing_back(risk, dtype):
    value = risk(torch.empty(20, device="meta", dtype=dtype), alpha=0.2)
    assert (value.shape, value.dtype, value.device.type) == ((), dtype, "meta")


@EVERY
def test_losses_in_half_precision_are_counted_in_single(risk):
    losses = torch.rand(1000, generator=torch.Generator().manual_seed(0)).bfloat16()
    assert torch.equal(risk(losses, alpha=0.2), risk(losses.float(), alpha=0.2))


@DROPPING_MORE
def test_a_risk_first_used_in_inference_mode_can_be_trained_afterwards(risk):
    risks._cvar_shares.cache_clear()
    risks._chi2_path.cache_clear()
    losses = torch.tensor([0.1, 0.5, 0.3, 0.2], requires_grad=True)
    with torch.inference_mode():
        expected = risk(losses, alpha=0.4).item()
    value = risk(losses, alpha=0.4)
    value.backward()
    assert value.item() == expected
    assert losses.grad.isfinite().all()


@given(
    examples=st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 4)), max_size=30),
    n_groups=st.integers(5, 7),
)
@settings(max_examples=60, deadline=None)
def test_group_risks_are_the_means_of_the_groups_and_zero_without_examples(examples, n_groups):
    losses = torch.tensor([loss for loss, _ in examples], dtype=torch.float64)
    group = torch.tensor([g for _, g in examples], dtype=torch.int64)
    of_group = [[loss for loss, g in examples if g == index] for index in range(n_groups)]
    expected = [np.mean(members) if members else 0.0 for members in of_group]
    np.testing.assert_allclose(group_risks(losses, group, n_groups=n_groups), expected, rtol=1e-12, atol=1e-13)


def test_group_risks_have_the_gradient_of_differences_and_none_for_absent_groups():
    group = torch.tensor([3, 0, 0, 3, 3])
    losses = torch.rand(5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: group_risks(x, group, n_groups=5), losses)
    group_risks(losses, group, n_groups=5)[[1, 2, 4]].sum().backward()
    assert losses.grad.tolist() == [0] * 5


def test_group_risks_count_a_large_group_in_half_precision():
    losses = torch.ones(1000, dtype=torch.bfloat16)
    assert group_risks(losses, torch.zeros(1000, dtype=torch.int64), n_groups=2).tolist() == [1, 0]


DORO = pytest.mark.parametrize("doro", [cvar_doro, chi2_doro])


@DORO
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_dropped_loss_adds_nothing_even_if_it_is_infinite(doro, dtype):
    rest = [3.0, 1.0, 2.0, 0.5, 2.5, 0.25]
    outliers = torch.tensor([float("inf"), *rest, float("inf")], dtype=dtype, requires_grad=True)
    finite = torch.tensor([9.0, *rest, 9.0], dtype=dtype, requires_grad=True)
    for alpha in (0.2, 0.5, 1.0):
        values = [doro(losses, alpha=alpha, epsilon=0.25) for losses in (outliers, finite)]
        gradients = [torch.autograd.grad(v, losses)[0] for v, losses in zip(values, (outliers, finite), strict=True)]
        assert torch.equal(*values)
        assert torch.equal(*gradients)
        assert gradients[0][[0, -1]].tolist() == [0, 0]


@DORO
def test_a_loss_that_is_not_a_number_is_not_dropped_as_an_outlier(doro):
    assert doro(torch.tensor([0.1, float("nan"), 0.3, 0.2]), alpha=0.5, epsilon=0.25).isnan()


@DORO
def test_more_infinite_losses_than_are_dropped_give_no_finite_risk(doro):
    assert not doro(torch.tensor([float("inf"), float("inf"), 0.3, 0.2]), alpha=0.5, epsilon=0.25).isfinite()


LARGEST = torch.finfo(torch.float32).max


@pytest.mark.parametrize("top", [1e10, 1e18, 3e19, 1e30, LARGEST])
@pytest.mark.parametrize("bottom", [0.0, -1.0])
@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5, 0.9])
def test_chi2_of_losses_up_to_the_largest_single_number_is_that_of_double(top, bottom, alpha):
    shares = np.random.default_rng(0).uniform(size=200)
    losses = torch.tensor(top * (shares - shares.min()) / np.ptp(shares)).float()
    losses = losses.where(losses > 0, bottom * top)
    for q, expected in (
        (_weights(chi2, losses, alpha=alpha), _weights(chi2, losses.double(), alpha=alpha)),
        (
            _weights(chi2_doro, losses, alpha=alpha, epsilon=0.033),
            _weights(chi2_doro, losses.double(), alpha=alpha, epsilon=0.033),
        ),
    ):
        torch.testing.assert_close(q.double(), expected, rtol=0, atol=2e-7)
    np.testing.assert_allclose(chi2(losses, alpha=alpha), chi2(losses.double(), alpha=alpha), rtol=3e-6)


@pytest.mark.parametrize("top", [1e-30, 1e-20])
def test_chi2_of_tiny_losses_is_that_of_double(top):
    losses = torch.tensor(top * np.random.default_rng(0).exponential(size=30)).float()
    for alpha in (0.2, 0.5):
        np.testing.assert_allclose(chi2(losses, alpha=alpha), chi2(losses.double(), alpha=alpha), rtol=3e-6)


Q = [0.4, 0.1, 0.3, 0.2]


def _exponential(n, seed=0, dtype=torch.float64):
    return torch.tensor(np.random.default_rng(seed).exponential(size=n), dtype=dtype)


def _by_groups(losses, member, q, step_size, margin):
    """The risk and the new weights, group by group."""
    q = np.array(q)
    present = [g for g in range(len(q)) if member[:, g].sum() > 0]
    risks = {g: (member[:, g] * losses).sum() / member[:, g].sum() for g in present}
    grown = {g: q[g] * np.exp(step_size * (risks[g] + margin[g])) for g in present}
    together, total = sum(q[g] for g in present), sum(grown.values())
    for g in present:
        q[g] = together * grown[g] / total
    return sum(q[g] * risks[g] for g in present), q


@given(st.integers(0, 10**6), st.integers(1, 12), st.booleans())
def test_risk_and_weights_are_those_of_a_loop_over_groups(seed, n, soft):
    rng = np.random.default_rng(seed)
    member = np.eye(4)[rng.integers(4, size=n)]
    if soft:
        member = rng.dirichlet(np.ones(4), size=n) * (rng.random(4) < 0.7)
        member[:, 0] += 1 - member.sum(1)
    losses, margin = _exponential(n, seed), rng.random(4)
    risk, q = worst_group_risk(
        losses, torch.from_numpy(member), torch.tensor(Q).double(), step_size=0.7, margin=torch.from_numpy(margin)
    )
    expected, weights = _by_groups(losses.numpy(), member, torch.tensor(Q).double().tolist(), 0.7, margin)
    assert risk.item() == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(q.numpy(), weights, rtol=1e-10, atol=0)


def test_the_gradient_is_that_of_the_groups_risks_with_constant_weights():
    group = torch.tensor([0, 2, 2, 0, 2])
    losses, member = _exponential(5).requires_grad_(), indicators(group, 4, like=torch.zeros(1).double())
    risk, q = worst_group_risk(losses, member, torch.tensor(Q).double(), step_size=1.0)
    (gradient,) = torch.autograd.grad(risk, losses)
    torch.testing.assert_close(gradient, torch.stack([q[g] / (group == g).sum() for g in group.tolist()]))
    assert not q.requires_grad


def test_groups_whose_weight_has_vanished_keep_none_and_make_nothing_nan():
    member, q = indicators(torch.tensor([1, 1]), 2, like=torch.zeros(1)), torch.tensor([1.0, 0.0])
    risk, after = worst_group_risk(_exponential(2, dtype=torch.float32), member, q, step_size=1.0)
    assert (risk.item(), after.tolist()) == (0.0, [1.0, 0.0])


def test_arguments_are_left_as_they_were_and_nothing_is_read_back():
    losses, member, q, margin = (
        _exponential(3),
        torch.eye(4).double()[:3],
        torch.tensor(Q).double(),
        torch.ones(4).double(),
    )
    before = [tensor.clone() for tensor in (losses, member, q, margin)]
    worst_group_risk(losses, member, q, step_size=1.0, margin=margin)
    assert all(torch.equal(a, b) for a, b in zip(before, (losses, member, q, margin), strict=True))
    risk, _ = worst_group_risk(*(tensor.to("meta") for tensor in (losses, member, q)), step_size=1.0)
    assert risk.device.type == "meta"


def test_a_large_group_in_half_precision_has_the_mean_of_its_losses():
    losses, member = torch.ones(1000, dtype=torch.bfloat16), torch.ones(1000, 1, dtype=torch.bfloat16)
    risk, q = worst_group_risk(losses, member, torch.ones(1), step_size=1.0)
    assert (risk.item(), q.item()) == (pytest.approx(1, rel=1e-6), pytest.approx(1, rel=1e-6))


def test_huge_risks_overflow_nothing():
    member = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    risk, q = worst_group_risk(torch.tensor([9e9, 1.0]), member, torch.tensor([0.3, 0.3, 0.4]), step_size=0.01)
    torch.testing.assert_close(q, torch.tensor([0.6, 0.0, 0.4]))
    assert risk.item() == pytest.approx(0.6 * 9e9)


def test_a_huge_risk_of_a_group_without_weight_takes_nothing_from_the_others():
    member = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    risk, q = worst_group_risk(torch.tensor([9e9, 1.0]), member, torch.tensor([0.0, 0.6, 0.4]), step_size=0.01)
    torch.testing.assert_close(q, torch.tensor([0.0, 0.6, 0.4]))
    assert risk.item() == pytest.approx(0.6)
