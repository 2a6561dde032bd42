"""umix as a scikit-learn estimator: ``UMIXClassifier().fit(X, y)`` in pipelines, searches and cross-validation.

    model = make_pipeline(OneHotEncoder(), UMIXClassifier())
    model.fit(X, y)                                       # no groups needed
    model.fit(X, y, umixclassifier__groups=place)         # known ones select the epoch and are reported

    UMIXClassifier(estimator=LGBMClassifier()).fit(X, y)  # trains an estimator of your own instead of a net

Everything happens in memory; a fit leaves no files.
"""

import inspect
import warnings
from typing import Any, Literal, Self, cast, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from umix.adapters.chosen_method import chosen_method
from umix.adapters.given_estimator import checked_rows, estimator_logits, row_numbers
from umix.adapters.given_rows import Division, Floats, checked_weight, classes_of, divide_rows, task_of
from umix.adapters.held_out import chosen_rule, rates_at, selected
from umix.adapters.scaled_net import batch_size_of, chosen_net, net_logits, scaled
from umix.bench.runs.record import known_decide
from umix.core.decisions import decide
from umix.core.selection import Decide
from umix.data.rows.known_rows import KnownRows
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.method import Method
from umix.nets.estimators.given import GivenEstimator, checked_estimator
from umix.nets.net import Net, NetSettings
from umix.terminal import Bars
from umix.training.estimator_fit import fitted_body
from umix.training.fit_settings import FitSettings
from umix.training.trainer import Trainer

_OF_NETS = ("net", "net_options", "lr", "batch_size", "weight_decay")


@final
class UMIXClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that holds up on every subpopulation, trained without group labels.

    It trains a net: inputs are numbers and are standardised inside. Or it trains an ``estimator`` of your own, with weights of rows
    that the method finds: inputs are whatever that estimator takes. A share of the rows, ``val_share``, stratified, is not trained
    on: it selects the epoch, and with ``settings`` left to ``auto`` how much uncertainty counts. One ``random_state`` gives one
    result.

    Args:
        method: name of a method, see ``umix.METHODS``.
        estimator: what is trained instead of a net: any classifier with ``fit(X, y, sample_weight)`` and ``predict_proba``, also at
            the end of a pipeline. It is copied, not changed. Its own ``random_state`` is used if it has one. Boosted trees of
            scikit-learn (HistGradientBoostingClassifier), LightGBM, XGBoost and CatBoost are looked at after parts of their trees,
            and the best number of trees is selected. Methods that need gradients are refused.
        settings: hyperparameters of the method, ``{"eta": 3}``; the others are those of the preset for tables.
        net: name of a net for rows of numbers, ``mlp``, ``linear`` or ``module.path:factory``.
        net_options: options of the net, ``{"hidden": [64]}``.
        epochs: passes over the training rows, of every fit of the method; with an estimator, how often it is looked at between its
            first trees and all of them. One without stages is cross-fitted so many times, at most 5, to find out which rows are
            uncertain; a method's own ``length`` may ask for more.
        lr: learning rate of AdamW.
        batch_size: rows per step; ``auto`` is a 32nd of the training rows, at least 32 and at most 256, so that few rows are
            learned from in as many steps.
        weight_decay: decoupled weight decay.
        val_share: share of the rows that are held out.
        select: rule that selects the epoch on them: worst (group), worst_class, average, cvar, last and others; by default worst
            where groups are given, else worst_class.
        decide: ``biases`` chooses on the held-out rows, together with the epoch, how much is added to the logit of each class
            before the largest one is predicted (of two classes a threshold); ``argmax`` predicts the most probable class.
        random_state: seed, a whole number.
        verbose: whether progress is shown.

    Attributes:
        classes_: the labels, sorted.
        n_features_in_: number of columns.
        feature_names_in_: their names, where they are texts.
        uncertainty_: of every given row, how often the first stage got it wrong, [n]; NaN for rows that were held out or have
            weight 0, and None as a whole where the method has no such stage.
        weights_: what every row counted for in the final fit, likewise.
        validation_rates_: accuracies on the held-out rows: ``average``, ``worst`` (None without groups), ``classes``, ``groups``.
        decisions_: what was left to ``auto``, and how it was decided.
        best_epoch_: the epoch, counted from 0, whose weights the net has.
        biases_: what is added to the logit of each class before the largest one is predicted, [classes].
        net_: the trained net, in double precision, so that a row's prediction does not depend on the rows beside it; only of nets.
        scaler_: what was learned to standardise inputs; only of nets.
        model_: the fitted copy of ``estimator``, with all of its stages; only where one is given. XGBoost's predicts places in
            ``classes_``, because it takes no other labels.
        stages_: how many of its stages predict, 1 where it has none; only where an estimator is given.

    """

    def __init__(
        self,
        method: str = "umix",
        *,
        estimator: Any = None,
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
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.estimator = estimator
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

        ``groups`` [n] gives every row a value of an attribute; the groups are label × value. They select the epoch and are
        reported, and only methods that say so train with them. A row of ``sample_weight`` 2 counts as two, one of 0 is left out;
        rates on held-out rows count every row once.
        """
        recipe = chosen_method(
            self.method, self.settings, groups=groups is not None, by_gradients=self.estimator is None
        )
        division = Division(val_share=self.val_share, random_state=self.random_state)
        self._check_learner()
        rule = chosen_rule(self.select, groups=groups is not None)
        known_decide(self.decide)
        X, y = self._rows(X, y)  # noqa: N806
        weight = checked_weight(sample_weight, X, recipe)
        self.classes_, codes = classes_of(y, weight)
        names, seed = tuple(str(name) for name in self.classes_), division.random_state
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

    def _rows(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:  # noqa: N803
        """The rows and their labels: numbers for a net, anything for an estimator."""
        if self.estimator is not None:
            return checked_rows(self, X, y)
        X, y = validate_data(self, X, y, dtype=(np.float64, np.float32))  # noqa: N806
        return X, y

    def _learner(self, X: Any, known: KnownRows, weight: Floats | None) -> tuple[Task, NetSettings, FitSettings]:  # noqa: N803
        """What is trained, how, and on which task."""
        if self.estimator is not None:
            given = GivenEstimator.of(self.estimator, X, self.classes_, epochs=self.epochs)
            return task_of(known, row_numbers(len(known.y))), given, FitSettings(epochs=given.epochs)
        train = known.rows["train"]
        counts = None if weight is None or known.weight is None else weight[train]
        self.scaler_ = StandardScaler().fit(X[train], sample_weight=counts)
        x = scaled(self.scaler_, X).astype(np.float32, copy=False)
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
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)  # noqa: N806
        return net_logits(self.net_, self.scaler_, X)
