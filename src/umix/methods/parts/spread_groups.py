"""Known groups spread: the group of every training row, estimated from the few rows whose groups are known.

Rows of validation may be used unless groups are only reported, rows of training where groups may train. The estimate is
P(group | x, y) of ``attribute_model``: of the attribute where groups are label×attribute cells, else of the group itself, among
those that occur with the row's class. Rows whose group is known keep it.

The model's inputs are the examples themselves where they are vectors of numbers. Other examples (images, token ids) are represented
by the features of an ERM net, which is trained first and shared with other runs. PG-DRO (Ghosal and Li 2023) and SSA (Nam et al.
2022) train a net for the attribute instead.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from umix.core.coded_columns import one_hot_columns
from umix.core.soft_groups import one_hot
from umix.core.streams import stream
from umix.data.groups import Groups
from umix.data.lazy import Sliced
from umix.data.task import Split
from umix.errors import Setting, UserError
from umix.methods.parts.attribute_model import AttributeModel, Floats, Ints, KnownRows, Scores, fit_attribute_model
from umix.training.stage import ErmStage
from umix.training.trainer import Trainer

_MOST = 20_000  # known rows that the model is fitted to
_DOUBTFUL = 2.0  # standard errors by which predictions must beat chance to be trusted without a warning
_CLEAR = 0.3  # share of chance's log loss that predictions must save for drawn validation groups to decide alone
_CONSTANT = 1e-6  # range, in standard deviations, up to which an input does not vary
_FARTHEST = 10.0  # deviations at which numbers of a table are cut
_MANY = 0.1  # share of validation rows without a group from which on they are drawn


def spread_groups(trainer: Trainer) -> Tensor:
    """P(group | x, y) of every training example, float64 [n, groups], on the host; 1 for a group that is known.

    How well groups can be told apart is saved as a decision of the run. It is refused where that is not better than chance.
    """
    own = trainer.task.splits["train"].some_groups.cpu() if "train" in _usable_splits(trainer) else None
    p, scores, n_known, n_new = _estimates(trainer, "train", own, _inputs(trainer, ("train", "val")))
    words = _words(scores, n_known, n_new, "training")
    trainer.decisions["spread"] = {"known": n_known, "estimated": n_new, **scores.as_json(), "words": words}
    if scores.gain < _DOUBTFUL * scores.error:
        trainer.warn(f"The groups of training rows are hardly told apart better than by chance: {words}.")
    return p


def fill_validation_groups(trainer: Trainer) -> None:
    """Give validation rows without a group one that is drawn from an estimate, so that more than the few known rows can choose.

    The trainer's own validation split gets them; the task keeps what is known. A group's rate over known and drawn rows is, in
    expectation, that over all rows weighted by P(group | x, y). Nothing is drawn where groups may not choose, where nearly all are
    known, where they overlap, where examples are no vectors of numbers (the estimate would need a net first), or where groups are
    told apart no better than by chance. Where they are told apart only a little, drawn groups do not decide alone
    (``Judging.groups_decide``).
    """
    val = trainer.task.splits["val"]
    if trainer.use_groups == "test" or not val.groups.names or val.training_groups is not None or val.groups.overlap:
        return
    known = val.groups.codes.cpu()
    blank = int((known < 0).sum())
    if blank < _MANY * len(known) or blank == len(known) or _vectors(val) is None:
        return
    try:
        p, scores, n_known, n_new = _estimates(trainer, "val", known, _inputs(trainer, ("train", "val")))
    except UserError as error:
        trainer.decisions["validation groups"] = {"words": f"The groups of validation rows are not estimated: {error}"}
        return
    rng = stream(trainer.seed, "spread", "validation")
    drawn = (torch.from_numpy(rng.random((len(p), 1))) >= p.cumsum(1)).sum(1).clamp(max=p.shape[1] - 1)
    ids = torch.where(known >= 0, known, drawn)
    words = _words(scores, n_known, n_new, "validation")
    trainer.decisions["validation groups"] = {"known": n_known, "estimated": n_new, **scores.as_json(), "words": words}
    groups = Groups.from_ids(ids, val.groups.names)
    groups = replace(groups, columns=val.groups.columns, parts=val.groups.parts).to(trainer.device)
    trainer.splits = {**trainer.splits, "val": replace(trainer.splits["val"], groups=groups)}
    trainer.judging = replace(trainer.judging, doubtful=scores.gain < _CLEAR * scores.chance)


def _estimates(
    trainer: Trainer, split: str, own: Tensor | None, z: Mapping[str, Floats]
) -> tuple[Tensor, Scores, int, int]:
    """P(group | x, y) of every example of ``split`` [n, groups], its scores, and how many rows were known and estimated.

    ``own`` [n] are the groups of ``split`` that are known, -1 where not; None: none may be used. ``z`` represents the examples.
    """
    task = trainer.task
    target, n_groups = task.splits[split], len(task.training_groups)
    usable = {name: task.splits[name] for name in _usable_splits(trainer)}
    rows = {name: np.flatnonzero(part.some_groups.cpu().numpy() >= 0) for name, part in usable.items()}
    y, t, group = _labels_of(usable, rows)
    _require_two_groups(trainer, y, group)
    group_of = np.full((task.n_classes, t.max() + 1), -1)  # of a class and value; -1 where no known row has them
    group_of[y, t] = group
    p = one_hot(torch.full((len(target),), -1) if own is None else own, n_groups=n_groups)
    new = np.flatnonzero(p.sum(1).numpy() == 0)
    new_y = target.y.cpu().numpy()[new]
    _require_classes(trainer, y, new_y)
    told = _telling(z[split][new])
    known = KnownRows(np.concatenate([z[name][rows[name]][:, told] for name in rows]), y, t)
    with threadpool_limits(1):  # sums must not depend on the number of threads
        model, shares = _estimate(known, z[split][new][:, told], new_y, seed=trainer.seed)
    _require_better_than_chance(model.scores, len(y))
    values, columns = np.nonzero(group_of[new_y] >= 0)
    p[new[values], group_of[new_y[values], columns]] = torch.from_numpy(shares[values, columns])
    return p, model.scores, len(y), len(new)


def _telling(new: Floats) -> Ints:
    """The inputs that vary over the rows to be estimated.

    The others can tell nothing about them. Above all this leaves out a group column that is an input itself: known rows have the
    answer there, and the rows to be estimated have a blank.
    """
    varies = np.ptp(new, axis=0) > _CONSTANT if len(new) else np.ones(new.shape[1], dtype=bool)
    return np.flatnonzero(varies)


def _usable_splits(trainer: Trainer) -> tuple[str, ...]:
    """The splits whose known groups may be used in training."""
    return {"test": (), "val": ("val",), "train": ("val", "train")}[trainer.use_groups]


def _labels_of(splits: Mapping[str, Split], rows: Mapping[str, Ints]) -> tuple[Ints, Ints, Ints]:
    """Class, value and group of the known rows, [n] each.

    The value is the attribute, where it and the class decide the group. Else it is the group.
    """

    def joined(of: Mapping[str, Tensor]) -> Ints:
        found: Ints = np.concatenate([np.zeros(0, np.int64), *(of[name].cpu().numpy()[rows[name]] for name in rows)])
        return found

    y, group = (
        joined({name: split.y for name, split in splits.items()}),
        joined({name: s.some_groups for name, s in splits.items()}),
    )
    attributes = {name: split.attribute for name, split in splits.items() if split.attribute is not None}
    if len(attributes) == len(splits) > 0:
        attribute = joined(attributes)
        cells = len(np.unique(np.stack([y, attribute]), axis=1).T)
        if attribute.min(initial=0) >= 0 and cells == len(np.unique(np.stack([y, attribute, group]), axis=1).T):
            return y, attribute, group
    return y, group, group


def _inputs(trainer: Trainer, names: tuple[str, ...]) -> dict[str, Floats]:
    """What represents the examples of these splits, [n, width] each, standardised with the training split's statistics."""
    splits, categories = trainer.task.splits, trainer.task.categories
    found = {name: x for name in names if (x := _vectors(splits[name])) is not None}
    if categories:
        middle = found["train"].nanmean(0).nan_to_num(0.0)
        offset = middle.where(torch.tensor(categories) == 0, 0.0)  # a gap becomes the mean
        found = {name: one_hot_columns(x - offset, categories) for name, x in found.items()}
    if len(found) < len(names):
        net = trainer.reference(ErmStage("reference", trainer.settings.epochs))
        found = {name: trainer.features(net, name).float().cpu().flatten(1) for name in names}
    mean, scale = found["train"].mean(0), found["train"].std(0, correction=0)
    scale = scale.where(scale > 0, 1.0)
    if categories:  # numbers are as they are in the table
        return {name: ((x - mean) / scale).clamp(-_FARTHEST, _FARTHEST).numpy() for name, x in found.items()}
    return {name: ((x - mean) / scale).numpy() for name, x in found.items()}


def _vectors(split: Split) -> Tensor | None:
    """The inputs of ``split`` as float32 [n, width] on the host, if they are vectors of numbers."""
    if not split.example.is_floating_point() or split.example.dim() != 1 or split.transform is not None:
        return None
    if isinstance(split.x, Tensor):
        return split.x.float().cpu()
    return split.x.take(torch.arange(len(split))).float() if isinstance(split.x, Sliced) else None


def _estimate(known: KnownRows, new_z: Floats, new_y: Ints, *, seed: int) -> tuple[AttributeModel, Floats]:
    """The fitted model and its predictions for the new rows, [n, values]."""
    if len(known.y) > _MOST:
        some = np.sort(stream(seed, "spread", "rows").permutation(len(known.y))[:_MOST])
        known = KnownRows(known.z[some], known.y[some], known.t[some])
    if known.z.shape[1] > len(known.z):
        # The weights of a regression with an L2 penalty lie in the span of its rows, so other directions can be left out.
        span = np.linalg.svd(known.z, full_matrices=False)[2].T
        known, new_z = KnownRows(known.z @ span, known.y, known.t), new_z @ span
    model = fit_attribute_model(known, stream(seed, "spread", "folds"))
    return model, model.predict(new_z, new_y)


def _require_two_groups(trainer: Trainer, y: Ints, group: Ints) -> None:
    """Raise unless some class has known rows of two groups, and two of one of them."""
    if not len(group):
        raise UserError(
            "groups_from=few needs rows whose groups are known and may be used, but there are none; name the columns of the groups "
            "with ",
            Setting("groups"),
            ".",
        )
    pairs, sizes = np.unique(np.stack([y, group]), axis=1, return_counts=True)
    if len(pairs.T) == len(np.unique(y)) or sizes.max() < 2:
        names = ", ".join(trainer.task.training_groups[g] for g in np.unique(group))
        raise UserError(
            f"groups_from=few must know rows of two groups of one class, and two rows of one of them, got {len(group):,} rows of "
            f"{names}; fill in the groups of more rows."
        )


def _require_classes(trainer: Trainer, y: Ints, new_y: Ints) -> None:
    """Raise if a class has training rows without a group, but no known ones."""
    missing = [trainer.task.classes[label] for label in np.setdiff1d(new_y, y)]
    if missing:
        raise UserError(
            f"groups_from=few must know groups of every class, but there is no known one of {', '.join(missing)}; fill in some."
        )


def _require_better_than_chance(scores: Scores, n_known: int) -> None:
    """Raise if groups cannot be told apart better than by chance."""
    if not scores.gain > scores.error:
        raise UserError(
            f"groups_from=few must tell the groups of a class apart, but what it learns from {n_known:,} known rows is no better "
            f"than chance: log loss {scores.log_loss:.3f} on held-out rows, {scores.chance:.3f} by the shares of the groups in "
            f"each class, standard error {scores.error:.3f}; fill in the groups of more rows, or take a method that needs none "
            "(umix methods)."
        )


def _words(scores: Scores, n_known: int, n_new: int, split: str) -> str:
    return (
        f"the groups of {n_new:,} {split} rows are estimated from {n_known:,} known ones; held-out rows: the likeliest group is "
        f"right for {scores.accuracy:.1%} (the commonest of the class for {scores.usual:.1%}), log loss {scores.log_loss:.3f} "
        f"({scores.chance:.3f} by chance)"
    )
