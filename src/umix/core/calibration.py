"""Calibration: probabilities that agree with how often a class occurs, fitted to the logits of validation examples.

Weights of examples and groups change which probabilities a model learns. A scale of the logits (the inverse of a temperature) and a
bias for each class turn them back (Platt 1999; Guo et al. 2017; with biases Alexandari et al. 2020). Of two classes the map is
increasing, so a threshold on the logits is a threshold on the calibrated probabilities, and no decision changes.
"""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

#: Validation examples from which on probabilities are calibrated: in all, and of every class.
MIN_EXAMPLES, MIN_CLASS = 100, 10
_SCALES = (0.01, 100.0)  # the smallest and the largest; above 0, so that the order of examples stays
_FURTHEST = 20.0  # log-odds of a threshold, which is neither 0 nor 1


@final
@dataclass(frozen=True)
class Calibration:
    """Calibrated logits are ``scale`` · logits + ``biases`` [classes]."""

    scale: float
    biases: tuple[float, ...]

    @classmethod
    def none(cls, n_classes: int) -> Self:
        """The calibration that leaves probabilities as they are."""
        return cls(1.0, (0.0,) * n_classes)

    def uncalibrated(self, p: ArrayLike) -> Floats:
        """The probabilities [n, classes] that calibration has made ``p`` [n, classes] of.

        >>> Calibration(2.0, (0.0, -1.0)).uncalibrated([[0.5, 0.5]]).round(3)
        array([[0.378, 0.622]])
        """
        from scipy.special import softmax

        with np.errstate(divide="ignore"):
            logits = (np.log(np.asarray(p, dtype=np.float64)) - self.biases) / self.scale
        probabilities: Floats = softmax(logits, axis=1)
        return probabilities

    def log_offsets(self, biases: ArrayLike) -> Floats:
        """What is added to the logarithms of calibrated probabilities to decide as ``biases`` [classes] of the logits do."""
        return self.scale * np.asarray(biases, dtype=np.float64) - self.biases

    def threshold(self, biases: ArrayLike) -> float:
        """The calibrated probability of the second of two classes above which ``biases`` [2] of the logits decide for it.

        >>> Calibration.none(2).threshold([0.0, 0.0]), round(Calibration(2.0, (0.0, -1.0)).threshold([0.0, 0.0]), 3)
        (0.5, 0.269)
        """
        first, second = self.log_offsets(biases)
        return float(1 / (1 + np.exp(np.clip(second - first, -_FURTHEST, _FURTHEST))))


def enough_examples(class_sizes: ArrayLike) -> bool:
    """Whether validation examples of these classes, [classes], are enough to calibrate by.

    >>> enough_examples([90, 10]), enough_examples([91, 9]), enough_examples([45, 45])
    (True, False, False)
    """
    sizes = np.asarray(class_sizes)
    return bool(sizes.sum() >= MIN_EXAMPLES and sizes.min(initial=MIN_CLASS) >= MIN_CLASS)


def fitted_calibration(logits: NDArray[Any], y: NDArray[Any]) -> Calibration | None:
    """The calibration with the lowest log loss on examples with these ``logits`` [n, classes] and labels ``y`` [n].

    Labels are smoothed as Platt does: an example of a class with n examples counts as (n + 1) / (n + classes) of it and as
    1 / (n + classes) of each other class. Of two classes this is scikit-learn's ``CalibratedClassifierCV(method="sigmoid")`` on the
    difference of the logits. None where examples are too few or a logit is not finite.
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    z = np.asarray(logits, dtype=np.float64)
    n, k = z.shape
    sizes = np.bincount(y, minlength=k)
    if k < 2 or not enough_examples(sizes) or not np.isfinite(z).all():
        return None
    target = (1 / (sizes + k))[y][:, None] * (1 + np.eye(k)[y] * sizes[:, None][y])
    z = z - z.mean(axis=1, keepdims=True)

    def log_loss(free: Floats) -> tuple[float, Floats]:
        log_p = log_softmax(free[0] * z + free[1:], axis=1)
        error = np.exp(log_p) - target
        return -(target * log_p).sum() / n, np.concatenate([[(error * z).sum()], error.sum(axis=0)]) / n

    start = np.concatenate([[1.0], np.zeros(k)])
    options = {"ftol": 1e-12, "gtol": 1e-7, "maxiter": 200}
    bounds = [_SCALES, *[(None, None)] * k]
    best = minimize(log_loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return Calibration(float(best[0]), tuple((best[1:] - best[1:].mean()).tolist()))
