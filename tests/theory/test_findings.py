"""The checks that the command prints, and that they can fail."""

from dataclasses import replace

import numpy as np
import pytest

from umix.core.streams import stream
from umix.errors import UserError
from umix.theory.findings import Check, demonstrations, dimension_check, failures, lemma_checks
from umix.theory.lemmas import FACTOR, Point, factors, order, remainder_shares, rhos


def streams(seed: int, purpose: str) -> np.random.Generator:
    return stream(seed + 3, "theory", purpose)


EXAMPLES = demonstrations(streams)


def test_every_lemma_check_comes_out_as_expected() -> None:
    checks = lemma_checks(EXAMPLES, streams, alpha=1.5)
    assert failures(checks) == []
    assert {check.refuted for check in checks} == {True, False}


def test_an_alpha_of_one_half_is_refused_with_the_reason() -> None:
    with pytest.raises(UserError, match=r"above 1 to be finite, got 0\.5"):
        lemma_checks(EXAMPLES, streams, alpha=0.5)


def test_a_check_outside_its_limits_fails_and_a_refuted_one_inside_them() -> None:
    check = Check("here", "so", 2.0, 0.0, 1.0)
    assert failures([check, replace(check, value=0.5), replace(check, refuted=True)]) == [check]
    inside = replace(check, value=0.5, refuted=True)
    assert failures([inside]) == [inside]


def test_gaps_that_moved_with_the_dimension_would_be_noticed() -> None:
    assert dimension_check([0.1, 0.1, 0.1]).as_expected
    assert not dimension_check([0.1, 0.2, 0.3]).as_expected


def test_the_order_of_a_power_is_its_exponent() -> None:
    points = [Point("m", "c", at, 7 * at**3) for at in (1.0, 0.5, 0.25, 0.125)]
    assert order(points) == pytest.approx(3)


def test_series_over_alpha_have_no_points_where_they_are_infinite() -> None:
    points = factors(*EXAMPLES["logistic"])
    ats = {curve: [p.at for p in points if p.curve == curve] for curve in (FACTOR, "lemma A.2", "mixup loss")}
    assert min(ats[FACTOR]) == min(ats["lemma A.2"]) == 1.01
    assert min(ats["mixup loss"]) == 0.5
    values = [p.value for p in points if p.curve == FACTOR]
    assert values == sorted(values, reverse=True)


def test_the_remainders_share_hardly_moves_over_three_decades_of_alpha() -> None:
    shares = [p.value for p in remainder_shares(*EXAMPLES["logistic"])]
    assert max(shares) < 1.5 * min(shares)


def test_rho_falls_with_the_radius_for_a_logistic_model_only() -> None:
    logistic = [p.value for p in rhos(*EXAMPLES["logistic"][:2])]
    assert logistic == sorted(logistic, reverse=True)
    assert logistic[-1] < logistic[0] / 10
    assert {p.value for p in rhos(*EXAMPLES["gaussian"][:2])} == {0.5}
