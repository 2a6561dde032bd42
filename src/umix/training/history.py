"""Counts of every epoch of the final fit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.core.calibration import Calibration, fitted_calibration
from umix.core.counts import class_composition, class_counts, confusion_counts, group_counts
from umix.core.epoch_counts import TAIL, Counts, quintiles
from umix.core.evaluation import EVERY_GROUP, Evaluation
from umix.core.risks import cvar
from umix.core.selection import best_choice, default_rule
from umix.core.thresholds import candidate_biases, hits_by_threshold, predicted_classes
from umix.core.words import NOT_FINITE
from umix.data.task import Split
from umix.models.model import Model
from umix.training.best_weights import MOST_WAITING, BestWeights, selected_epochs
from umix.training.evaluate import Evaluated, evaluate
from umix.training.last_layer import LastLayer

EVAL_SPLITS = ("val", "test")
_MOST_CONFUSION = 4096  # numbers per epoch and split; tasks with more groups × classes² keep no confusion counts
_MOST_COUNTED = 4096  # likewise; tasks with more thresholds × (groups + classes) are decided by argmax


def keeps_thresholds(n_biases: int, *, n_units: int) -> bool:
    """Whether the hits of so many biases are counted, where there are so many groups and classes together."""
    return 1 < n_biases <= _MOST_COUNTED // n_units


@final
@dataclass(frozen=True, eq=False)
class HeldOutUncertainty:
    """How uncertain an earlier stage was of every validation [n_val] and test [n_test] example.

    A split is None if nothing is known of it.
    """

    val: Tensor | None = None
    test: Tensor | None = None


@final
class History:
    """The observer of the final fit: counts hits on val and test after every epoch and saves the weights of the best epochs.

    Hits are counted by group and by class: of argmax, and of every threshold of ``core/thresholds.py``. Where ``uncertainty`` is
    given, the accuracy of each fifth of a split in order of uncertainty is computed too, on test under every threshold. On val
    there is also the mean of the largest losses, and the logits of epochs that may be selected are kept, to calibrate by. If a
    ``last_layer`` is trained alone, it is evaluated on features, and the weights that are saved are those of the whole net.
    """

    def __init__(
        self,
        splits: Mapping[str, Split],
        n_classes: int,
        *,
        epochs: int,
        batch_size: int,
        best: BestWeights,
        uncertainty: HeldOutUncertainty | None = None,
        evaluation: Evaluation = EVERY_GROUP,
        last_layer: LastLayer | None = None,
        on_epoch: Callable[[int, Counts], None] | None = None,
    ) -> None:
        self.evaluation = evaluation
        self._last_layer = last_layer
        self.splits: Mapping[str, Split] = {name: splits[name] for name in EVAL_SPLITS}
        self._n_classes = n_classes
        self._on_epoch = on_epoch
        self._epochs = epochs
        self.batch_size = batch_size
        self.best = best
        self._hits: dict[str, list[Tensor]] = {name: [] for name in EVAL_SPLITS}
        self._class_hits: dict[str, list[Tensor]] = {name: [] for name in EVAL_SPLITS}
        given = {} if uncertainty is None else {"val": uncertainty.val, "test": uncertainty.test}
        known = {name: u.cpu().numpy() for name, u in given.items() if u is not None}
        self._quintiles = {name: torch.from_numpy(quintiles(u)) for name, u in known.items()}
        self._quintile_rates: dict[str, list[Tensor]] = {name: [] for name in EVAL_SPLITS}
        self._tail_losses: list[Tensor] = []
        self._val_logits: dict[int, Tensor] = {}  # of the epochs that a rule may select, [n_val, classes]
        n_groups, n_margins = len(splits["val"].groups.names), len(splits["val"].groups.margins)
        self._composition = {
            name: class_composition(
                split.y, split.groups.unit_pairs, n_groups=n_groups + n_margins, n_classes=n_classes
            )
            .cpu()
            .numpy()
            for name, split in self.splits.items()
        }  # of groups, then of margins
        self._margin_hits: dict[str, list[Tensor]] = {name: [] for name in EVAL_SPLITS}
        self._keeps_confusion = (n_groups + 1) * n_classes**2 <= _MOST_CONFUSION
        self._confusion: dict[str, list[Tensor]] = {name: [] for name in EVAL_SPLITS}
        biases = torch.from_numpy(
            candidate_biases(torch.bincount(splits["train"].y, minlength=n_classes).cpu().numpy())
        )
        self._keeps_thresholds = keeps_thresholds(len(biases), n_units=n_groups + n_margins + n_classes)
        self._biases = biases
        self._threshold_hits: dict[str, list[Tensor]] = {name: [] for name in EVAL_SPLITS}
        self._threshold_quintiles: list[Tensor] = []  # of test, where they are shown beside the rates of the threshold

    def observe(self, net: Model, epoch: int) -> None:
        seen, inputs = net, self.splits
        if self._last_layer is not None:
            seen, inputs, net = self._last_layer.copied(), self._last_layer.inputs, self._last_layer.whole
        for name in EVAL_SPLITS:
            evaluated = evaluate(
                seen,
                inputs[name],
                n_classes=self._n_classes,
                batch_size=self.batch_size,
                keep_logits=self._keeps_thresholds or name == "val",
            )
            self._count(name, evaluated)
            if name == "val":
                losses = evaluated.losses
                if evaluated.logits is not None:
                    self._val_logits[epoch] = evaluated.logits.cpu()
        tail = cvar(losses.cpu().double(), alpha=TAIL) if len(losses) else torch.tensor(torch.nan).double()
        self._tail_losses.append(tail.where(tail.isfinite(), torch.nan))
        last = epoch + 1 == self._epochs
        if self.best.offer(net, epoch) or last:
            self.best.settle(self.counts("val"), last=last)
        if sum(logits.nbytes for logits in self._val_logits.values()) >= MOST_WAITING:
            self._forget_logits()
        if self._on_epoch is not None:
            self._on_epoch(epoch, self.counts("val"))

    def write(self) -> None:
        self.best.settle(self.counts("val"), last=False)

    def _count(self, name: str, evaluated: Evaluated) -> None:
        split, predicted = self.splits[name], evaluated.predicted
        correct = predicted == split.y
        if self._keeps_confusion:
            n_groups = len(split.groups.names)
            counted = confusion_counts(
                predicted, split.y, *split.groups.pairs, n_groups=n_groups, n_classes=self._n_classes
            ).cpu()
            self._confusion[name].append(counted.int())
            hits = counted.diagonal(dim1=1, dim2=2)  # of every class in every group, and last of all examples
            self._hits[name].append(hits[:-1].sum(dim=1))
            self._class_hits[name].append(hits[-1])
        else:
            self._hits[name].append(group_counts(correct, split.member_float)[0].cpu())
            self._class_hits[name].append(class_counts(correct, split.y, n_classes=self._n_classes)[0].cpu())
        self._margin_hits[name].append(group_counts(correct, split.groups.in_margins)[0].cpu())
        if name in self._quintiles:
            self._quintile_rates[name].append(self._fifths(name, correct))
        if evaluated.logits is not None and self._keeps_thresholds:
            n_units = len(split.groups.names) + len(split.groups.margins)
            decided = hits_by_threshold(
                evaluated.logits, split.y, split.groups.unit_pairs, self._biases, n_groups=n_units
            )
            self._threshold_hits[name].append(decided.int().cpu())
            # The first threshold is argmax: its hits are the counts above, also where a logit is not finite.
            of_units = (self._hits, self._margin_hits, self._class_hits)
            self._threshold_hits[name][-1][0] = torch.cat([hits[name][-1] for hits in of_units])
        if evaluated.logits is not None and self._keeps_thresholds and name == "test" and name in self._quintiles:
            others = (predicted_classes(evaluated.logits, bias) == split.y for bias in self._biases[1:])
            rates = [self._quintile_rates[name][-1], *(self._fifths(name, correct) for correct in others)]
            self._threshold_quintiles.append(torch.stack(rates))

    def calibration(self, epoch: int) -> Calibration | None:
        """What calibrates the probabilities of ``epoch``, which a rule selects; None where validation has too few examples."""
        return fitted_calibration(self._val_logits[epoch].numpy(), self.splits["val"].y.cpu().numpy())

    def _forget_logits(self) -> None:
        """Keep the validation logits of the newest epoch and of those that a rule selects so far."""
        val = self.counts("val")
        wanted = selected_epochs(val) | {val.epochs - 1}
        self._val_logits = {epoch: logits for epoch, logits in self._val_logits.items() if epoch in wanted}

    def _fifths(self, name: str, correct: Tensor) -> Tensor:
        """The share of ``correct`` [n] examples in every fifth of a split, [5]; rounding errors must not break ties."""
        fifths = self._quintiles[name]
        return (correct.cpu().double() @ fifths / fifths.sum(dim=0)).round(decimals=9)

    def _recall_hits(self, name: str) -> np.ndarray:
        """Hits of each class within each group, [epochs, groups, classes]; empty if every group has one class, or if not kept."""
        of_groups = self._composition[name][: len(self.splits[name].groups.names)]
        mixed = ((of_groups > 0).sum(axis=1) > 1).any()
        counted = self.confusion(name) if mixed else None
        if counted is None:
            return np.zeros((0, 0, 0), dtype=np.int64)
        return counted[:, :-1].diagonal(dim1=2, dim2=3).long().numpy()

    def confusion(self, name: str) -> Tensor | None:
        """How often class y was predicted as class p, int32 [epochs, groups + 1, classes, classes]; the last group is all examples.

        None for tasks with so many groups and classes that it is not kept.
        """
        return torch.stack(self._confusion[name]) if self._confusion[name] else None

    def counts(self, name: str) -> Counts:
        """The counts of all epochs so far on the split ``name``."""
        split = self.splits[name]
        n_groups = len(split.groups.names)
        classes = torch.bincount(split.y, minlength=self._n_classes)
        tail = torch.stack(self._tail_losses).numpy() if self._tail_losses and name == "val" else np.zeros(0)
        return Counts(
            hits=_stack(self._hits[name], len(split.groups.names)),
            sizes=split.groups.sizes.cpu().numpy(),
            class_hits=_stack(self._class_hits[name], self._n_classes),
            class_sizes=classes.cpu().numpy(),
            quintile_rates=_stack(self._quintile_rates[name], 5),
            tail_losses=tail,
            composition=self._composition[name][:n_groups],
            recall_hits=self._recall_hits(name),
            margin_hits=_stack(self._margin_hits[name], len(split.groups.margins)),
            margin_sizes=self._composition[name][n_groups:].sum(axis=1),
            margin_composition=self._composition[name][n_groups:],
            evaluation=self.evaluation,
            **self._by_threshold(name),
        )

    def _by_threshold(self, name: str) -> dict[str, np.ndarray]:
        """The biases to choose from and the hits of each, as parts of the counts; none where they are not kept."""
        rows = self._threshold_hits[name]
        if not rows:
            return {}
        thresholds = {"biases": self._biases.numpy(), "threshold_hits": torch.stack(rows).numpy()}
        if name == "test" and self._threshold_quintiles:
            thresholds["threshold_quintiles"] = torch.stack(self._threshold_quintiles).numpy()
        return thresholds

    def tensors(self) -> dict[str, Tensor]:
        kept = {f"{name}/hits": torch.stack(rows) for name, rows in self._hits.items()}
        kept |= {f"{name}/class_hits": torch.stack(rows) for name, rows in self._class_hits.items()}
        kept |= {f"{name}/margin_hits": torch.stack(rows) for name, rows in self._margin_hits.items()}
        kept |= {f"{name}/quintile_rates": torch.stack(rows) for name, rows in self._quintile_rates.items() if rows}
        kept |= {f"{name}/confusion": torch.stack(rows) for name, rows in self._confusion.items() if rows}
        kept |= {f"{name}/threshold_hits": torch.stack(rows) for name, rows in self._threshold_hits.items() if rows}
        if self._threshold_quintiles:
            kept["test/decided_quintiles"] = torch.stack(self._threshold_quintiles)
        self._forget_logits()
        kept |= {f"val/logits/{epoch}": logits for epoch, logits in self._val_logits.items()}
        return kept | {"val/tail_losses": torch.stack(self._tail_losses)}

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        for name in EVAL_SPLITS:
            self._hits[name] = list(kept.get(f"{name}/hits", ()))
            self._class_hits[name] = list(kept.get(f"{name}/class_hits", ()))
            self._margin_hits[name] = list(kept.get(f"{name}/margin_hits", ()))
            self._quintile_rates[name] = list(kept.get(f"{name}/quintile_rates", ()))
            self._confusion[name] = list(kept.get(f"{name}/confusion", ()))
            self._threshold_hits[name] = list(kept.get(f"{name}/threshold_hits", ()))
        self._threshold_quintiles = list(kept.get("test/decided_quintiles", ()))
        prefix = "val/logits/"
        self._val_logits = {
            int(name.removeprefix(prefix)): logits for name, logits in kept.items() if name.startswith(prefix)
        }
        self._tail_losses = list(kept.get("val/tail_losses", ()))


def _stack(rows: list[Tensor], width: int) -> np.ndarray:
    return torch.stack(rows).numpy() if rows else np.zeros((0, width), dtype=np.int64)


def fit_warnings(net: Model, val: Counts) -> tuple[str, ...]:
    """Warnings about a finished fit: parameters that are not finite, a selected epoch in which only one class is predicted."""
    warnings = []
    if not all(parameter.isfinite().all() for parameter in net.parameters()):
        warnings.append(f"{NOT_FINITE} after the fit: try a smaller fit.lr, or fit.clip_norm=1.")
    if (val.collapsed >= 0).any():
        choice = best_choice(val, default_rule(val))
        if val.at_threshold(choice.threshold).collapsed[choice.epoch] >= 0:
            warnings.append("The selected model predicts a single class for every validation row.")
    return tuple(warnings)
