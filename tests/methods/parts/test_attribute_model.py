"""The model of the attribute: it is calibrated, finds what can be found, and follows shares that differ."""

import numpy as np
import pytest
from scipy.special import expit, logit

from umix.methods.parts.attribute_model import KnownRows, em_shares, fit_attribute_model


def rows(n: int, *, seed: int = 0, signal: float = 1.5, share: float = 0.5, width: int = 3) -> KnownRows:
    """Two classes, two values; the log odds of the value are linear in the first input, and turn around in class 1."""
    rng = np.random.default_rng(seed)
    y, t = rng.integers(2, size=n), (rng.random(n) < share).astype(np.int64)
    z = rng.normal(size=(n, width))
    z[:, 0] += signal * (2 * t - 1) * (1 - 2 * y) / 2  # the log odds are ± signal·z
    return KnownRows(z.astype(np.float32), y, t)


def truth(data: KnownRows, *, signal: float = 1.5, share: float = 0.5) -> np.ndarray:
    return expit(signal * data.z[:, 0].astype(float) * (1 - 2 * data.y) + logit(share))


def fitted(data: KnownRows, seed: int = 0):  # type: ignore[no-untyped-def]
    return fit_attribute_model(data, np.random.default_rng(seed))


def test_predictions_are_near_the_true_probabilities_where_classes_need_models_of_their_own() -> None:
    model, new = fitted(rows(2000)), rows(3000, seed=1)
    assert np.abs(model.predict(new.z, new.y)[:, 1] - truth(new)).mean() < 0.03
    own = truth(rows(2000))
    known = rows(2000).t
    best = -np.log(np.where(known == 1, own, 1 - own)).mean()
    assert model.scores.log_loss == pytest.approx(best, abs=0.02)
    assert model.scores.chance == pytest.approx(np.log(2), abs=0.01)
    assert model.scores.accuracy > 0.7 > model.scores.usual


def test_held_out_scores_are_honest_where_there_are_more_inputs_than_rows() -> None:
    data = rows(80, width=300, signal=0.0)
    scores = fitted(data).scores
    assert scores.log_loss > scores.chance - 2 * scores.error
    assert scores.accuracy < 0.75


def test_noise_hardly_ever_beats_chance_by_two_standard_errors() -> None:
    scores = [fitted(rows(60, seed=seed, signal=0.0)).scores for seed in range(3)]
    assert sum(score.log_loss < score.chance - 2 * score.error for score in scores) <= 1
    assert sum(score.log_loss < score.chance - score.error for score in scores) <= 1


def test_a_balanced_validation_split_does_not_make_rare_values_common() -> None:
    model, new = fitted(rows(1000, signal=3.0)), rows(4000, seed=1, signal=3.0, share=0.05)
    p = model.predict(new.z, new.y)
    assert p[:, 1].mean() == pytest.approx(0.05, abs=0.01)
    assert np.abs(p[:, 1] - truth(new, signal=3.0, share=0.05)).mean() < 0.01


def test_equal_shares_are_left_alone() -> None:
    model, new = fitted(rows(300, signal=0.5)), rows(4000, seed=1, signal=0.5)
    p = model.predict(new.z, new.y)
    one_by_one = [model.predict(new.z[[i]], new.y[[i]])[0] for i in range(200)]  # one row tells nothing about shares
    np.testing.assert_allclose(p[:200], one_by_one, rtol=1e-6)


def test_expectation_maximisation_finds_the_most_likely_share() -> None:
    """Against a search over all shares of the likelihood Π_i Σ_t share_t·p_it/known_t."""
    rng = np.random.default_rng(0)
    p, known = rng.dirichlet([0.5, 0.5], 50), np.array([0.3, 0.7])
    grid = np.linspace(0.001, 0.999, 999)
    likelihood = [np.log(p @ (np.array([share, 1 - share]) / known)).sum() for share in grid]
    assert em_shares(p, known).mean(0)[0] == pytest.approx(grid[int(np.argmax(likelihood))], abs=2e-3)


def test_a_value_that_a_class_never_has_gets_no_probability_and_rows_sum_to_one() -> None:
    data = rows(400)
    kept = ~((data.y == 1) & (data.t == 1))
    model = fitted(KnownRows(data.z[kept], data.y[kept], data.t[kept]))
    p = model.predict(data.z, data.y)
    assert (p[data.y == 1] == [1, 0]).all()
    assert p.sum(1) == pytest.approx(np.ones(len(p)))


def test_a_value_that_any_class_may_have_looks_alike_in_all_of_them() -> None:
    rng = np.random.default_rng(0)
    y, t = rng.integers(2, size=400), rng.integers(2, size=400)
    z = (rng.normal(size=(400, 2)) + 4 * t[:, None]).astype(np.float32)
    kept = ~((y == 1) & (t == 1))
    known = KnownRows(z[kept], y[kept], t[kept], any_class=True)
    model = fitted(known)
    p = model.predict(z, y)
    assert (p.argmax(1) == t)[y == 1].mean() > 0.95
    assert p.sum(1) == pytest.approx(np.ones(len(p)))
    by_class = [max(np.bincount(known.t[known.y == label])) for label in (0, 1)]
    assert model.scores.usual == pytest.approx(sum(by_class) / len(known.t))


def test_a_single_row_of_a_group_is_fitted_but_never_scored() -> None:
    data = rows(60)
    one = KnownRows(data.z, np.where(np.arange(60) == 0, 2, data.y), data.t)
    model = fitted(one)
    assert model.predict(one.z[:1], one.y[:1])[0, one.t[0]] == 1


def test_three_values_are_told_apart_and_one_seed_gives_one_model() -> None:
    rng = np.random.default_rng(0)
    t, y = rng.integers(3, size=600), rng.integers(2, size=600)
    z = (rng.normal(size=(600, 3)) + 3 * np.eye(3)[t]).astype(np.float32)
    first, second = (fitted(KnownRows(z, y, t)) for _ in range(2))
    assert first.scores.accuracy > 0.9
    assert np.array_equal(first.head, second.head)
