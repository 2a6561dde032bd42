"""EVaLS: the last layer trained again on the rows with the highest and the lowest losses (Ghaznavi et al. 2024).

Validation is divided once, by class only. Of a part ``share`` of it, the ``k`` rows of every class with the highest losses under
ERM and the ``k`` with the lowest form a small data set. The first are mostly of groups that ERM fails, the second of groups that it
serves well, so the groups in it are nearly balanced without being known. A last layer is fitted to it, as DFR's.

``k`` is chosen on the rest of validation, by the worst cell of class × environment. Environments are inferred as in EIIL: the two
over which ERM is least invariant. With two classes these are the rows that ERM gets right and those that it gets wrong.

Where no ``k`` helps, as on the table ``adult``, the result is ERM after its last epoch. Its worst group was 5 points below that of
``erm``, which selects its epoch.

Differs from the paper:
- ``auto`` also tries 0, which keeps ERM's layer, and where no groups choose it takes no ``k`` that lowers the mean of the class
  rates on validation by more than a point: where labels are noise, the rows of highest loss teach the opposite of the truth;
- where validation groups are known and may be used, the worst of them chooses ``k``, as it selects epochs in all methods;
- rates of small cells are pulled towards that of their class (``core.evaluation``), so a cell of a few rows does not choose alone;
- the last layer is a penalised logistic regression on standardised features, as DFR fits it, and has no epochs to select;
- where a class has less than 2·``k`` rows, all classes give as many as it has: none counts more than another.

Differs from the released code:
- no code is released.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from umix.core.counts import class_composition, class_counts, group_counts
from umix.core.environments import infer_environments
from umix.core.epoch_counts import Counts
from umix.core.evaluation import Evaluation
from umix.core.losses import cross_entropy
from umix.core.selection import RULES, best_epoch, class_floor, within_limits
from umix.core.streams import stream
from umix.data.groups import Groups
from umix.data.task import Split
from umix.methods.dfr import Penalty, refit
from umix.methods.method import WEIGHTS_ONLY, Method, Needs
from umix.methods.parts.layer_fit import parts_of_validation
from umix.models.model import Model
from umix.selection.select import Auto, chooses_by_groups, limited_cost, result_of
from umix.settings import between
from umix.training.context import Context
from umix.training.evaluate import require_finite
from umix.training.last_layer import linear_head, set_last_layer
from umix.training.stage import ErmStage
from umix.training.train_result import Notes, TrainResult

_TRIED = (0, 5, 10, 20, 40, 80, 160, 320)  # what auto tries
_STEPS, _LR = 100, 0.1  # of the inference of environments, as in EIIL


@final
class EVaLS(Method):
    """EVaLS: the last layer is fitted again to the held-out rows of highest and of lowest loss in every class."""

    name: ClassVar[str] = "evals"
    paper: ClassVar[str] = (
        "Ghaznavi et al., Trained models tell us how to make them robust to spurious correlation without group annotation, 2024"
    )
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    k: Annotated[int, Field(ge=0)] | Auto = Field(
        "auto",
        description="rows of highest loss, and as many of lowest, of every class; 0 keeps ERM's layer; auto: chosen on validation",
    )
    c: Annotated[float, between(0.01, 10.0, log=True)] = Field(1.0, gt=0, description="inverse strength of the penalty")
    penalty: Penalty = Field("l1", description="of the weights: sum of sizes or of squares")
    share: float = Field(0.5, gt=0, lt=1, description="part of validation to fit; the rest chooses k and the threshold")

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),)

    def train(self, context: Context) -> TrainResult:
        held_out, rest, notes = parts_of_validation(context, self.share)
        (stage,) = self.erm_stages(context.settings.epochs)
        net = context.reference(stage)
        layers, warnings = self._layers(context, net, held_out)
        notes += Notes(warnings=warnings)
        k = next(iter(layers))
        if len(layers) > 1:
            k, context, of_choice = self._chosen(context, net, layers, rest)
            notes += of_choice
        if k > 0:
            set_last_layer(net, torch.from_numpy(layers[k]))
        return context.adopt(net, val=rest).after(notes)

    def _layers(self, context: Context, net: Model, rows: Split) -> tuple[dict[int, np.ndarray], tuple[str, ...]]:
        """A last layer, weights and biases [classes, width + 1], for each ``k`` to choose from; that of 0 is ERM's.

        A warning says how many regressions did not converge.
        """
        y = rows.y.cpu()
        losses = cross_entropy(context.logits(net, rows).cpu(), y)
        features = require_finite(context.features(net, rows), what="features", stage="reference")
        z = features.cpu().double().numpy()
        most = max(1, int(y.bincount()[y.unique()].min()) // 2)  # so that all classes have as many rows
        tried, layers, failed = sorted({min(k, most) for k in (_TRIED if self.k == "auto" else (self.k,))}), {}, 0
        head = linear_head(net)
        if 0 in tried:
            layers[0] = torch.cat([head.weight, head.bias[:, None]], dim=1).detach().cpu().double().numpy()
        fitted = [k for k in tried if k > 0]
        for k in fitted:
            chosen = extreme_losses(losses, y, k=k).numpy()
            seed = int(stream(context.seed, "evals", "refit", k).integers(2**31))
            layers[k], converged = refit(
                z[chosen],
                y.numpy()[chosen],
                n_classes=context.task.n_classes,
                c=self.c,
                penalty=self.penalty,
                seed=seed,
            )
            failed += not converged
        warning = f"{failed} of {len(fitted)} logistic regressions did not converge; try a smaller c."
        return layers, (warning,) if failed else ()

    def _chosen(
        self, context: Context, net: Model, layers: dict[int, np.ndarray], rest: Split
    ) -> tuple[int, Context, Notes]:
        """The ``k`` whose layer has the best worst rate on ``rest``, the context that limits its cost, and the results of all."""
        y, by_groups = rest.y.cpu(), chooses_by_groups(context) and bool(rest.groups.member.any())
        groups = rest.groups.to(y.device) if by_groups else self._cells(context, net, rest)
        z = context.features(net, rest).cpu().double().numpy()
        correct = [torch.from_numpy((z @ layer[:, :-1].T + layer[:, -1]).argmax(1)) == y for layer in layers.values()]
        counts = counts_of(correct, y, groups, n_classes=context.task.n_classes, evaluation=context.evaluation)
        averages, tried = counts.all_hits / counts.n, list(layers)
        context = limited_cost(context, float(averages[0]))  # the first is ERM's layer
        if not by_groups:
            context = context.evaluated_by(replace(context.evaluation, class_floor=class_floor(counts.only([0]))))
        limited = replace(counts, evaluation=replace(context.evaluation, choose=by_groups))
        allowed = np.flatnonzero(~np.isnan(within_limits(averages, limited)))
        warnings: tuple[str, ...] = ()
        if len(allowed) == 1:
            warnings = (
                f"Every k of {', '.join(map(str, tried[1:]))} cost too much accuracy on validation: ERM's last layer stays; what "
                "ERM gets wrong here looks like noise.",
            )
        best = int(allowed[best_epoch(counts.only(allowed.tolist()), "worst")])
        results = [
            result_of(f"k={k}", one, float(RULES["worst"](one)[0]), "worst", threshold="off")
            for k, one in ((k, counts.only([place])) for place, k in enumerate(tried))
        ]
        what = "known group" if by_groups else "cell of class and inferred environment"
        reason = (
            f"best of {len(tried)} on validation by the worst {what}: {results[best].worst:.1%}, and "
            f"{results[best].average:.1%} on average"
        )
        choices = {"k": tried[best], "reason": reason, "candidates": [one.as_json() for one in results]}
        return tried[best], context, Notes(choices=choices, warnings=warnings)

    def _cells(self, context: Context, net: Model, rest: Split) -> Groups:
        """Class × environment, where ERM's logits on ``rest`` tell the environments."""
        y, rng = rest.y.cpu(), stream(context.seed, "evals", "environments")
        environment = infer_environments(context.logits(net, rest).cpu(), y, steps=_STEPS, lr=_LR, rng=rng)
        return Groups.cells(y, environment, labels=context.task.classes, attributes=("served", "failed"))


def counts_of(
    correct: Sequence[Tensor], y: Tensor, groups: Groups, *, n_classes: int, evaluation: Evaluation
) -> Counts:
    """The counts of several nets, as if each were an epoch; ``correct`` [n] says what a net gets right. Any groups may choose."""
    by_group = [group_counts(one, groups.member) for one in correct]
    by_class = [class_counts(one, y, n_classes=n_classes) for one in correct]
    composition = class_composition(y, groups.pairs, n_groups=len(groups.names), n_classes=n_classes)
    return Counts(
        hits=torch.stack([hits for hits, _ in by_group]).numpy(),
        sizes=groups.sizes.numpy(),
        class_hits=torch.stack([hits for hits, _ in by_class]).numpy(),
        class_sizes=by_class[0][1].numpy(),
        composition=composition.numpy(),
        evaluation=replace(evaluation, choose=True),
    )


def extreme_losses(losses: Tensor, y: Tensor, *, k: int) -> Tensor:
    """The rows of the ``k`` highest and the ``k`` lowest ``losses`` [n] of every class, in order, int64 (Ghaznavi et al., EVaLS).

    A class of fewer than 2·``k`` examples is taken as a whole.

    >>> extreme_losses(torch.tensor([0.1, 3.0, 0.2, 0.5, 0.4]), torch.tensor([0, 0, 0, 0, 1]), k=1).tolist()
    [0, 1, 4]
    """
    kept = []
    for label in y.unique():
        rows = (y == label).nonzero()[:, 0]
        rows = rows[losses[rows].argsort(descending=True, stable=True)]
        kept += [rows] if len(rows) <= 2 * k else [rows[:k], rows[-k:]]
    return torch.cat(kept).sort().values if kept else torch.zeros(0, dtype=torch.int64, device=y.device)
