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
from collections.abc import Iterator
from typing import Any, Literal, Self, cast, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from umix.adapters.sklearn.chosen_method import PARAMETERS, all_settings, chosen_method
from umix.adapters.sklearn.chosen_net import batch_size_of, chosen_net, net_logits
from umix.adapters.sklearn.frames import (
    fitted_table,
    is_table,
    numbers_with_gaps,
    require_frame,
    table_matrix,
)
from umix.adapters.sklearn.given_estimator import checked_rows, estimator_logits, row_numbers
from umix.adapters.sklearn.given_labels import checked_labels, classes_of
from umix.adapters.sklearn.given_rows import Division, checked_weight, divide_rows, task_of
from umix.adapters.sklearn.held_out import chosen_rule, rates_at, selected
from umix.adapters.sklearn.numbers import (
    Floats,
    fitted_scaler,
    require_memory,
    row_blocks,
    standardised,
    standardised_blocks,
)
from umix.adapters.sklearn.seeds import seed_of
from umix.bench.runs.record import known_decide
from umix.core.decisions import decide
from umix.core.selection import Decide
from umix.data.rows.known_rows import KnownRows
from umix.data.rows.table_file import is_frame
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.method import Method
from umix.nets.estimators.own import GivenEstimator, checked_estimator
from umix.nets.net import Net, NetSettings
from umix.terminal import Bars
from umix.training.estimator_fit import fitted_body
from umix.training.fit_settings import FitSettings
from umix.training.trainer import Trainer

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
        Rule that selects the epoch on them: worst (group), worst_class, average, cvar, last and others; by default worst where
        groups are given, else worst_class.
    decide : {"biases", "argmax"}, default="biases"
        ``biases`` chooses on the held-out rows, together with the epoch, how much is added to the logit of each class before the
        largest one is predicted (of two classes a threshold); ``argmax`` predicts the most probable class. Take ``argmax`` inside
        TunedThresholdClassifierCV and CalibratedClassifierCV, which decide themselves.
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
    decisions_ : dict
        What was left to ``auto``, the value that was chosen, and how (``reason``, ``standings``); empty where nothing was.
    best_epoch_ : int
        The epoch, counted from 0, whose weights the net has.
    biases_ : ndarray of shape (n_classes,)
        What is added to the logit of each class before the largest one is predicted; zeros with ``decide="argmax"``. They are in
        ``decision_function``, not in ``predict_proba``.
    net_ : Net
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
        decide: Decide = "biases",
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
        self.decide = decide
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
        recipe = chosen_method(self.method, settings, groups=groups is not None, by_gradients=self.estimator is None)
        division, seed = Division(val_share=self.val_share), seed_of(self.random_state)
        self._check_learner()
        rule = chosen_rule(self.select, groups=groups is not None)
        known_decide(self.decide)
        X = self._rows(X)  # noqa: N806
        y = checked_labels(y, X, owner=self)
        weight = checked_weight(sample_weight, X, recipe)
        self.classes_, codes = classes_of(y, weight)
        names = tuple(str(name) for name in self.classes_)
        known = divide_rows(codes, names, groups=groups, weight=weight, val_share=division.val_share, seed=seed)
        task, net, fit = self._learner(X, known, weight)
        trainer = Trainer(task, net, fit, seed=seed, groups=recipe.needs_groups, decide=self.decide, hold=True)
        trained = self._train(recipe, trainer)
        self._learn(trainer, trained, known, rule)
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The label of every row, [n]: the most probable one after ``biases_`` are added to the logits."""
        chosen = decide(torch.from_numpy(self._logits(X)), torch.from_numpy(self.biases_)).numpy()
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The probability of every class for every row, [n, classes], in the order of ``classes_``, without ``biases_``."""
        shares = torch.from_numpy(self._logits(X)).softmax(dim=1).numpy()
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
            if (given := getattr(self, name)) != usual[name].default:
                raise UserError(
                    f"UMIXClassifier.{name} must be left out where an estimator is given, got {given!r}: only nets have it; set "
                    "options of the estimator itself."
                )
        checked_estimator(self.estimator)
        FitSettings(epochs=self.epochs)

    def _rows(self, X: Any) -> Any:  # noqa: N803
        """The rows: anything for an estimator; for a net a matrix of numbers, or a frame that is to be read as a table."""
        if self.estimator is not None:
            return checked_rows(self, X)
        self._of_frame = is_frame(X)
        if is_table(X):
            validate_data(self, X, skip_check_array=True)
            return X
        X = validate_data(self, X, dtype=(np.float64, np.float32), accept_sparse="csr")  # noqa: N806
        require_memory(X)
        return X

    def _learner(self, X: Any, known: KnownRows, weight: Floats | None) -> tuple[Task, NetSettings, FitSettings]:  # noqa: N803
        """What is trained, how, and on which task."""
        if self.estimator is not None:
            given = GivenEstimator.of(self.estimator, X, self.classes_, epochs=self.epochs)
            return task_of(known, row_numbers(known)), given, FitSettings(epochs=given.epochs)
        train = known.rows["train"]
        self.scaler_ = self.preprocessing_ = None
        if is_table(X):
            self.preprocessing_, x = fitted_table(X, known)
        else:
            counts = None if weight is None or known.weight is None else weight[train]
            scaler = self.scaler_ = fitted_scaler(X, train, counts)
            x = {name: standardised(scaler, X, rows) for name, rows in known.rows.items()}
        return task_of(known, x), chosen_net(self.net, self.net_options), self._net_fit(rows=len(train))

    def _net_fit(self, *, rows: int) -> FitSettings:
        return FitSettings(
            epochs=self.epochs,
            optimizer="adamw",
            lr=self.lr,
            weight_decay=self.weight_decay,
            batch_size=batch_size_of(self.batch_size, rows=rows),
        )

    def _train(self, recipe: Method, trainer: Trainer) -> Net:
        if not self.verbose:
            return recipe.train(trainer)
        with Bars() as trainer.progress:
            return recipe.train(trainer)

    def _learn(self, trainer: Trainer, net: Net, known: KnownRows, rule: str) -> None:
        """Set the fitted attributes, with the weights of the epoch that ``rule`` selects."""
        for message in trainer.warnings:
            warnings.warn(message, UserWarning, stacklevel=3)
        val = trainer.history.counts("val")
        choice = selected(val, rule, self.decide, method=self.method)
        self.best_epoch_ = choice.epoch
        self.biases_ = val.biases[choice.decision] if choice.decision else np.zeros(len(self.classes_))
        net.companion = None  # takes no part in prediction
        net.load_state_dict(trainer.history.best.held[self.best_epoch_])
        self._keep(net.cpu().double().eval())
        self.decisions_ = dict(trainer.decisions)
        self.validation_rates_ = rates_at(choice, val, self.classes_, known.groups)
        self.uncertainty_, self.weights_ = (
            self._spread(trainer.kept.get(name), known) for name in ("uncertainty", "weight")
        )

    def _keep(self, net: Net) -> None:
        """Set what predicts; the rows that an estimator was fitted to are let go."""
        if self.estimator is None:
            self.net_ = net
            return
        fitted = fitted_body(net)
        fitted.settings = cast(GivenEstimator, fitted.settings).without_rows()
        self._net, self.model_, self.stages_ = net, fitted.model, fitted.cut

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
            return estimator_logits(self._net, self, X)
        blocks, notes = self._new_inputs(X)
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=3)
        return net_logits(self.net_, blocks)

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
