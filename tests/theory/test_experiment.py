"""The generalisation gap experiment, small, its summary, and its fits against scikit-learn and normal equations."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from umix.core.streams import stream
from umix.theory.experiment import (
    Design,
    Measured,
    SeedSummary,
    by_cell,
    cells,
    exponents,
    gaps_over_dimension,
    measure,
    minimiser,
    mixed_rows,
    pilot_of,
    run,
)
from umix.theory.glm import GAUSSIAN, GLM, LOGISTIC, POISSON, Predictor, Sample
from umix.theory.losses import mixup_loss, standard_loss
from umix.theory.mixing_law import MixingLaw
from umix.theory.population import Population

SMALL = Design(sizes=(60, 120), ranks=(2, 4), dimension=9, seeds=2)


def streams(seed: int, purpose: str) -> np.random.Generator:
    return stream(seed, "theory", purpose)


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    return list(run(SMALL, streams))


def test_every_cell_is_measured_for_every_seed(measured: list[Measured]) -> None:
    assert [(m.n, m.rank) for m in measured[::2]] == cells(SMALL)
    assert {m.seed for m in measured} == {0, 1}


def test_a_measurement_is_a_function_of_its_seed(measured: list[Measured]) -> None:
    assert measure(SMALL, n=60, r=2, seed=0, streams=streams) == measured[0]
    assert measure(SMALL, n=60, r=2, seed=1, streams=streams) != measured[0]


def test_gaps_stay_below_the_bound_with_the_rank_which_stays_below_that_with_d(measured: list[Measured]) -> None:
    for one in measured:
        assert one.mixup_gap < one.rank_bound < one.dimension_bound
        assert 0 < one.rho <= 0.5


def test_the_gap_of_erm_does_not_know_the_dimension() -> None:
    gaps = gaps_over_dimension(SMALL, streams, dimensions=(1, 3, 10))
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-9)


def test_weights_rise_with_the_share_of_mistakes() -> None:
    population = Population.drawn(d=9, r=4, rng=streams(0, "population"))
    w = pilot_of(population, eta=5.0, ridge=1e-3, rng=streams(0, "pilot"))[0]
    assert (w > 1).all()
    assert w[2] > w[0]  # the small group, whose labels follow another direction, is got wrong more often
    flat = pilot_of(population, eta=0.0, ridge=1e-3, rng=streams(0, "pilot"))[0]
    np.testing.assert_array_equal(flat, 1)


def test_cells_hold_means_over_seeds_with_the_luck_taken_off(measured: list[Measured]) -> None:
    first = by_cell(measured)[0]
    gaps = [m.erm_gap - m.luck for m in measured[:2]]
    assert (first.rank, first.n, first.seeds) == (2, 60, 2)
    assert first.erm_gap.mean == pytest.approx(np.mean(gaps))
    assert first.erm_gap.error == pytest.approx(np.std(gaps, ddof=1) / np.sqrt(2))
    assert first.risk_change.mean == pytest.approx(np.mean([m.mixup_risk - m.erm_risk for m in measured[:2]]))


def made(n: int, r: int, gap: float, seed: int) -> Measured:
    noise = 1 + 1e-6 * seed
    return Measured(n, r, 50, seed, gap * noise, 2 * gap * noise, 0.0, 1.0, 1.0, 1.0, 1.0, 0.1, 1.0)


def table(power: tuple[float, float]) -> list[SeedSummary]:
    a, b = power
    return by_cell(made(n, r, r**a / n**b, seed) for n in (50, 100, 200) for r in (2, 4, 8) for seed in (0, 1))


@pytest.mark.parametrize("power", [(1.0, 1.0), (0.5, 0.5)])
def test_exponents_of_a_power_law_are_found(power: tuple[float, float]) -> None:
    assert exponents(table(power), "erm") == pytest.approx(power, abs=1e-6)
    assert exponents(table(power), "mixup") == pytest.approx(power, abs=1e-6)


def test_exponents_of_a_single_cell_are_not_made_up() -> None:
    assert np.isnan(exponents(table((1.0, 1.0))[:1], "erm")).all()


@pytest.fixture
def binary() -> Sample:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 3))
    return Sample.of(x, LOGISTIC.draw(x @ [2.0, -1.0, 0.0], rng), 1 + 3 * rng.random(80))


def test_the_logistic_fit_is_scikit_learns(binary: Sample) -> None:
    ridge = 0.02
    theirs = LogisticRegression(C=1 / (ridge * 80), fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(binary.x, binary.y, sample_weight=binary.w)
    np.testing.assert_allclose(minimiser(LOGISTIC, binary, ridge=ridge), theirs.coef_[0], atol=1e-4)


def test_the_gaussian_fit_solves_the_normal_equations(binary: Sample) -> None:
    gram = binary.x.T @ (binary.w[:, None] * binary.x) / 80 + 0.1 * np.eye(3)
    np.testing.assert_allclose(
        minimiser(GAUSSIAN, binary, ridge=0.1),
        np.linalg.solve(gram, binary.x.T @ (binary.w * binary.y) / 80),
        atol=1e-8,
    )


@pytest.mark.parametrize("model", [LOGISTIC, POISSON])
def test_the_gradient_vanishes_at_the_fit(model: GLM, binary: Sample) -> None:
    theta = minimiser(model, binary, ridge=1e-3)
    gradient = binary.x.T @ (binary.w * (model.mean(binary.x @ theta) - binary.y)) / 80 + 1e-3 * theta
    assert np.max(np.abs(gradient)) < 1e-4


def test_the_loss_of_mixed_rows_estimates_the_mixup_loss(binary: Sample) -> None:
    law, f = MixingLaw(1.5, 2.5), Predictor(np.array([1.0, -0.5, 0.3]))
    rows = mixed_rows(binary, law, partners=300, nodes=3, rng=np.random.default_rng(1))
    exact = mixup_loss(LOGISTIC, f, binary, law)
    added = exact - standard_loss(LOGISTIC, f, binary)
    assert standard_loss(LOGISTIC, f, rows) == pytest.approx(exact, abs=0.03 * abs(added))
    assert rows.w.mean() == pytest.approx(binary.w.mean())
