"""The group of every training row, predicted by nets that learn it from the few rows whose groups are known (Nam et al. 2022).

The nets are those of the run with another last layer. They predict the attribute, where groups are label×attribute cells, else the
group, among those that occur with the row's class. Half of the labelled rows train, the other half selects the epoch: the one whose
worst group of that half is predicted best. The rows without a group are dealt into three folds. The net of a fold trains on the
other two as unlabelled rows and predicts the fold, so every prediction is for a row that its net has not seen. Labelled rows keep
their group.

Half of the rows of a batch are labelled; the others count with the pseudo-labels that are sure enough (``attribute_risk``).

Differs from the paper:
- thresholds are computed after every epoch, from what the net said of each row in its last training pass; no row has a pseudo-label
  in the first epoch;
- the pseudo-label is that of the same view of the row; the paper predicts it from another augmentation;
- values that no labelled row of the class has are left out of the softmax;
- a group that has enough rows takes none, not even those with probability 1, and one that lacks rows takes all that there are.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.core.pseudo_groups import masked_log_softmax
from umix.core.soft_groups import one_hot
from umix.core.streams import stream
from umix.core.subsets import stratified_folds, stratified_split
from umix.data.groups import Groups
from umix.data.lazy import LazyParts
from umix.data.loader import n_batches
from umix.data.samplers import Balanced
from umix.data.task import Split
from umix.errors import UserError
from umix.methods.parts.attribute_risk import AttributeRisk
from umix.methods.parts.labelled_rows import Ints, LabelledRows, usable_splits
from umix.nets.net import Net
from umix.training.evaluate import split_logits
from umix.training.side_fit import SideStage, side_fit
from umix.training.trainer import Trainer

#: The name under which the fit settings of the nets are set.
ATTRIBUTE = "attribute"
_FOLDS = 3
_DOUBTFUL = 2.0  # standard errors by which predictions must beat chance to be trusted without a warning


@final
class SelectedPredictions:
    """The observer that keeps the predictions of the epoch whose worst group of ``held`` is predicted best.

    ``held`` are labelled rows with the values ``t`` and the groups ``group``, ``fold`` the rows to be predicted; ``possible``
    [classes, values] says which values a class has. ``hits`` [held rows] and ``p`` [fold rows, values] are those of the best epoch.
    """

    def __init__(
        self, held: Split, t: Tensor, group: Tensor, fold: Split, possible: Tensor, *, batch_size: int
    ) -> None:
        self._held, self._t, self._fold, self._possible, self._batch_size = held, t, fold, possible, batch_size
        self._member = one_hot(group, n_groups=int(group.max()) + 1)
        self._member = self._member[:, self._member.sum(0) > 0]
        self._score = (-1.0, -1.0)
        self.hits = torch.zeros(len(held))
        self.p = torch.zeros(len(fold), possible.shape[1])

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        self.hits, self.p = kept["selected hits"], kept["selected p"]
        self._score = self._scored(self.hits)

    def observe(self, net: Net, epoch: int) -> None:
        hits = (self._predicted(net, self._held).argmax(dim=1) == self._t).float()
        score = self._scored(hits)
        if score > self._score:
            self._score, self.hits, self.p = score, hits, self._predicted(net, self._fold)

    def write(self) -> None: ...

    def tensors(self) -> dict[str, Tensor]:
        return {"selected hits": self.hits, "selected p": self.p}

    def _scored(self, hits: Tensor) -> tuple[float, float]:
        """The lowest accuracy of a group, and the mean over groups, which decides between equal ones."""
        rates = hits.double() @ self._member / self._member.sum(0)
        return float(rates.min()), float(rates.mean())

    def _predicted(self, net: Net, split: Split) -> Tensor:
        if not len(split):
            return torch.zeros(0, self._possible.shape[1])
        logits = split_logits(net, split, n_classes=self._possible.shape[1], batch_size=self._batch_size)
        return masked_log_softmax(logits, self._possible[split.y.cpu()]).exp()


@final
@dataclass(frozen=True, eq=False)
class _Examples:
    """Labelled rows with their inputs: value ``t`` [n] and group [n] of each example of ``split``."""

    split: Split
    t: Tensor
    group: Tensor

    def rows(self, index: Ints) -> "_Examples":
        chosen = torch.from_numpy(index)
        return _Examples(self.split.rows(chosen.to(self.split.y.device)), self.t[chosen], self.group[chosen])


def predicted_groups(trainer: Trainer, *, user: str, epochs: int, threshold: float) -> Tensor:
    """P(group | x, y) of every training row, float64 [n, groups], on the host; 1 for a group that is known.

    It trains three nets for so many ``epochs``. How well they tell groups apart is saved as a decision of the run. It is refused
    where that is not better than chance. ``user`` is the method that error messages name.
    """
    train = trainer.task.splits["train"]
    labelled = LabelledRows.of(trainer, user)
    labelled.require_two_groups()
    new = labelled.to_estimate(train, train.some_groups.cpu() if "train" in usable_splits(trainer) else None)
    training, held = stratified_split(labelled.group, share=0.5, rng=stream(trainer.seed, ATTRIBUTE, "half"))
    known = _examples(trainer, labelled, new.blank)
    fold = stratified_folds(new.y, folds=_FOLDS, rng=stream(trainer.seed, ATTRIBUTE, "folds"))
    content, hits = _content(trainer, labelled, threshold), []
    for number in np.unique(fold):
        stage = SideStage(f"{ATTRIBUTE}-{number}", epochs, content, settings=ATTRIBUTE)
        inside = fold == number
        seen, unseen = (trainer.splits["train"].rows(_on(trainer, new.rows[part])) for part in (~inside, inside))
        selected = _fold_predictions(trainer, stage, known.rows(training), known.rows(held), seen, unseen, threshold)
        new.put(selected.p, inside)
        hits.append(selected.hits.numpy())
    _say(trainer, labelled, np.mean(hits, axis=0), held, len(new.rows))
    return new.p


def _fold_predictions(
    trainer: Trainer,
    stage: SideStage,
    known: _Examples,
    held: _Examples,
    seen: Split,
    fold: Split,
    threshold: float,
) -> SelectedPredictions:
    """The predictions for ``fold`` of a net that is trained on ``known`` and ``seen`` rows; ``held`` ones select its epoch."""
    split = _joined([known.split, seen])
    target = torch.cat([known.t, torch.full((len(seen),), -1)])
    labelled = torch.zeros(trainer.task.n_classes, int(known.t.max()) + 1, dtype=torch.int64)
    labelled.index_put_((known.split.y.cpu(), known.t), torch.ones_like(known.t), accumulate=True)
    settings = stage.fit_settings(trainer)
    objective = AttributeRisk(
        y=split.y,
        target=target.to(trainer.device),
        labelled=labelled.to(trainer.device),
        threshold=threshold,
        steps=n_batches(len(split), settings.batch_size),
    )
    observer = SelectedPredictions(held.split, held.t, held.group, fold, labelled > 0, batch_size=settings.batch_size)
    side_fit(
        trainer,
        stage,
        objective,
        sampler=Balanced((target >= 0).long()),
        train=split,
        n_classes=labelled.shape[1],
        observer=observer,
    )
    return observer


def _examples(trainer: Trainer, labelled: LabelledRows, blank: Ints) -> _Examples:
    """The labelled rows with their inputs.

    Inputs that do not vary over the training rows ``blank``, those without a group, get their value: above all a group column that
    is an input itself, where labelled rows have the answer. One row alone does not show what varies.
    """
    split = _joined([trainer.splits[name].rows(_on(trainer, rows)) for name, rows in labelled.rows.items()])
    x = trainer.splits["train"].x
    if isinstance(split.x, Tensor) and isinstance(x, Tensor) and x.dim() == 2 and len(blank) > 1:
        there = x[_on(trainer, blank)]
        same = ((there == there[0]) | (there.isnan() & there[0].isnan())).all(dim=0)
        split = replace(split, x=torch.where(same, there[0], split.x))
    return _Examples(split, torch.from_numpy(labelled.t), torch.from_numpy(labelled.group))


def _joined(parts: list[Split]) -> Split:
    """The examples of ``parts`` one after the other, without groups; they are augmented as those of the last part are."""
    tensors = [part.x for part in parts if isinstance(part.x, Tensor)]
    lazy = [part.x for part in parts if not isinstance(part.x, Tensor)]
    if tensors and lazy:
        raise TypeError("The inputs of all splits must be tensors, or none.")
    y = torch.cat([part.y for part in parts])
    groups = Groups(torch.zeros(len(y), 0, dtype=torch.bool, device=y.device), ())
    x = torch.cat(tensors) if tensors else LazyParts(lazy)
    return replace(parts[-1], x=x, y=y, groups=groups, training_groups=None, weight=None, origin=None)


def _on(trainer: Trainer, rows: Ints) -> Tensor:
    """Row numbers as a tensor on the trainer's device."""
    return torch.from_numpy(rows).to(trainer.device)


def _content(trainer: Trainer, labelled: LabelledRows, threshold: float) -> str:
    """Everything besides the rows that are trained on that decides the predictions of the nets."""
    digest = hashlib.sha256(f"{labelled.counts.shape}{threshold}".encode())
    for name, rows in labelled.rows.items():
        digest.update(trainer.task.splits[name].fingerprint.encode() + rows.tobytes())
    digest.update(trainer.task.splits["train"].fingerprint.encode() + labelled.t.tobytes() + labelled.group.tobytes())
    return digest.hexdigest()


def _say(trainer: Trainer, labelled: LabelledRows, hits: np.ndarray, held: Ints, n_new: int) -> None:
    """Save how well groups are told apart as a decision of the run; raise where that is not better than chance.

    ``hits`` is how many of the nets predict each of the ``held`` labelled rows rightly, as a share.
    """
    group, y = labelled.group[held], labelled.y[held]
    several = (labelled.counts > 0).sum(1)[y] > 1  # the others' group is known by their class
    groups = np.unique(group[several])
    rates = np.array([hits[group == g].mean() for g in groups])
    chance = float(np.mean([1 / (labelled.counts > 0).sum(1)[y[group == g]].mean() for g in groups]))
    rate = float(rates.mean())
    spread = np.sum([r * (1 - r) / np.count_nonzero(group == g) for r, g in zip(rates, groups, strict=True)])
    error = float(np.sqrt(spread)) / len(groups)
    n_known = len(labelled.group)
    words = (
        f"the groups of {n_new:,} training rows are predicted by nets that learned them from {n_known:,} known ones; of "
        f"{len(held):,} of these that were held out, the predicted group is right for {rate:.1%} on average over groups "
        f"({chance:.1%} by chance)"
    )
    if not rate - chance > error:
        raise UserError(
            f"{labelled.user} must tell the groups of a class apart, but what its nets learn from {n_known:,} known rows is no "
            f"better than chance: the group is right for {rate:.1%} of held-out rows on average over groups, {chance:.1%} by "
            f"chance, standard error {error:.1%}; fill in the groups of more rows, or take a method that needs none (umix methods)."
        )
    if rate - chance < _DOUBTFUL * error:
        trainer.warn(f"The groups of training rows are hardly told apart better than by chance: {words}.")
    scores = {"accuracy": round(rate, 4), "chance": round(chance, 4)}
    trainer.decisions["spread"] = {"known": n_known, "estimated": n_new, **scores, "words": words}
