"""umix as a scikit-learn estimator: ``UMIXClassifier().fit(X, y)`` in pipelines, searches and cross-validation.

    model = make_pipeline(OneHotEncoder(), UMIXClassifier())
    model.fit(X, y)                                       # no groups needed
    model.fit(X, y, umixclassifier__groups=place)         # known ones select the epoch and are reported

Everything happens in memory; a fit leaves no files.
"""

import warnings
from collections.abc import Mapping
from typing import Any, Literal, Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from umix.adapters.given_rows import Floats, divide_rows, task_of
from umix.adapters.held_out import chosen_rule, rates_at, selected
from umix.bench.runs.record import known_decide
from umix.bench.spec.presets import preset
from umix.core.decisions import decide
from umix.core.selection import Decide
from umix.data.rows.known_rows import KnownRows
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.registry import METHODS, method
from umix.nets.net import Net, NetSettings
from umix.nets.registry import net_settings
from umix.settings import Settings
from umix.terminal import Bars
from umix.training.fit_settings import FitSettings
from umix.training.trainer import Trainer

_FARTHEST = 10.0  # deviations at which inputs are cut, as in tables
_AT_ONCE = 8192  # rows that are predicted at once


@final
class Division(Settings):
    """How the given rows are divided, and the seed of everything random."""

    val_share: float = Field(gt=0, lt=1)
    random_state: int = Field(ge=0, lt=2**32)


@final
class UMIXClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that holds up on every subpopulation, trained without group labels.

    Inputs are numbers and are standardised inside. A share of the rows, ``val_share``, stratified, is not trained on: it selects
    the epoch, and with ``settings`` left to ``auto`` how much uncertainty counts. One ``random_state`` gives one result.

    Args:
        method: name of a method, see ``umix.METHODS``.
        settings: hyperparameters of the method, ``{"eta": 3}``; the others are those of the preset for tables.
        net: name of a net for rows of numbers, ``mlp``, ``linear`` or ``module.path:factory``.
        net_options: options of the net, ``{"hidden": [64]}``.
        epochs: passes over the training rows, of every fit of the method.
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
        net_: the trained net, in double precision, so that a row's prediction does not depend on the rows beside it.
        scaler_: what was learned to standardise inputs.

    """

    def __init__(
        self,
        method: str = "umix",
        *,
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
        recipe, net = self._method(), self._net()
        division = Division(val_share=self.val_share, random_state=self.random_state)
        fit = self._fit_settings()
        rule = chosen_rule(self.select, groups=groups is not None)
        known_decide(self.decide)
        if groups is None and (recipe.needs_groups or recipe.needs_val_groups or recipe.needs_some_groups):
            raise UserError(
                f"method={recipe.name!r} trains with groups, but none are given; fit(X, y, groups=...) takes them."
            )
        X, y = validate_data(self, X, y, dtype=(np.float64, np.float32))  # noqa: N806
        weight = self._sample_weight(sample_weight, X, recipe)
        self.classes_, codes = _classes(y, weight)
        names = tuple(str(name) for name in self.classes_)
        known = divide_rows(
            codes, names, groups=groups, weight=weight, val_share=division.val_share, seed=division.random_state
        )
        train = known.rows["train"]
        counts = None if weight is None or known.weight is None else weight[train]
        self.scaler_ = StandardScaler().fit(X[train], sample_weight=counts)
        if self.batch_size == "auto":
            fit = fit.model_copy(update={"batch_size": int(np.clip(len(train) // 32, 32, 256))})
        task, seed = task_of(known, self._scaled(X)), division.random_state
        trainer = Trainer(task, net, fit, seed=seed, groups=recipe.needs_groups, hold=True)
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

    def _method(self) -> Method:
        known = preset("table", "default").get(self.method, {}) if isinstance(self.method, str) else {}
        return method(self.method, **{**known, **_options("settings", self.settings)})

    def _net(self) -> NetSettings:
        usual = preset("table", "default")["net"]
        known = {key: value for key, value in usual.items() if key != "name"} if self.net == usual["name"] else {}
        return net_settings(self.net, **{**known, **_options("net_options", self.net_options)})

    def _fit_settings(self) -> FitSettings:
        size = {} if self.batch_size == "auto" else {"batch_size": self.batch_size}
        return FitSettings(epochs=self.epochs, optimizer="adamw", lr=self.lr, weight_decay=self.weight_decay, **size)

    def _sample_weight(self, given: ArrayLike | None, X: Floats, recipe: Method) -> Floats | None:  # noqa: N803
        if given is None:
            return None
        if not recipe.takes_weights:
            able = ", ".join(name for name, kind in METHODS.items() if kind.takes_weights)
            raise UserError(
                f"sample_weight must be left out for method={recipe.name!r}: a row of weight 2 cannot count as two in its risk; "
                f"{able} can do it."
            )
        weight: Floats = _check_sample_weight(given, X, dtype=np.float64, ensure_non_negative=True)
        return weight

    def _scaled(self, X: Floats) -> Floats:  # noqa: N803
        scaled: Floats = self.scaler_.transform(X)
        return scaled.clip(-_FARTHEST, _FARTHEST, out=scaled)

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
        self.net_ = net.cpu().double().eval()
        self.decisions_ = dict(trainer.decisions)
        self.validation_rates_ = rates_at(choice, val, self.classes_, known.groups)
        self.uncertainty_, self.weights_ = (
            self._spread(trainer.kept.get(name), known) for name in ("uncertainty", "weight")
        )

    @staticmethod
    def _spread(values: torch.Tensor | None, known: KnownRows) -> NDArray[np.float64] | None:
        """The ``values`` of training rows at their places among all given rows; NaN for other rows."""
        if values is None:
            return None
        spread = np.full(len(known.y), np.nan)
        spread[known.rows["train"]] = values.numpy()
        return spread

    @torch.no_grad()
    def _logits(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)  # noqa: N806
        parts = [
            self.net_(torch.from_numpy(self._scaled(X[begin : begin + _AT_ONCE])).double())
            for begin in range(0, len(X), _AT_ONCE)
        ]
        logits: NDArray[np.float64] = torch.cat(parts).numpy()
        return logits


def _options(name: str, given: dict[str, Any] | None) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise UserError(f"UMIXClassifier.{name} must be a dict of names and values, or None, got {given!r}.")
    return dict(given or {})


def _classes(y: NDArray[Any], weight: Floats | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The labels of rows that count, sorted, and the class of every row, [n]; any for rows that do not count."""
    check_classification_targets(y)
    counted = y if weight is None else y[weight > 0]
    classes = np.unique(counted)
    if len(classes) < 2:
        raise UserError(
            f"The labels must have at least two classes, got {len(classes)} class in {len(counted)} rows that count."
        )
    return classes, np.searchsorted(classes, y).clip(max=len(classes) - 1)
