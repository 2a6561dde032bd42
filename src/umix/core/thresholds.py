"""Decisions: a bias is added to every class's logit before the largest one is predicted; for two classes, a threshold.

A net that has seen few examples of a class predicts it rarely. Where missing it is the worse mistake, no new training is needed
to predict it more often: a bias for the class is enough. Selection chooses the bias on validation together with the epoch, from
the candidates here; plain argmax is the first of them.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from umix.core.calibration import Calibration

Floats = NDArray[np.float64]
Array = NDArray[Any]

_THRESHOLDS = 20  # on each side of argmax
_WIDEST = 3.0  # asinh of the largest log-odds: close to argmax they are dense, far from it wide apart
_TEMPERS = (0.25, 0.5, 0.75, 1.0, 1.5)  # how much of the prior -log(share) is taken away
_BUMPS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0)  # of one class alone
_MOST_BUMPED = 10  # classes up to which each is tried alone


def candidate_biases(class_sizes: ArrayLike) -> Floats:
    """The biases to choose from, [thresholds, classes], smallest first; the first is argmax.

    Their size is the most that they change the difference of two logits by. For two classes these are thresholds of the log-odds,
    whatever the classes' sizes. For more classes the prior is taken away in part or whole (post-hoc logit adjustment, Menon et al.
    2021), and up to ten classes are tried alone. ``class_sizes`` [classes] are those of the training split.

    >>> candidate_biases([90, 10])[:3].round(2).tolist()
    [[0.0, 0.0], [0.0, -0.15], [0.0, 0.15]]
    >>> candidate_biases([8, 1, 1])[[1, 7]].round(2).tolist()
    [[0.5, 0.0, 0.0], [-0.35, 0.17, 0.17]]
    """
    sizes = np.asarray(class_sizes, dtype=np.float64)
    k = len(sizes)
    if k == 2:
        steps = [math.sinh(_WIDEST * step / _THRESHOLDS) for step in range(1, _THRESHOLDS + 1)]
        return np.array([[0.0, 0.0], *([0.0, sign * step] for step in steps for sign in (-1, 1))])
    rows = [np.zeros(k)]
    prior = np.log(np.maximum(sizes, 1) / max(1.0, sizes.sum()))
    if k > 2 and np.ptp(prior) > 0:
        rows += [temper * (prior.mean() - prior) for temper in _TEMPERS]
    if 2 < k <= _MOST_BUMPED:
        rows += [size * np.eye(k)[c] for size in _BUMPS for c in range(k)]
    return np.array(sorted(rows, key=np.ptp))


def predicted_classes(logits: Tensor, bias: Tensor) -> Tensor:
    """The predicted class of every example, int64 [n]: the largest of ``logits`` [n, classes] + ``bias`` [classes].

    >>> predicted_classes(torch.tensor([[0.0, -0.1], [0.0, -0.3]]), torch.tensor([0.0, 0.2])).tolist()
    [1, 0]
    """
    if logits.shape[1] == 2:  # compared as ``hits_by_threshold`` does, to the last bit
        return (logits[:, 1] - logits[:, 0] > bias[0] - bias[1]).long()
    return (logits + bias.to(logits)).argmax(dim=1)


def calibrated_probabilities(logits: Tensor, calibration: Calibration) -> Tensor:
    """The probability of every class, [n, classes], in the precision of ``logits`` [n, classes].

    >>> calibrated_probabilities(torch.tensor([[0.0, 0.5]]), Calibration(2.0, (0.0, -1.0))).tolist()
    [[0.5, 0.5]]
    """
    return (calibration.scale * logits + logits.new_tensor(calibration.biases)).softmax(dim=1)


def hits_by_threshold(
    logits: Tensor, y: Tensor, pairs: tuple[Tensor, Tensor], biases: Tensor, *, n_groups: int
) -> Tensor:
    """Hits of every threshold, int64 [thresholds, groups + classes]: by group, then by class.

    ``pairs`` holds the row and the group of every membership. For two classes a histogram of margins per group and class gives the
    hits of all thresholds at once. Logits of several nets, [nets, n, classes], give [nets, thresholds, groups + classes].

    >>> logits, y = torch.tensor([[0.0, 1.0], [0.0, -1.0], [0.0, 2.0]]), torch.tensor([1, 1, 0])
    >>> none = (torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    >>> hits_by_threshold(logits, y, none, torch.tensor([[0.0, 0.0], [0.0, 1.5]]), n_groups=0).tolist()
    [[0, 1], [0, 2]]
    """
    if logits.dim() == 2:
        return hits_by_threshold(logits[None], y, pairs, biases, n_groups=n_groups)[0]
    n_classes = logits.shape[2]
    # On the host: for a few numbers per row NumPy is faster than torch, and ties are broken alike.
    host, labels, of_rows, groups = (tensor.cpu().numpy() for tensor in (logits, y, *pairs))
    of_rows = np.concatenate([of_rows, np.arange(len(labels))])  # every example is also in its class
    units = np.concatenate([groups, n_groups + labels])
    count = _binary_hits if n_classes == 2 else _hits_one_by_one
    hits = count(host, labels, of_rows, units, biases.cpu().numpy(), n_groups + n_classes)
    return torch.from_numpy(hits).to(y.device)


def _binary_hits(logits: Array, y: Array, rows: Array, units: Array, biases: Array, n_units: int) -> Array:
    """Hits of every net and threshold, [nets, thresholds, units], from one histogram of margins."""
    limits = (biases[:, 0] - biases[:, 1]).astype(logits.dtype)
    order = np.argsort(limits, kind="stable")
    with np.errstate(invalid="ignore"):
        margin = logits[..., 1] - logits[..., 0]
    margin = np.where(np.isnan(margin), -np.inf, margin)  # what is not a number exceeds no limit
    above = np.searchsorted(limits[order], margin)  # how many limits lie strictly below the margin, [nets, n]
    nets, width = len(logits), len(limits) + 1
    of_net = np.arange(nets)[:, None] * (n_units * 2 * width)
    cell = of_net + (units * 2 + y[rows]) * width + above[:, rows]
    histogram = np.bincount(cell.ravel(), minlength=nets * n_units * 2 * width).reshape(nets, n_units, 2, width)
    not_above = histogram.cumsum(axis=3)[..., :-1]  # [nets, units, 2, limits]: margins that do not exceed each limit
    hits = not_above[:, :, 0] + histogram[:, :, 1].sum(axis=2, keepdims=True) - not_above[:, :, 1]
    found = np.empty((nets, len(limits), n_units), dtype=np.int64)
    found[:, order] = hits.swapaxes(1, 2)
    return found


def _hits_one_by_one(logits: Array, y: Array, rows: Array, units: Array, biases: Array, n_units: int) -> Array:
    """Hits of every net and threshold, [nets, thresholds, units], deciding each example anew."""
    hits = np.empty((len(logits), len(biases), n_units), dtype=np.int64)
    for threshold, bias in enumerate(biases.astype(logits.dtype)):
        correct = (logits + bias).argmax(axis=2) == y
        hits[:, threshold] = [np.bincount(units[of_net[rows]], minlength=n_units) for of_net in correct]
    return hits
