"""The model that tells a group from an example: cross-fitted, calibrated logistic regression.

It estimates P(t | z, y), where z are inputs or features, y is the class and t is the attribute, or whatever else tells the groups
of a class apart. Two kinds are tried, one regression for all classes with the class as further inputs and one regression for every
class, each with several strengths of the penalty. Every candidate is fitted to all folds but one and predicts that one. A
temperature and a bias per class and value are fitted to these predictions (bias-corrected temperature scaling), and the candidate
with the lowest log loss wins. New rows get the mean logits of the fits of all folds, which are those that were calibrated.

An attribute that is known in one class only says nothing about how it looks in the others, and a model that knows the class would
give it no probability there. Then one regression for all rows is fitted that does not know the class: the attribute is taken to
look alike in all classes.

The known rows may have other shares of the values than the new rows, for example where validation is balanced and training is not.
Calibrated predictions of new rows have the known shares on average unless this is so. Where they differ by more than chance, the
shares among the new rows are estimated by expectation maximisation and the predictions follow them (Saerens et al. 2002; with this
calibration: Alexandari et al. 2020). Elsewhere they stay: where values are hard to tell, the estimate would be worse than none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from umix.core.quiet_fit import quiet_fit

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_FOLDS = 5
_STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # C of the regression: small is a strong penalty
_ITERATIONS = 100
_CLASS_SCALE = 5.0  # of the class among the inputs: the penalty should hardly pull the shares of the classes together
_RIDGE = 1e-5  # penalty of the calibration: values that are told apart without error would need infinite logits
_SURE = 3.0  # standard errors by which predicted shares must differ from the known ones to be believed
_EM_ROUNDS = 1000
_STEADY = 1e-6  # change of a share at which expectation maximisation ends


@final
@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows whose value is known: inputs ``z`` [n, width], class ``y`` [n] and value ``t`` [n], both counted from 0.

    ``any_class``: rows of any class may have any of the values, also where no row here shows it.
    """

    z: Floats
    y: Ints
    t: Ints
    any_class: bool = False

    def counts(self) -> Floats:
        """How many rows have each class and value, [classes, values]."""
        counts = np.zeros((self.y.max() + 1, self.t.max() + 1))
        np.add.at(counts, (self.y, self.t), 1)
        return counts


@final
@dataclass(frozen=True)
class Scores:
    """How well values are predicted for rows that the predicting fit has not seen.

    ``log_loss`` is in nats per row, ``chance`` that of the known shares of the values in each class, and ``error`` the standard
    error of their difference. ``accuracy`` is the share of rows whose value is the most probable one, ``usual`` the share of rows
    that have the commonest value of their class.
    """

    log_loss: float
    chance: float
    error: float
    accuracy: float
    usual: float

    @property
    def gain(self) -> float:
        """How much lower the log loss is than by chance."""
        return self.chance - self.log_loss

    def as_json(self) -> dict[str, float]:
        """The scores that a run keeps."""
        kept = {"log_loss": self.log_loss, "chance": self.chance, "accuracy": self.accuracy, "usual": self.usual}
        return {name: round(value, 4) for name, value in kept.items()}


@final
@dataclass(frozen=True, eq=False)
class AttributeModel:
    """A fitted model: a linear head for every class, calibrated, and the ``scores`` of its kind on held-out rows."""

    head: Floats  # [classes, values, width + 1], the last is the bias
    counts: Floats  # [classes, values], of known rows
    spread: Floats  # [classes, values], standard deviations of the predictions of known rows
    scores: Scores

    def predict(self, z: Floats, y: Ints) -> Floats:
        """P(t | z, y) of new rows, [n, values]; 0 for values that the row's class cannot have.

        Every class of them must have known rows.
        """
        shares = np.exp(_log_shares(_logits(self.head, z, y), self.counts[y] > 0))
        for label in np.unique(y):
            inside = y == label
            shares[inside] = self._shifted(shares[inside], label)
        return shares

    def _shifted(self, p: Floats, label: int) -> Floats:
        """Predictions of rows of one class, for the shares that the values have among these rows."""
        shares = self.counts[label] / self.counts[label].sum()
        error = self.spread[label] * np.sqrt(1 / self.counts[label].sum() + 1 / len(p))
        return em_shares(p, shares) if (np.abs(p.mean(0) - shares) > _SURE * error).any() else p


def em_shares(p: Floats, known: Floats) -> Floats:
    """Predictions ``p`` [n, values], made for the shares ``known`` [values], for the most likely shares of these rows instead.

    >>> em_shares(np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]), np.array([0.5, 0.5])).mean(0).round(2)
    array([0.81, 0.19])
    """
    there = known > 0
    ratio = np.where(there, p / np.where(there, known, 1.0), 0.0)
    share, updated = known, p
    for _ in range(_EM_ROUNDS):
        updated = ratio * share
        updated /= updated.sum(1, keepdims=True)
        before, share = share, updated.mean(0)
        if np.abs(share - before).max() < _STEADY:
            break
    return updated


def fit_attribute_model(known: KnownRows, rng: np.random.Generator) -> AttributeModel:
    """The model with the lowest log loss on rows that were held out, calibrated on them.

    Folds are stratified by class and value, one of which must have two rows. The only row of a class and value is in every fit and
    in no score. For the scores, each fold is also calibrated by the others.
    """
    with threadpool_limits(1):  # sums must not depend on the number of threads, and these are too small to share
        return _best_model(known, rng)


def _best_model(known: KnownRows, rng: np.random.Generator) -> AttributeModel:
    counts = known.counts()
    if known.any_class and (counts[:, counts.any(axis=0)] == 0).any():
        alike = _best_model(KnownRows(known.z, np.zeros_like(known.y), known.t), rng)
        head, shared, spread = (np.repeat(of, len(counts), axis=0) for of in (alike.head, alike.counts, alike.spread))
        usual = float((counts.argmax(1)[known.y] == known.t).mean())
        return AttributeModel(head, shared, spread, replace(alike.scores, usual=usual))
    fold = _folds(known, rng)
    held = fold >= 0
    y, t, n_values = known.y[held], known.t[held], counts.shape[1]
    best: tuple[float, Floats, Floats] | None = None  # log loss, calibrated head, logits of held-out rows
    for pooled in (True, False):
        before = np.inf
        for heads in _candidates(known, fold, pooled=pooled):
            logits = np.empty((len(fold), n_values))
            for number, head in enumerate(heads):
                logits[fold == number] = _logits(head, known.z[fold == number], known.y[fold == number])
            slope, bias = _calibration(logits[held], y, t, counts > 0)
            guess = _log_shares(slope * logits[held] + bias[y], counts[y] > 0)
            cost = float(-guess[np.arange(len(t)), t].mean())
            if cost >= before:
                break  # a weaker penalty will hardly be better again
            before = cost
            if best is None or cost < best[0]:
                head = slope * heads.mean(0)
                head[..., -1] += bias
                best = cost, head, logits[held]
    if best is None:
        raise FloatingPointError("No logistic regression of the groups has a finite log loss.")
    _, head, found = best
    guess = np.empty_like(found)
    for number in range(_FOLDS):
        in_fold = fold[held] == number
        slope, bias = _calibration(found[~in_fold], y[~in_fold], t[~in_fold], counts > 0)
        guess[in_fold] = _log_shares(slope * found[in_fold] + bias[y[in_fold]], counts[y[in_fold]] > 0)
    spread = np.array(
        [np.exp(guess[y == label]).std(0) if (y == label).any() else 0 * counts[0] for label in range(len(counts))]
    )
    return AttributeModel(head, counts, spread, _scores(guess, y, t, counts))


def _scores(guess: Floats, y: Ints, t: Ints, counts: Floats) -> Scores:
    costs = -guess[np.arange(len(t)), t]
    by_chance = np.log(counts.sum(1))[y] - np.log(counts[y, t])
    return Scores(
        log_loss=float(costs.mean()),
        chance=float(by_chance.mean()),
        error=float((costs - by_chance).std() / np.sqrt(len(costs))),
        accuracy=float((guess.argmax(1) == t).mean()),
        usual=float((counts.argmax(1)[y] == t).mean()),
    )


def _folds(known: KnownRows, rng: np.random.Generator) -> Ints:
    """The fold of every row, the rows of a class and value dealt out in turn; -1 where there is only one."""
    cell = known.y * (known.t.max() + 1) + known.t
    fold = np.full(len(cell), -1, dtype=np.int64)
    for value in np.unique(cell):
        members = rng.permutation(np.flatnonzero(cell == value))
        if len(members) > 1:
            fold[members] = (np.arange(len(members)) + rng.integers(_FOLDS)) % _FOLDS
    return fold


def _candidates(known: KnownRows, fold: Ints, *, pooled: bool) -> Iterator[Floats]:
    """Heads [folds, classes, values, width + 1] for every strength of the penalty, the strongest first."""
    (n_classes, n_values), width = known.counts().shape, known.z.shape[1]
    of_class = _CLASS_SCALE * (known.y[:, None] == np.arange(n_classes))
    inputs = np.column_stack([known.z, of_class.astype(known.z.dtype)]) if pooled else known.z
    parts: Sequence[Sequence[int]] = [range(n_classes)] if pooled else [[label] for label in range(n_classes)]
    models: dict[tuple[int, int], LogisticRegression] = {}
    for strength in _STRENGTHS:
        heads = np.zeros((_FOLDS, n_classes, n_values, width + 1))
        for number in range(_FOLDS):
            for labels in parts:
                inside = (fold != number) & np.isin(known.y, labels)
                values = np.unique(known.t[inside])
                if len(values) < 2:
                    continue  # the probability of the only value is 1 with any logits
                model = models.setdefault((number, labels[0]), _regression())
                weight, bias = _refitted(model, inputs[inside], known.t[inside], strength)
                for label in labels:
                    heads[number, label, values, :-1] = weight[:, :width]
                    heads[number, label, values, -1] = bias + (
                        _CLASS_SCALE * weight[:, width + label] if pooled else 0.0
                    )
        yield heads


def _regression() -> "LogisticRegression":
    from sklearn.linear_model import LogisticRegression  # imported here because it takes a second

    return LogisticRegression(solver="lbfgs", max_iter=_ITERATIONS, tol=1e-3, warm_start=True)


def _refitted(model: "LogisticRegression", inputs: Floats, t: Ints, strength: float) -> tuple[Floats, Floats]:
    """Weights [values, width] and biases [values] of ``model``, fitted on from where it was."""
    with quiet_fit():  # held-out rows judge the fit, converged or not
        model.set_params(C=strength).fit(inputs, t)
    weight, bias = model.coef_, model.intercept_
    if len(weight) == 1:
        return np.concatenate([-weight / 2, weight / 2]), np.concatenate([-bias / 2, bias / 2])
    return weight, bias


def _logits(head: Floats, z: Floats, y: Ints) -> Floats:
    """Logits [n, values] by the head of each row's class."""
    logits = np.empty((len(z), head.shape[1]))
    for label in np.unique(y):
        logits[y == label] = z[y == label] @ head[label, :, :-1].T + head[label, :, -1]
    return logits


def _log_shares(logits: Floats, possible: Bools) -> Floats:
    """Logarithms of the softmax over possible values, [n, values]."""
    masked = np.where(possible, logits, -np.inf)
    masked = masked - masked.max(1, keepdims=True)
    shares: Floats = masked - np.log(np.exp(masked).sum(1, keepdims=True))
    return shares


def _calibration(logits: Floats, y: Ints, t: Ints, possible: Bools) -> tuple[float, Floats]:
    """The inverse temperature and the biases [classes, values] whose predictions of ``t`` have the lowest log loss."""
    from scipy.optimize import minimize

    rows, target = np.arange(len(t)), np.zeros_like(logits)
    target[rows, t] = 1

    def cost(free: Floats) -> tuple[float, Floats]:
        slope, bias = np.exp(free[0]), free[1:].reshape(possible.shape)
        log_shares = _log_shares(slope * logits + bias[y], possible[y])
        error = (np.exp(log_shares) - target) / len(t)
        of_bias = np.zeros(possible.shape)
        np.add.at(of_bias, y, error)
        value = -log_shares[rows, t].mean() + _RIDGE * (free @ free)
        return value, np.concatenate([[slope * (error * logits).sum()], of_bias.ravel()]) + 2 * _RIDGE * free

    minimum = minimize(cost, np.zeros(1 + possible.size), jac=True, method="L-BFGS-B").x
    return float(np.exp(minimum[0])), minimum[1:].reshape(possible.shape)
