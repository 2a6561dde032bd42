"""Estimators as the bodies of nets: what they say stage by stage, and how they are stored."""

import numpy as np
import pytest
import torch

from umix.errors import UserError
from umix.models.estimators.boosted import Trees
from umix.models.estimators.estimator import BLOCKS, EstimatorModel, EstimatorSettings
from umix.models.estimators.library import of_last_step
from umix.models.estimators.own import AnyLibrary, OwnEstimator, library_of
from umix.models.registry import net_settings

EXTRAS = ("lightgbm", "xgboost", "catboost")
OWN = "sklearn.linear_model:LogisticRegression"
LIBRARIES = ("trees", *(pytest.param(name, marks=pytest.mark.system) for name in EXTRAS), OWN)


def settings_of(name: str, **options: object) -> EstimatorSettings:
    if name in EXTRAS:
        pytest.importorskip(name)
    made = net_settings(name, **options)
    assert isinstance(made, EstimatorSettings)
    return made


def rows(n: int = 200, *, classes: int = 2, codes: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and with ``codes`` a third column of codes with gaps, that decide the class."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    if codes:
        x[:, 2] = rng.integers(0, 4, n)
        x[rng.random(n) < 0.1, 2] = np.nan
    score = x[:, 0] + np.nan_to_num(x[:, 2], nan=0.0) * (1 if codes else 0.5) + 0.3 * rng.normal(size=n)
    return x, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes)).astype(np.int64)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", LIBRARIES)
def test_the_logits_of_all_stages_give_the_librarys_own_probabilities(name: str, classes: int) -> None:
    settings = settings_of(name)
    x, y = rows(classes=classes)
    net = settings.build(torch.from_numpy(x[0]), classes)
    assert isinstance(net, EstimatorModel)
    net.fit(x, y, None, stages=12, seed=0)
    p = net(torch.from_numpy(x)).double().softmax(dim=1).detach().numpy()
    np.testing.assert_allclose(p, net.model.predict_proba(x), atol=1e-6)


@pytest.mark.parametrize("name", LIBRARIES[:4])
def test_the_first_stages_are_the_model_that_was_fitted_with_so_few(name: str) -> None:
    settings = settings_of(name)
    x, y = rows()
    whole, part = EstimatorModel(settings, 2), EstimatorModel(settings, 2)
    whole.fit(x, y, None, stages=12, seed=0)
    part.fit(x, y, None, stages=5, seed=0)
    torch.testing.assert_close(whole.logits_at(x, [5, 12])[0], part.logits_at(x, [5])[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_stored_model_predicts_the_same(name: str) -> None:
    settings = settings_of(name)
    x, y = rows(classes=3)
    net = settings.build(torch.from_numpy(x[0]), 3)
    assert isinstance(net, EstimatorModel)
    net.fit(x, y, None, stages=12, seed=0)
    net.cut = 12 if not settings.has_epochs else 7
    loaded = settings.build(torch.from_numpy(x[0]), 3)
    loaded.load_state_dict({name: tensor.clone() for name, tensor in net.state_dict().items()})
    assert torch.equal(loaded(torch.from_numpy(x)), net(torch.from_numpy(x)))


@pytest.mark.parametrize("name", LIBRARIES[:4])
def test_codes_and_gaps_are_taken_as_they_are(name: str) -> None:
    x, y = rows(400, codes=True)
    fitted = EstimatorModel(settings_of(name).with_categories((0, 0, 4)), 2)
    fitted.fit(x, y, None, stages=30, seed=0)
    assert (fitted.logits_at(x, [30])[0].argmax(dim=1).numpy() == y).mean() > 0.9


@pytest.mark.parametrize("name", LIBRARIES)
def test_weights_count_as_copies(name: str) -> None:
    """A class of weight 0.01 is nearly forgotten where classes overlap."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 1)).astype(np.float32), np.repeat([0, 1], 200)
    fitted = EstimatorModel(settings_of(name), 2)
    fitted.fit(x, y, np.where(y == 1, 0.01, 1.0), stages=5, seed=0)
    assert (fitted.logits_at(x, [5])[0].argmax(dim=1) == 0).all()


def test_a_class_that_no_row_has_is_never_predicted_and_one_class_alone_always() -> None:
    x, y = rows(classes=2)
    fitted = EstimatorModel(Trees(), 4)
    fitted.fit(x, np.where(y == 1, 3, 1), None, stages=3, seed=0)
    assert set(fitted.logits_at(x, [3])[0].argmax(dim=1).tolist()) == {1, 3}
    fitted.fit(x, np.full(len(x), 2), None, stages=3, seed=0)
    assert (fitted.logits_at(x, [3])[0].argmax(dim=1) == 2).all()
    assert fitted.logits_at(x[:0], [3]).shape == (1, 0, 4)


def test_features_are_the_logits_by_each_tenth_of_the_stages() -> None:
    x, y = rows()
    net = Trees().build(torch.from_numpy(x[0]), 2)
    assert isinstance(net, EstimatorModel)
    net.fit(x, y, None, stages=20, seed=0)
    z = net.features(torch.from_numpy(x)).view(len(x), BLOCKS, 2)
    assert torch.equal(z[:, 3], net.logits_at(x, [8])[0])
    assert torch.equal(z[:, -1], net(torch.from_numpy(x)))


def test_a_fit_in_a_race_is_nearly_the_usual_one() -> None:
    x, y = rows(3000, codes=True)
    x[::7, 1] = np.nan
    weight = np.random.default_rng(1).random(len(x)) + 0.5
    usual, trial = (EstimatorModel(Trees().with_categories((0, 0, 4)), 2) for _ in range(2))
    trial.for_trial()
    for fitted in (usual, trial):
        fitted.fit(x, y, weight, stages=6, seed=0)
    agree = usual.logits_at(x, [6])[0].argmax(dim=1) == trial.logits_at(x, [6])[0].argmax(dim=1)
    assert agree.double().mean() > 0.98


def test_a_fit_goes_on_to_the_bit() -> None:
    x, y = rows()
    weight = np.random.default_rng(1).random(len(x)) + 0.5
    once, twice = EstimatorModel(Trees(), 2), EstimatorModel(Trees(), 2)
    once.fit(x, y, weight, stages=10, seed=0)
    twice.fit(x, y, weight, stages=4, seed=0)
    twice.fit(x, y, weight, stages=10, seed=0)
    assert torch.equal(once.logits_at(x, [10]), twice.logits_at(x, [10]))


@pytest.mark.parametrize("settings", [Trees(), OwnEstimator(factory=OWN)], ids=["trees", "own"])
def test_a_stored_model_of_foreign_types_is_refused(settings: EstimatorSettings) -> None:
    from collections import deque

    import skops.io

    stored = {"classes": torch.tensor([0, 1]), "cut": torch.tensor(1)}
    foreign = torch.frombuffer(bytearray(skops.io.dumps({"model": deque})), dtype=torch.uint8)
    with pytest.raises(UserError, match=r"^A stored model must be whole, but .*collections\.deque"):
        EstimatorModel(settings, 2).load_state_dict({**stored, "model": foreign})
    with pytest.raises(UserError, match=r"^A stored model must be whole, but it cannot be read"):
        EstimatorModel(settings, 2).load_state_dict({**stored, "model": foreign[:50]})


def test_the_library_of_an_estimator_is_known_by_its_class() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    assert library_of(HistGradientBoostingClassifier()).stages_option == "max_iter"
    assert isinstance(library_of(RandomForestClassifier()), AnyLibrary)
    assert (
        of_last_step(make_pipeline(RandomForestClassifier()), "sample_weight")
        == "randomforestclassifier__sample_weight"
    )


def test_options_that_the_library_does_not_know_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"^net.options must be options of HistGradientBoostingClassifier, got \{'max_bin'"
    ):
        Trees(options={"max_bin": 3}).make(stages=1, seed=0)
    assert Trees(options={"max_bins": 63}).make(stages=1, seed=0).max_bins == 63


def test_an_estimator_without_probabilities_or_weights_is_refused() -> None:
    with pytest.raises(
        UserError, match="must give an estimator with fit and predict_proba, but LinearSVC has no predict_proba"
    ):
        net_settings("sklearn.svm:LinearSVC").make(stages=1, seed=0)
    with pytest.raises(
        UserError, match="must give an estimator that takes sample_weight in fit, but KNeighborsClassifier does not"
    ):
        net_settings("sklearn.neighbors:KNeighborsClassifier").make(stages=1, seed=0)


class Wrong:
    """An estimator that is wrong in the way that it is told."""

    def __init__(self, how: str = "fit") -> None:
        self.how = how

    def fit(self, x: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        self.value = {"function": lambda: 1, "module": (n for n in range(2))}.get(self.how)
        if self.how == "fit":
            raise RuntimeError("no, thanks")

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.full((len(x), 5 if self.how == "width" else 2), np.nan if self.how == "nan" else 0.5)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            "fit",
            r"^own:wrong must be fitted to 200 rows, but its estimator raised RuntimeError: no, thanks \(.*\); change",
        ),
        ("width", r"must give a finite probability of each of 2 classes for 200 rows, got \[200, 5\] numbers"),
        ("nan", r"got \[200, 2\] numbers, 400 of them not finite"),
        ("function", r"^A model must be stored without pickle, but Wrong holds something .*Untrusted types found"),
        (
            "module",
            r"^A model must be stored without pickle, but Wrong holds something that skops cannot write and read again",
        ),
    ],
)
def test_estimators_of_ones_own_that_are_wrong_are_refused(
    monkeypatch: pytest.MonkeyPatch, how: str, message: str
) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr(
        "umix.models.estimators.own.own_module", lambda title: SimpleNamespace(wrong=lambda: Wrong(how))
    )
    fitted = EstimatorModel(OwnEstimator(factory="own:wrong"), 2)
    x, y = rows()

    def use() -> None:
        fitted.fit(x, y, None, stages=1, seed=0)
        fitted.logits_at(x, [1])
        fitted.state_dict()

    with pytest.raises(UserError, match=message):
        use()


def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "xgboost", None)
    monkeypatch.setattr("umix.models.library.find_spec", lambda name: None)
    with pytest.raises(
        UserError, match=r"^The net xgboost needs xgboost, which is not installed: pip install 'umix\[xgboost\]'"
    ):
        net_settings("xgboost").make(stages=1, seed=0)
