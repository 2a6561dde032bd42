"""umix as a scikit-learn estimator: ``UMIXClassifier().fit(X, y)`` in pipelines, searches and cross-validation.

    model = make_pipeline(OneHotEncoder(), UMIXClassifier())
    model.fit(X, y)                                       # no groups needed
    model.fit(X, y, umixclassifier__groups=place)         # known ones select the epoch and are reported

    UMIXClassifier(eta=3).fit(frame, y)                   # texts, categories, dates and gaps, as umix run takes a table
    UMIXClassifier(estimator=LGBMClassifier()).fit(X, y)  # trains an estimator of your own instead of a net

Everything happens in memory; a fit leaves no files.
"""

import inspect
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, Self, cast, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_is_fitted, validate_data

from umix.adapters.sklearn.inputs import (
    Floats,
    checked_rows,
    fitted_table,
    is_table,
    n_rows,
    numbers_with_gaps,
    require_frame,
    row_blocks,
    row_numbers,
    seed_of,
    standardised_blocks,
    standardised_numbers,
    table_matrix,
    task_of,
)
from umix.bench.runs.record import known_rule, known_threshold
from umix.bench.spec.presets import preset
from umix.core.calibration import Calibration
from umix.core.epoch_counts import Counts
from umix.core.evaluation import worst_unit
from umix.core.rates import per_group
from umix.core.selection import RULES, Choice, Threshold, best_choice
from umix.core.thresholds import calibrated_probabilities, predicted_classes
from umix.data.groups import Groups
from umix.data.rows.known_rows import KnownRows
from umix.data.rows.table_file import is_frame
from umix.data.task import Task
from umix.errors import UserError
from umix.limits import require_memory
from umix.methods.method import Method
from umix.methods.registry import METHODS, method
from umix.models.estimators.estimator import EstimatorModel
from umix.models.estimators.own import GivenEstimator, checked_estimator
from umix.models.model import Capability, Model, ModelSettings
from umix.models.net import NetSettings
from umix.models.registry import net_settings
from umix.terminal import Bars
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.train_result import TrainResult

#: The settings of methods that are parameters of the classifier too; they are UMIX's.
PARAMETERS = ("eta", "sigma", "alpha", "mixing", "per_example", "pool", "start", "length")
_OF_NETS = ("net", "net_options", "lr", "batch_size", "weight_decay")


@final
class UMIXClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that holds up on every subpopulation, trained without group labels.

    It trains a net, or an ``estimator`` of your own with weights of rows that the method finds. A share of the rows,
    ``val_share``, stratified, is not trained on: it selects the epoch, and what the method leaves to ``auto``, such as how much
    uncertainty counts.

    What a net takes as ``X``:

    - numbers, dense or sparse. They are standardised. A sparse matrix gives the same net as a dense one: it is unpacked, which
      takes 4 bytes for each of its values, zeros included.
    - a frame of pandas or polars. If all of its columns are numbers, or true and false, and none is missing, it is as good as an
      array. Else it is read as ``umix run`` reads a table: texts, categories, dates and missing values become numbers. The
      columns of a frame to predict must have the names and order of ``fit``. A value that was never seen counts as none of the
      known ones, and a number that is missing as the mean.

    An ``estimator`` is given ``X`` as it is.

    Parameters
    ----------
    method : str, default="umix"
        Name of a method, see ``umix.METHODS``.
    estimator : classifier, default=None
        What is trained instead of a net: any classifier with ``fit(X, y, sample_weight)`` and ``predict_proba``, also at the end
        of a pipeline. It is copied, not changed. Its own ``random_state`` is used if it has one. Boosted trees of scikit-learn
        (HistGradientBoostingClassifier), LightGBM, XGBoost and CatBoost are looked at after parts of their trees, and the best
        number of trees is selected. Methods that need gradients are refused.
    eta : float or "auto", default=None
        How much the weight of a row grows with its uncertainty. This and the next seven are settings of the method; None is the
        value of the preset for tables, and for a method that does not have the setting it must be None.
    sigma : float, default=None
        Probability of mixing a batch.
    alpha : float, default=None
        The share of each row in a mixture is drawn from Beta(alpha, alpha). Some methods have another setting of this name.
    mixing : {"input", "cutmix", "features"}, default=None
        What is mixed.
    per_example : bool, default=None
        Whether every row is mixed by a draw of its own, instead of one for the batch.
    pool : {"example", "class", "balance", "cell", "auto"}, default=None
        What a row weighs by: its own uncertainty, the mean of its class, its own times class balance, or the inverse size of its
        cell (class and right or wrong).
    start : int, default=None
        First epoch of the window in which wrong predictions of the first stage count as uncertainty, counted from 0.
    length : int or "auto", default=None
        Number of epochs in that window.
    settings : dict, default=None
        Other settings of the method, ``{"c": 2, "normalize": False}``; those above may be here too. The rest is from the preset.
    net : str, default="mlp"
        Name of a net for rows of numbers, ``mlp``, ``linear`` or ``module.path:factory``.
    net_options : dict, default=None
        Options of the net, ``{"hidden": [64]}``.
    epochs : int, default=20
        Passes over the training rows, of every fit of the method; with an estimator, how often it is looked at between its first
        trees and all of them. One without stages is cross-fitted so many times, at most 5, to find out which rows are uncertain; a
        method's own ``length`` may ask for more.
    lr : float, default=0.001
        Learning rate of AdamW.
    batch_size : int or "auto", default="auto"
        Rows per step; ``auto`` is a 32nd of the training rows, at least 32 and at most 256, so that few rows are learned from in as
        many steps.
    weight_decay : float, default=0.01
        Decoupled weight decay.
    val_share : float, default=0.2
        Share of the rows that are held out.
    select : str, default=None
        Rule that selects the epoch on them: worst (group), balanced, worst_class, average, cvar, last and others; by default
        worst where groups are given, else balanced, the worst class and the average.
    threshold : {"tuned", "off"}, default="tuned"
        ``tuned`` chooses on the held-out rows, together with the epoch, how much is added to the logit of each class before the
        largest one is predicted (of two classes a threshold); ``off`` predicts the largest logit. Take ``off`` inside
        TunedThresholdClassifierCV and CalibratedClassifierCV, which decide themselves.
    calibrate : bool, default=True
        Whether ``predict_proba`` is calibrated on the held-out rows, if they are at least 100 and 10 of every class. No prediction
        changes: of two classes ``threshold_`` says from which probability on the second one is predicted. Take False with
        ``threshold="off"`` for scikit-learn's usual contract, the prediction is the most probable class.
    random_state : int, RandomState instance or None, default=0
        One number gives one result. None draws a seed from numpy's global generator, an instance from that one, in every fit.
    verbose : bool, default=False
        Whether progress is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they are texts.
    uncertainty_ : ndarray of shape (n_rows,) or None
        Of every given row, how often the first stage got it wrong, from 0 to 1. NaN for rows that were held out or have weight 0;
        None where the method has no such stage.
    weights_ : ndarray of shape (n_rows,) or None
        What every row counted for in the final fit, likewise; with UMIX eta · uncertainty + 1, scaled to mean 1.
    validation_rates_ : dict
        Accuracies on the held-out rows: ``average``, ``worst`` (None without groups), ``classes`` and ``groups``.
    choices_ : dict
        What was left to ``auto``, the value that was chosen, and how (``reason``, ``candidates``); empty where nothing was.
    best_epoch_ : int
        The epoch, counted from 0, whose weights the net has.
    biases_ : ndarray of shape (n_classes,)
        What is added to the logit of each class before the largest one is predicted; zeros with ``threshold="off"``. They are in
        ``decision_function``, not in ``predict_proba``.
    calibration_ : Calibration
        The ``scale`` of the logits and what is then added to that of each class (``biases``) before ``predict_proba`` makes
        probabilities of them; 1 and zeros where they are not calibrated.
    threshold_ : float or None
        Of two classes, the probability of the second above which it is predicted; None where there are more.
    net_ : Model
        The trained net, in double precision, so that a row's prediction does not depend on the rows beside it; only of nets.
    scaler_ : StandardScaler or None
        What was learned to standardise numbers; None for a frame that is read as a table. Only of nets.
    preprocessing_ : TablePreprocessing or None
        What was learned to read a frame as a table; None for numbers. Only of nets.
    model_ : estimator
        The fitted copy of ``estimator``, with all of its stages; only where one is given. XGBoost's predicts places in
        ``classes_``, because it takes no other labels.
    stages_ : int
        How many of its stages predict, 1 where it has none; only where an estimator is given.

    """

    def __init__(
        self,
        method: str = "umix",
        *,
        estimator: Any = None,
        eta: float | Literal["auto"] | None = None,
        sigma: float | None = None,
        alpha: float | Literal["auto"] | None = None,
        mixing: str | None = None,
        per_example: bool | None = None,
        pool: str | None = None,
        start: int | None = None,
        length: int | Literal["auto"] | None = None,
        settings: dict[str, Any] | None = None,
        net: str = "mlp",
        net_options: dict[str, Any] | None = None,
        epochs: int = 20,
        lr: float = 1e-3,
        batch_size: int | Literal["auto"] = "auto",
        weight_decay: float = 0.01,
        val_share: float = 0.2,
        select: str | None = None,
        threshold: Threshold = "tuned",
        calibrate: bool = True,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.estimator = estimator
        self.eta = eta
        self.sigma = sigma
        self.alpha = alpha
        self.mixing = mixing
        self.per_example = per_example
        self.pool = pool
        self.start = start
        self.length = length
        self.settings = settings
        self.net = net
        self.net_options = net_options
        self.epochs = epochs
        self.lr = lr
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.val_share = val_share
        self.select = select
        self.threshold = threshold
        self.calibrate = calibrate
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, *, groups: Any = None, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """This estimator, trained on the rows ``X`` [n, columns] with labels ``y`` [n].

        ``groups`` gives every row the value of an attribute, [n], or of several: an array [n, attributes], a frame, or a dict of
        columns. The groups are label × values; a row with a missing value has none. They select the epoch and are reported, and
        only methods that say so train with them. A row of ``sample_weight`` 2 counts as two, one of 0 is left out; rates on
        held-out rows count every row once.
        """
        settings = all_settings(self.method, self.settings, {name: getattr(self, name) for name in PARAMETERS})
        offers = (NetSettings if self.estimator is None else GivenEstimator).offers
        recipe = chosen_method(self.method, settings, groups=groups is not None, offers=offers)
        seed = seed_of(self.random_state)
        self._check_learner()
        rule = chosen_rule(self.select, groups=groups is not None)
        known_threshold(self.threshold)
        X = self._rows(X)  # noqa: N806
        self.classes_, weight, known = checked_rows(
            X, y, groups, sample_weight, recipe=recipe, owner=self, val_share=self.val_share, seed=seed
        )
        task, net, fit = self._learner(X, known, weight)
        context = Context(task, net, fit, seed=seed, groups=recipe.needs_groups, threshold=self.threshold, hold=True)
        self._learn(self._train(recipe, context), known, rule)
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The label of every row, [n]: the most probable one after ``biases_`` are added to the logits."""
        chosen = predicted_classes(torch.from_numpy(self._logits(X)), torch.from_numpy(self.biases_)).numpy()
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The calibrated probability of every class for every row, [n, classes], in the order of ``classes_``."""
        logits = torch.from_numpy(self._logits(X))
        shares = calibrated_probabilities(logits, self.calibration_).numpy()
        probabilities: NDArray[np.float64] = shares
        return probabilities

    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Logits of every row with ``biases_``, [n, classes]; of two classes, how far the second is ahead, [n]."""
        logits = self._logits(X) + self.biases_
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.estimator is None
        if callable(getattr(self.estimator, "__sklearn_tags__", None)):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _check_learner(self) -> None:
        """Raise where the net or the estimator cannot be what is asked for."""
        if self.estimator is None:
            chosen_net(self.net, self.net_options)
            self._net_fit(rows=0)
            return
        usual = inspect.signature(type(self)).parameters
        for name in _OF_NETS:
            if (value := getattr(self, name)) != usual[name].default:
                raise UserError(
                    f"UMIXClassifier.{name} must be left out where an estimator is given, got {value!r}: only nets have it; set "
                    "options of the estimator itself."
                )
        checked_estimator(self.estimator)
        FitSettings(epochs=self.epochs)

    def _rows(self, X: Any) -> Any:  # noqa: N803
        """The rows: anything for an estimator; for a net a matrix of numbers, or a frame that is to be read as a table."""
        if self.estimator is not None:
            (X,) = indexable(X)  # noqa: N806
            validate_data(self, X, skip_check_array=True)
            return X
        self._of_frame = is_frame(X)
        if is_table(X):
            validate_data(self, X, skip_check_array=True)
            return X
        X = validate_data(self, X, dtype=(np.float64, np.float32), accept_sparse="csr")  # noqa: N806
        fix = "make fewer columns (OneHotEncoder(max_categories=...), TruncatedSVD), or give an estimator that takes sparse rows"
        require_memory(4 * X.shape[0] * X.shape[1], "A net takes dense float32 rows, and those of X take", fix)
        return X

    def _learner(self, X: Any, known: KnownRows, weight: Floats | None) -> tuple[Task, ModelSettings, FitSettings]:  # noqa: N803
        """What is trained, how, and on which task."""
        if self.estimator is not None:
            given = GivenEstimator.of(self.estimator, X, self.classes_, epochs=self.epochs)
            return task_of(known, row_numbers(known)), given, FitSettings(epochs=given.epochs)
        self.scaler_ = self.preprocessing_ = None
        if is_table(X):
            self.preprocessing_, x = fitted_table(X, known)
        else:
            self.scaler_, x = standardised_numbers(X, known, weight)
        return task_of(known, x), chosen_net(self.net, self.net_options), self._net_fit(rows=len(x["train"]))

    def _net_fit(self, *, rows: int) -> FitSettings:
        return FitSettings(
            epochs=self.epochs,
            optimizer="adamw",
            lr=self.lr,
            weight_decay=self.weight_decay,
            # Few rows are learned from in as many steps.
            batch_size=int(np.clip(rows // 32, 32, 256)) if self.batch_size == "auto" else self.batch_size,
        )

    def _train(self, recipe: Method, context: Context) -> TrainResult:
        if not self.verbose:
            return recipe.train(context)
        with Bars() as bars:
            return recipe.train(replace(context, progress=bars))

    def _learn(self, result: TrainResult, known: KnownRows, rule: str) -> None:
        """Set the fitted attributes, with the weights of the epoch that ``rule`` selects."""
        for message in result.warnings:
            warnings.warn(message, UserWarning, stacklevel=3)
        val, net = result.history.counts("val"), result.net
        choice = selected(val, rule, self.threshold, method=self.method)
        self.best_epoch_ = choice.epoch
        self.biases_ = val.biases[choice.threshold] if choice.threshold else np.zeros(len(self.classes_))
        fitted = result.history.calibration(choice.epoch) if self.calibrate else None
        self.calibration_ = fitted or Calibration.none(len(self.classes_))
        self.threshold_ = self.calibration_.threshold(self.biases_) if len(self.classes_) == 2 else None
        net.companion = None  # takes no part in prediction
        net.load_state_dict(result.history.best.held[self.best_epoch_])
        self._keep(net.cpu().double().eval())
        self.choices_ = dict(result.choices)
        self.validation_rates_ = rates_at(choice, val, self.classes_, known.groups)
        self.uncertainty_, self.weights_ = (
            self._spread(result.per_example.get(name), known) for name in ("uncertainty", "weight")
        )

    def _keep(self, net: Model) -> None:
        """Set what predicts; the rows that an estimator was fitted to are let go."""
        if self.estimator is None:
            self.net_ = net
            return
        fitted = cast(EstimatorModel, net)
        fitted.settings = cast(GivenEstimator, fitted.settings).without_rows()
        self._net, self.model_, self.stages_ = fitted, fitted.model, fitted.cut

    @staticmethod
    def _spread(values: torch.Tensor | None, known: KnownRows) -> NDArray[np.float64] | None:
        """The ``values`` of training rows at their places among all given rows; NaN for other rows."""
        if values is None:
            return None
        spread = np.full(len(known.y), np.nan)
        spread[known.rows["train"]] = values.numpy()
        return spread

    def _logits(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        check_is_fitted(self)
        if self.estimator is not None:
            (X,) = indexable(X)  # noqa: N806
            if getattr(X, "ndim", 2) > 1:  # of a row that is no table the estimator says itself what is wrong
                validate_data(self, X, skip_check_array=True, reset=False)
            return self._net.row_logits(X, n=n_rows(X))
        blocks, notes = self._new_inputs(X)
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=3)
        with torch.no_grad():
            logits: NDArray[np.float64] = torch.cat([self.net_(torch.from_numpy(x).double()) for x in blocks]).numpy()
        return logits

    def _new_inputs(self, X: Any) -> tuple[Iterator[Floats], tuple[str, ...]]:  # noqa: N803
        """Inputs of the net in blocks of rows, and what is to be said of values that ``fit`` was not given."""
        if self.preprocessing_ is not None:
            require_frame(X, self.preprocessing_)
            validate_data(self, X, skip_check_array=True, reset=False)
            table, notes = table_matrix(self.preprocessing_, X)
            return row_blocks(table), notes
        if self._of_frame and is_table(X):
            validate_data(self, X, skip_check_array=True, reset=False)
            x, notes = numbers_with_gaps(X)
        else:
            x, notes = validate_data(self, X, dtype=(np.float64, np.float32), accept_sparse="csr", reset=False), ()
        return standardised_blocks(self.scaler_, x), notes


def chosen_method(
    name: str, settings: Mapping[str, Any] | None, *, groups: bool, offers: frozenset[Capability]
) -> Method:
    """The method ``name`` with ``settings``, the others from the preset for tables.

    ``groups`` is whether groups are given, ``offers`` what the model offers. A method that needs what is not there raises.
    """
    usual = preset("table", "default").get(name, {}) if isinstance(name, str) else {}
    usual_options = {
        key: value for key, value in usual.items() if not isinstance(value, dict)
    }  # tables are of its net and fits
    recipe = method(name, **{**usual_options, **_options("settings", settings)})
    if not groups and (recipe.needs_groups or recipe.needs_val_groups or recipe.needs_some_groups):
        raise UserError(f"method={recipe.name!r} trains with groups, but none are given; pass groups=... with X and y.")
    if not recipe.needs <= offers:
        able = ", ".join(known for known, kind in METHODS.items() if kind.needs <= offers)
        raise UserError(
            f"method={recipe.name!r} must train a net, because it takes gradient steps of its own or mixes examples, and an "
            f"estimator is only fitted to weighted rows; choose one of {able}, or leave estimator out."
        )
    mixing = sorted(set(settings or {}) & set(recipe.mixing_options))
    if "mixing" not in offers and mixing and (settings or {})[mixing[0]] != 0:
        raise UserError(
            f"settings must leave out {mixing[0]!r}: an estimator is fitted to rows as they are, so nothing is mixed; leave it or "
            "estimator out."
        )
    if "gradients" not in offers and recipe.needs_some_groups:
        raise UserError(
            f"groups_from='few' must be used with a net, because groups are estimated from numbers, and an estimator's rows need "
            f"not be numbers; give {recipe.name} the groups of all rows, or leave estimator out."
        )
    return recipe


def all_settings(name: str, given: Mapping[str, Any] | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The settings ``given`` together with those ``parameters`` that are not None.

    Raises for a parameter that is no setting of the method ``name``, or that has another value among the settings.
    """
    settings = _options("settings", given)
    set_ones = {key: value for key, value in parameters.items() if value is not None}
    fields = METHODS.find(name).model_fields if set_ones else {}
    for key, value in set_ones.items():
        if key not in fields:
            raise UserError(
                f"{key}={value!r} must be left out for method={name!r}, which has no such setting; a search over several methods "
                f"has a grid for each, [{{'method': ['umix'], {key!r}: [...]}}, {{'method': [{name!r}]}}]."
            )
        if key in settings and settings[key] != value:
            raise UserError(
                f"{key} must be given once, got {key}={value!r} and settings={{{key!r}: {settings[key]!r}}}; leave one out."
            )
    return {**settings, **set_ones}


def chosen_net(name: str, given: dict[str, Any] | None) -> ModelSettings:
    """The net ``name`` with the options ``given``; what is not set of the usual net comes from the preset for tables."""
    usual = preset("table", "default")["net"]
    known = {key: value for key, value in usual.items() if key != "name"} if name == usual["name"] else {}
    return net_settings(name, **{**known, **_options("net_options", given)})


def _options(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options ``given`` under this ``name``; raises if they are no mapping."""
    if given is not None and not isinstance(given, Mapping):
        raise UserError(f"UMIXClassifier.{name} must be a dict of names and values, or None, got {given!r}.")
    return dict(given or {})


def chosen_rule(select: str | None, *, groups: bool) -> str:
    """The rule ``select``; by default the worst group, or the classes where there are no groups."""
    if select is None:
        return "worst" if groups else "balanced"
    if known_rule(select) == "worst" and not groups:
        raise UserError("select='worst' must know the groups, but none are given; select balanced or average.")
    return select


def selected(val: Counts, rule: str, threshold: Threshold, *, method: str) -> Choice:
    """The epoch and threshold that ``rule`` selects; raises where no epoch of ``method`` has a score under that rule."""
    if np.isnan(RULES[rule](val)).all():
        raise UserError(
            f"select={rule!r} must have a score on held-out rows, but method={method!r} gives none; select balanced or average."
        )
    return best_choice(val, rule, threshold)


def rates_at(choice: Choice, counts: Counts, classes: NDArray[Any], groups: Groups | None) -> dict[str, Any]:
    """The average, the worst group (None without groups) and the rate of every class and group; NaN for one without rows."""
    epoch, val = choice.epoch, counts.at_threshold(choice.threshold)
    by_class, by_group = per_group(val.class_hits[epoch], val.class_sizes), per_group(val.hits[epoch], val.sizes)
    worst = worst_unit(val.units(epoch))
    return {
        "average": float(val.all_hits[epoch] / val.n),
        "worst": None if worst.index is None else worst.rate,
        "classes": dict(zip(classes.tolist(), by_class.tolist(), strict=True)),
        "groups": dict(zip(groups.names if groups else (), by_group.tolist(), strict=True)),
    }
