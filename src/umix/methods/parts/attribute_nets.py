"""The group of every training row, predicted by nets that learn it from the few rows whose groups are known (Nam et al. 2022).

The nets are those of the run with another last layer. They predict the attribute, where groups are label×attribute cells, else the
group, among those that occur with the row's class. Half of the labelled rows train, the other half selects the epoch: the one whose
worst group of that half is predicted best. The rows without a group are dealt into three folds. The net of a fold trains on the
other two as unlabelled rows and predicts the fold, so every prediction is for a row that its net has not seen. Labelled rows keep
their group.

Half of the rows of a batch are labelled; the others count with the pseudo-labels that are sure enough. The risk is the mean
cross-entropy of the labelled rows plus the mean over the others of mask·CE(value, pseudo-label): the pseudo-label is the net's
likeliest value, and the mask is 1 from the threshold of its group on (``group_thresholds``).

Differs from the paper:
- thresholds are computed after every epoch, from what the net said of each row in its last training pass; no row has a pseudo-label
  in the first epoch;
- the pseudo-label is that of the same view of the row; the paper predicts it from another augmentation;
- values that no labelled row of the class has are left out of the softmax;
- a group that has enough rows takes none, not even those with probability 1, and one that lacks rows takes all that there are.

Differs from the released pseudo-labelling of PG-DRO (Ghosal and Li 2023):
- as above; there every other group than the smallest takes one row more: its threshold is the next largest probability.
"""

import abc
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from umix.core.streams import stream
from umix.core.subsets import stratified_folds, stratified_split
from umix.core.weights import one_hot
from umix.data.batch import Batch
from umix.data.groups import Groups
from umix.data.inputs import Concat
from umix.data.loader import n_batches
from umix.data.samplers import Balanced
from umix.data.task import Split
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.parts.attribute_model import Ints
from umix.methods.parts.soft_groups import SoftGroups, all_known, known_groups
from umix.methods.parts.spread_groups import LabelledRows, usable_splits
from umix.models.model import Model
from umix.settings import among, between
from umix.training.context import Context
from umix.training.evaluate import split_logits
from umix.training.objective import Objective, State
from umix.training.stage import SideStage, side_fit
from umix.training.train_result import Notes

#: The name under which the fit settings of the nets are set.
ATTRIBUTE = "attribute"
_FOLDS = 3
_DOUBTFUL = 2.0  # standard errors by which predictions must beat chance to be trusted without a warning


def masked_log_softmax(logits: Tensor, possible: Tensor) -> Tensor:
    """Logarithms of the softmax over the values that are ``possible``, bool [n, values]; −inf for the others.

    >>> masked_log_softmax(torch.zeros(1, 3), torch.tensor([[True, True, False]])).exp()
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return logits.masked_fill(~possible, -torch.inf).log_softmax(dim=1)


def group_thresholds(p: Tensor, y: Tensor, labelled: Tensor, *, threshold: float) -> Tensor:
    """The probability from which on a row of class y is taken for a row of the group (y, value), float [classes, values].

    ``p`` [n, values] are the probabilities of rows without a group and ``y`` [n] their classes, ``labelled`` [classes, values]
    counts the rows whose group is known. The group with the fewest labelled rows has ``threshold``. With the rows that reach it, it
    has N* rows. Every other group takes its surest rows until it has N* rows too: its threshold is the (N* − labelled)-th largest
    probability, or the smallest if there are not so many; rows that are equally sure pass together. It is ∞ for a
    group that has N* rows already, and for a class and value without labelled rows.

    >>> p = torch.tensor([[0.99, 0.01], [0.97, 0.03], [0.3, 0.7], [0.2, 0.8], [0.1, 0.9]])
    >>> group_thresholds(p, torch.zeros(5).long(), torch.tensor([[1, 2]]), threshold=0.95)  # N* = 3, so one row of the second
    tensor([[0.9500, 0.9000]])
    """
    found = torch.full(labelled.shape, torch.inf, dtype=p.dtype, device=p.device)
    present = labelled > 0
    if not bool(present.any()):
        return found
    n_values = labelled.shape[1]
    fewest = int(labelled.masked_fill(~present, int(labelled.max()) + 1).argmin())
    label, value = divmod(fewest, n_values)
    wanted = int(labelled[label, value]) + int((p[y == label, value] >= threshold).sum())
    for label, value in present.nonzero().tolist():
        scores = p[y == label, value]
        taken = min(wanted - int(labelled[label, value]), len(scores))
        if taken > 0:
            found[label, value] = scores.topk(taken).values[-1]
    found.view(-1)[fewest] = threshold
    return found


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class AttributeRisk(Objective):
    """Cross-entropy of labelled rows, plus that of other rows with the pseudo-labels that are sure enough.

    ``target`` [n] is the value of each training row, -1 where it is not known. ``labelled`` [classes, values] counts the labelled
    rows; values that it does not count are not predicted. ``steps`` are those of an epoch. The state has what the net last said of
    each row, ``p`` [n, values], -1 before its first visit, and the thresholds [classes, values] of the current epoch.
    """

    y: Tensor
    target: Tensor
    labelled: Tensor
    threshold: float
    steps: int

    def init(self, n_groups: int) -> State:
        return {
            "p": torch.full((len(self.y), self.labelled.shape[1]), -1.0),
            "thresholds": torch.full(self.labelled.shape, torch.inf),
        }

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        if batch.step and batch.step % self.steps == 0:
            state = {**state, "thresholds": self._thresholds(state["p"])}
        log_p = masked_log_softmax(net(batch.x), self.labelled[batch.y] > 0)
        p = log_p.detach().exp()
        sure, guess = p.max(dim=1)
        target = self.target.index_select(0, batch.index)
        known = target >= 0
        taken = ~known & (sure >= state["thresholds"][batch.y, guess])
        losses = -log_p.gather(1, torch.where(known, target, guess)[:, None]).squeeze(1)
        supervised = (losses * known).sum() / known.sum().clamp_min(1)
        by_itself = (losses * taken).sum() / (~known).sum().clamp_min(1)
        return supervised + by_itself, {**state, "p": state["p"].index_copy(0, batch.index, p.to(state["p"]))}

    def _thresholds(self, p: Tensor) -> Tensor:
        """The thresholds by what the net said of the rows without a group that it has visited."""
        seen = (self.target < 0) & (p[:, 0] >= 0)
        return group_thresholds(p[seen], self.y[seen], self.labelled, threshold=self.threshold)


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

    def observe(self, net: Model, epoch: int) -> None:
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

    def _predicted(self, net: Model, split: Split) -> Tensor:
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


def predicted_groups(context: Context, *, user: str, epochs: int, threshold: float) -> SoftGroups:
    """P(group | x, y) of every training row; 1 for a group that is known.

    It trains three nets for so many ``epochs``. The notes say how well they tell groups apart. It is refused where that is not
    better than chance. ``user`` is the method that error messages name.
    """
    train = context.task.splits["train"]
    labelled = LabelledRows.of(context, user)
    labelled.require_two_groups()
    new = labelled.to_estimate(train, train.some_groups.cpu() if "train" in usable_splits(context) else None)
    training, held = stratified_split(labelled.group, share=0.5, rng=stream(context.seed, ATTRIBUTE, "half"))
    known = _examples(context, labelled, new.blank)
    fold = stratified_folds(new.y, folds=_FOLDS, rng=stream(context.seed, ATTRIBUTE, "folds"))
    content, hits = _content(context, labelled, threshold), []
    for number in np.unique(fold):
        stage = SideStage(f"{ATTRIBUTE}-{number}", epochs, content, settings=ATTRIBUTE)
        inside = fold == number
        seen, unseen = (context.splits["train"].rows(_on(context, new.rows[part])) for part in (~inside, inside))
        selected = _fold_predictions(context, stage, known.rows(training), known.rows(held), seen, unseen, threshold)
        new.put(selected.p, inside)
        hits.append(selected.hits.numpy())
    return SoftGroups(new.p, notes=_quality(labelled, np.mean(hits, axis=0), held, len(new.rows)))


def _fold_predictions(
    context: Context,
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
    labelled = torch.zeros(context.task.n_classes, int(known.t.max()) + 1, dtype=torch.int64)
    labelled.index_put_((known.split.y.cpu(), known.t), torch.ones_like(known.t), accumulate=True)
    settings = stage.fit_settings(context)
    objective = AttributeRisk(
        y=split.y,
        target=target.to(context.device),
        labelled=labelled.to(context.device),
        threshold=threshold,
        steps=n_batches(len(split), settings.batch_size),
    )
    observer = SelectedPredictions(held.split, held.t, held.group, fold, labelled > 0, batch_size=settings.batch_size)
    side_fit(
        context,
        stage,
        objective,
        sampler=Balanced((target >= 0).long()),
        train=split,
        n_classes=labelled.shape[1],
        observer=observer,
    )
    return observer


def _examples(context: Context, labelled: LabelledRows, blank: Ints) -> _Examples:
    """The labelled rows with their inputs.

    Inputs that do not vary over the training rows ``blank``, those without a group, get their value: above all a group column that
    is an input itself, where labelled rows have the answer. One row alone does not show what varies.
    """
    split = _joined([context.splits[name].rows(_on(context, rows)) for name, rows in labelled.rows.items()])
    x = context.splits["train"].x
    if isinstance(split.x, Tensor) and isinstance(x, Tensor) and x.dim() == 2 and len(blank) > 1:
        there = x[_on(context, blank)]
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
    x = torch.cat(tensors) if tensors else Concat(lazy)
    return replace(parts[-1], x=x, y=y, groups=groups, training_groups=None, weight=None, origin=None)


def _on(context: Context, rows: Ints) -> Tensor:
    """Row numbers as a tensor on the context's device."""
    return torch.from_numpy(rows).to(context.device)


def _content(context: Context, labelled: LabelledRows, threshold: float) -> str:
    """Everything besides the rows that are trained on that decides the predictions of the nets."""
    digest = hashlib.sha256(f"{labelled.counts.shape}{threshold}".encode())
    for name, rows in labelled.rows.items():
        digest.update(context.task.splits[name].fingerprint.encode() + rows.tobytes())
    digest.update(context.task.splits["train"].fingerprint.encode() + labelled.t.tobytes() + labelled.group.tobytes())
    return digest.hexdigest()


def _quality(labelled: LabelledRows, hits: np.ndarray, held: Ints, n_new: int) -> Notes:
    """How well groups are told apart; raises where that is not better than chance.

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
        f"the groups of {n_new:,} training rows are guessed by nets from {n_known:,} known ones, with {100 * rate:.0f} % accuracy "
        f"on {len(held):,} held-out rows, averaged over groups (by chance: {100 * chance:.0f} %)"
    )
    if not rate - chance > error:
        raise UserError(
            f"{labelled.user} must tell the groups of a class apart, but what its nets learn from {n_known:,} known rows is no "
            f"better than chance: the group is right for {rate:.1%} of held-out rows on average over groups, {chance:.1%} by "
            f"chance, standard error {error:.1%}; fill in the groups of more rows, or take a method that needs none (umix methods)."
        )
    doubtful = rate - chance < _DOUBTFUL * error
    warning = f"The groups of training rows are guessed hardly better than by chance: {words}."
    scores = {"accuracy": round(rate, 4), "chance": round(chance, 4)}
    choices = {"spread": {"known": n_known, "estimated": n_new, **scores, "words": words}}
    return Notes(choices=choices, warnings=(warning,) if doubtful else ())


class TrainsWithFewGroups(Method, abc.ABC):
    """A method that needs the groups of a few rows of validation or training, and predicts those of the others."""

    needs_some_groups: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (ATTRIBUTE,)

    step_size: Annotated[float, between(0.001, 0.1, log=True)] = Field(
        0.01, ge=0, description="how fast the group weights follow the risks, as in GroupDRO"
    )
    adjustment: Annotated[float, among(0.0, 1.0, 2.0, 4.0)] = Field(
        0.0, ge=0, description="C: groups of n examples count C/sqrt(n) worse than they are"
    )
    attribute_epochs: Annotated[int, among(5, 10, 20)] = Field(
        5, ge=1, description="epochs of the nets that predict groups; attribute.epochs overrides it"
    )
    threshold: Annotated[float, among(0.8, 0.95)] = Field(
        0.95,
        gt=0,
        description="how sure these nets must be of a row of the rarest group to learn from it; above 1: never",
    )

    def known(self, context: Context) -> SoftGroups | None:
        """The groups of the training rows if all of them are known and may be used, with a note of that."""
        if not all_known(context):
            return None
        nothing = {"words": "the groups of all training rows are known: none is guessed"}
        return replace(known_groups(context), notes=Notes(choices={"spread": nothing}))

    def by_nets(self, context: Context) -> SoftGroups:
        """P(group | x, y) of every training row by three nets."""
        return predicted_groups(context, user=self.name, epochs=self.attribute_epochs, threshold=self.threshold)
