"""The weights of rows alone, for an estimator or a pipeline that trains elsewhere."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import indexable

from umix.adapters.sklearn.classifier import chosen_method
from umix.adapters.sklearn.inputs import checked_rows, row_numbers, seed_of, task_of, undivided
from umix.errors import UserError
from umix.methods.best import Best
from umix.methods.erm import ERM
from umix.methods.method import Method
from umix.methods.registry import METHODS
from umix.methods.registry import method as method_of
from umix.models.estimators.own import LOOKS, GivenEstimator
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.train_result import TrainResult


def sample_weights(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    groups: Any = None,
    method: str = "umix",
    settings: Mapping[str, Any] | None = None,
    sample_weight: ArrayLike | None = None,
    val_share: float = 0.2,
    random_state: int | np.random.RandomState | None = 0,
) -> NDArray[np.float64]:
    """What every row should count for when ``estimator`` is fitted to ``X`` and ``y``, float64 [n], mean 1.

    Copies of ``estimator`` are cross-fitted to all rows: how often a row is wrong in models that have not seen it gives its weight.

    Parameters
    ----------
    estimator : classifier
        What is trained later; as in UMIXClassifier.
    X, y : array-like, frame
        The rows and their labels.
    groups : array-like, default=None
        Values of an attribute or of several. Known groups choose too, and methods such as ``reweight`` with
        ``settings={"by": "group"}`` weigh by them.
    method : str, default="umix"
        A method that weighs rows: umix, jtt, reweight or group_mixup.
    settings : dict, default=None
        Settings of the method. What they leave to ``auto`` is chosen on held-out rows, by the most probable class.
    sample_weight : array-like of shape (n,), default=None
        Weights of your own, by which the others are multiplied.
    val_share : float, default=0.2
        Share of the rows that are held out for that choice.
    random_state : int, RandomState instance or None, default=0
        As in UMIXClassifier.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(300, weights=[0.8], flip_y=0.1, random_state=0)
    >>> weight = sample_weights(LogisticRegression(), X, y, settings={"eta": 3, "pool": "example", "length": 2})
    >>> model = LogisticRegression().fit(X, y, sample_weight=weight)
    >>> bool(weight[model.predict(X) != y].mean() > weight[model.predict(X) == y].mean())
    True

    """
    recipe = chosen_method(method, settings, groups=groups is not None, offers=GivenEstimator.offers)
    seed = seed_of(random_state)
    (X,) = indexable(X)  # noqa: N806
    classes, weight, known = checked_rows(
        X, y, groups, sample_weight, recipe=recipe, owner=estimator, val_share=val_share, seed=seed
    )
    net = GivenEstimator.of(estimator, X, classes, epochs=LOOKS)
    fit = FitSettings(epochs=net.epochs)
    if _leaves_open(recipe):
        context = Context(
            task_of(known, row_numbers(known)),
            net,
            fit,
            seed=seed,
            groups=recipe.needs_groups,
            threshold="off",
            only_weigh=True,
        )
        recipe = _resolved(recipe, recipe.train(context).choices)
    everything = undivided(known, weight)
    context = Context(
        task_of(everything, row_numbers(everything)), net, fit, seed=seed, groups=recipe.needs_groups, only_weigh=True
    )
    result = recipe.train(context)
    for message in result.warnings:
        warnings.warn(message, UserWarning, stacklevel=2)
    return _spread(
        _weights(recipe, result, n=len(everything.rows["train"])), everything.rows["train"], weight, n=len(known.y)
    )


def _leaves_open(recipe: Method) -> bool:
    """Whether something is to be chosen on held-out rows."""
    return recipe.name == Best.name or "auto" in recipe.model_dump().values()


def _resolved(recipe: Method, choices: Mapping[str, Any]) -> Method:
    """The method with what was chosen; ``best`` chooses another method."""
    name = choices.get("method", recipe.name)
    own = recipe.model_dump() if name == recipe.name else {}
    chosen = {key.removeprefix(f"{name}."): value for key, value in choices.items()}
    values = {key: value for key, value in {**own, **chosen}.items() if key in METHODS[name].model_fields}
    return method_of(name, **{key: value for key, value in values.items() if value != "auto"})


def _weights(recipe: Method, result: TrainResult, *, n: int) -> NDArray[np.float64]:
    """The weight that ``recipe`` has given each of ``n`` training rows."""
    if recipe.name == ERM.name:
        return np.ones(n)
    if "weight" not in result.per_example:
        raise UserError(
            f"method must be one that weighs rows, got {recipe.name!r}; choose umix, jtt, reweight or group_mixup."
        )
    weights: NDArray[np.float64] = result.per_example["weight"].double().numpy()
    return weights


def _spread(
    weights: NDArray[np.float64], rows: NDArray[np.int64], given: NDArray[Any] | None, *, n: int
) -> NDArray[np.float64]:
    """The weights at the places of their ``rows`` among all ``n``, times those that were ``given``, scaled to mean 1."""
    spread = np.zeros(n)
    spread[rows] = weights if given is None else weights * given[rows]
    scaled: NDArray[np.float64] = spread / spread.mean()
    return scaled
