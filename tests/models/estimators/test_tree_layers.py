"""Boosted trees as layers of torch: their logits are those of the estimator, whatever the rows hold."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from umix.errors import UserError
from umix.models.estimators import boosted
from umix.models.estimators.estimator import EstimatorModel, EstimatorSettings
from umix.models.estimators.tree_layers import TreeLayers, at_most
from umix.models.registry import net_settings

NAMES = ("trees", "lightgbm", pytest.param("xgboost", marks=pytest.mark.system))
CODES = 6  # of the third column
TINY = 1e-6
LARGEST = float(np.finfo(np.float64).max)


def settings_of(name: str) -> EstimatorSettings:
    for needed in ("treelite", *({name} - {"trees"})):
        pytest.importorskip(needed)
    made = net_settings(name, **({} if name == "xgboost" else {"min_leaf": 3})).with_categories((0, 0, CODES, 0))
    assert isinstance(made, EstimatorSettings)
    return made


def rows(*, classes: int, gaps: bool, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of numbers, one of codes, and one of a few numbers; with ``gaps`` in each of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 4)).astype(np.float32)
    x[:, 2], x[:, 3] = rng.integers(0, CODES, len(x)), x[:, 3].round(1)
    score = x[:, 0] + x[:, 2] % 3 + x[:, 3] / 2 + 0.3 * rng.normal(size=len(x))
    if gaps:
        x[rng.random(x.shape) < 0.1] = np.nan
    return x, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes)).astype(np.int64)


def fitted(name: str, x: np.ndarray, y: np.ndarray, *, classes: int, stages: int = 12) -> EstimatorModel:
    net = settings_of(name).build(torch.from_numpy(x[0]), classes)
    assert isinstance(net, EstimatorModel)
    net.fit(x, y, np.random.default_rng(2).random(len(x)) + 0.5, stages=stages, seed=0)
    return net


def assert_same(net: EstimatorModel, x: np.ndarray) -> None:
    """The layers give the logits of ``net``, computed in double precision."""
    layers = net.as_module("the title")
    assert isinstance(layers, TreeLayers)
    np.testing.assert_allclose(layers(torch.from_numpy(x)).numpy(), net.row_logits(x, n=len(x)), atol=TINY, rtol=TINY)


def new_rows() -> np.ndarray:
    """Rows with gaps in every column, numbers far away from all others, and values on the edges of training's."""
    x, _ = rows(classes=2, gaps=True, seed=1)
    x[:5, 0], x[:5, 3] = [0.0, 1e30, -1e30, 1e-42, -0.0], [3e38, -3e38, 0.1, 0.5, -0.5]
    return np.concatenate([x, rows(classes=2, gaps=False)[0], np.full((1, 4), np.nan, dtype=np.float32)])


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_the_estimator_after_any_stage(name: str, classes: int, gaps: bool) -> None:
    net = fitted(name, *rows(classes=classes, gaps=gaps), classes=classes)
    for net.cut in (12, 5, 1):
        assert_same(net, new_rows())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_a_head_that_was_fitted_anew_weighs_the_tenths_of_the_stages(name: str, classes: int) -> None:
    net = fitted(name, *rows(classes=classes, gaps=False), classes=classes)
    for parameter in net.head.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    for net.cut in (12, 7):
        assert_same(net, new_rows())


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_code_that_no_fitted_row_had_is_treated_as_the_estimator_does_it(name: str) -> None:
    """scikit-learn's trees treat it as missing, which treelite does not tell: such a model is refused by the comparison."""
    x, y = rows(classes=3, gaps=False)
    there = x[:, 2] != 3
    net = fitted(name, x[there], y[there], classes=3)
    assert_same(net, x)


@pytest.mark.parametrize("name", NAMES)
def test_a_split_that_only_tells_gaps_from_numbers_is_taken_over(name: str) -> None:
    """Its threshold is infinite in scikit-learn's trees."""
    x, _ = rows(classes=2, gaps=True)
    net = fitted(name, x, np.isnan(x[:, 0]).astype(np.int64), classes=2, stages=30)
    assert_same(net, x)
    assert (net.as_module("t")(torch.from_numpy(x)).argmax(dim=1).numpy() == np.isnan(x[:, 0])).all()


@pytest.mark.parametrize("name", NAMES)
def test_numbers_between_a_threshold_and_the_nearest_float32_go_the_right_way(name: str) -> None:
    """Thresholds lie halfway between neighbouring float32 numbers, which only float64 can tell from both."""
    x, _ = rows(classes=2, gaps=False)
    x[:, 0] = 1 + np.arange(len(x)) % 8 * np.finfo(np.float32).eps
    net = fitted(name, x, (np.arange(len(x)) % 8 // 3 % 2).astype(np.int64), classes=2)
    assert_same(net, x)


def test_trees_without_a_split_and_a_class_that_no_row_has_are_taken_over() -> None:
    x, y = rows(classes=2, gaps=False)
    settings = settings_of("trees").model_copy(update={"min_leaf": len(x)})
    net = EstimatorModel(settings, 4)
    net.fit(x, np.where(y == 1, 3, 1), None, stages=3, seed=0)
    assert_same(net, x)
    assert net.as_module("t").depth == 0
    net = fitted("trees", x, np.where(y == 1, 3, 1), classes=4)
    assert_same(net, x)
    assert set(net.as_module("t")(torch.from_numpy(x)).argmax(dim=1).tolist()) == {1, 3}


@given(
    x=st.floats(width=32, allow_nan=False),
    t=st.floats(min_value=-LARGEST, allow_nan=False)
    | st.builds(np.nextafter, st.floats(width=32, allow_nan=False, allow_infinity=False), st.floats(allow_nan=False)),
)
@example(x=float(np.float32(0.1)), t=0.1)
@example(x=float(np.float32(0.1)), t=np.nextafter(np.float64(np.float32(0.1)), 1))
@example(x=np.inf, t=1e300)
@example(x=-0.0, t=0.0)
def test_float32_numbers_are_compared_with_a_threshold_as_in_double_precision(x: float, t: float) -> None:
    limits = at_most(np.array([t, t]), strictly=np.array([False, True]))
    assert limits.dtype == np.float32
    assert (x <= t) == (np.float32(x) <= limits[0])
    assert (x < t) == (np.float32(x) <= limits[1])


def test_without_treelite_the_command_that_installs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(classes=2, gaps=False)
    net = EstimatorModel(net_settings("trees"), 2)
    net.fit(x, y, None, stages=1, seed=0)
    monkeypatch.setattr(boosted, "installed", lambda name: name != "treelite")
    with pytest.raises(
        UserError,
        match=r"^An export of trees needs treelite, which is not installed: pip install 'umix\[trees\]'\.$",
    ):
        net.as_module("trees")


@pytest.mark.parametrize("name", ["catboost", "sklearn.linear_model:LogisticRegression"])
def test_estimators_that_treelite_does_not_read_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = EstimatorModel(net_settings(name), 2)
    monkeypatch.setattr(net, "_model", object())
    with pytest.raises(
        UserError,
        match=r"^This export works for nets and for trees, lightgbm and xgboost, but this run is my title; use format=mlflow\.$",
    ):
        net.as_module("my title")


def test_trees_that_were_fitted_to_one_class_are_refused() -> None:
    x, y = rows(classes=2, gaps=False)
    net = EstimatorModel(net_settings("trees"), 2)
    net.fit(x, np.zeros_like(y), None, stages=1, seed=0)
    with pytest.raises(UserError, match=r"^A model that is exported must know two classes, but this run is trees"):
        net.as_module("trees")
