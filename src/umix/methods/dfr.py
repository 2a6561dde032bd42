"""DFR: deep feature reweighting, the last layer trained again on balanced data (Kirichenko et al. 2023).

ERM learns good features, but its last layer relies on the spurious ones. DFR keeps the features of
an ERM net. It draws a subset of held-out data in which all groups have the same number of examples,
standardises the features and fits a penalised logistic regression to them. The weights of several
such fits are averaged (the paper's DFR on validation data).

Validation is divided once, stratified by group: the last layer is fitted to a part ``share`` of it,
and only the rest is used for selection, so no example is used for both.

Differs from the paper:
- the final fit uses the same share as the choice of ``c``; the paper fits again on the whole
  validation split.

Differs from the released code:
- as above; each subset is standardised with its own statistics, while the released code takes those
  of the training split in the final fit;
- groups without validation examples are reported and left out; more than two classes are fitted
  together (softmax).
"""

from functools import partial
from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from umix.core.quiet_fit import quiet_fit
from umix.core.streams import stream
from umix.core.subsets import balanced_subset, stratified_split
from umix.errors import UserError
from umix.methods.method import WEIGHTS_ONLY, Method, Needs
from umix.methods.parts.layer_fit import too_few_to_divide
from umix.models.model import Model
from umix.settings import between
from umix.training.context import Context
from umix.training.evaluate import require_finite
from umix.training.last_layer import linear_head, set_last_layer
from umix.training.stage import ErmStage
from umix.training.train_result import Notes, TrainResult

Penalty = Literal["l1", "l2"]
Rows = NDArray[np.int64]

_NEVER = -1e9  # the bias of a class that the balanced data do not contain: below all other logits, but finite
_ITERATIONS = 1000


def refit(
    z: np.ndarray, y: np.ndarray, *, n_classes: int, c: float, penalty: Penalty, seed: int
) -> tuple[np.ndarray, bool]:
    """Weights and biases [classes, width + 1] of a logistic regression, and whether it converged.

    The regression is fitted to standardised features; the weights are converted to those for ``z``
    as it is. A class that ``y`` does not contain is never predicted.
    """
    from sklearn.linear_model import LogisticRegression  # imported here because it takes a second
    from sklearn.preprocessing import StandardScaler

    if len(classes := np.unique(y)) < 2:
        raise UserError(
            "DFR must be given at least two classes in every group-balanced part of validation, got one; raise dfr.share."
        )
    scaler, binary = StandardScaler().fit(z), len(classes) == 2
    solver = "lbfgs" if penalty == "l2" else "liblinear" if binary else "saga"
    model = LogisticRegression(
        C=c, l1_ratio=float(penalty == "l1"), solver=solver, max_iter=_ITERATIONS, random_state=seed
    )
    with quiet_fit():  # the caller reports a fit that did not converge
        model.fit(scaler.transform(z), y)
    w = model.coef_ / scaler.scale_
    rows = np.column_stack([w, model.intercept_ - w @ scaler.mean_])
    head = np.zeros((n_classes, rows.shape[1]))
    head[:, -1] = _NEVER
    head[model.classes_] = np.concatenate([-rows / 2, rows / 2]) if binary else rows
    return head, bool(model.n_iter_.max() < _ITERATIONS)


@final
class DFR(Method):
    """Deep feature reweighting: an ERM net whose last layer is fitted again to group-balanced validation data."""

    name: ClassVar[str] = "dfr"
    paper: ClassVar[str] = (
        "Kirichenko et al., Last layer re-training is sufficient for robustness to spurious correlations, ICLR 2023"
    )
    needs_val_groups: ClassVar[bool] = True
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    c: Annotated[float, between(0.01, 10.0, log=True)] = Field(1.0, gt=0, description="inverse strength of the penalty")
    penalty: Penalty = Field("l1", description="of the weights: sum of sizes or of squares")
    repeats: int = Field(10, ge=1, description="balanced subsets over which the weights are averaged")
    share: float = Field(0.5, gt=0, lt=1, description="part of validation that is fitted; the rest is for selection")

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),)

    def train(self, context: Context) -> TrainResult:
        val = context.splits["val"]
        group: np.ndarray = val.group.cpu().numpy()
        missing = [name for g, name in enumerate((val.training_groups or val.groups).names) if g not in group]
        lacks = f"Validation has no example of {', '.join(missing)}: the last layer is balanced over the others."
        fitted, rest = self._parts(context)
        net, features = self._reference(context)
        layer, warnings = self._layer(context, features, fitted)
        set_last_layer(net, torch.from_numpy(layer))
        notes = Notes(warnings=((lacks,) if missing else ()) + warnings)
        return context.adopt(net, val=val.rows(torch.from_numpy(rest).to(val.y.device))).after(notes)

    def cross_fitted(self, context: Context) -> Tensor:
        """Logits of every validation example by a last layer that was fitted to the other part of validation, [n, classes].

        They tell how good the method is on all of validation, while ``train`` leaves only a part of it for that.
        """
        parts = self._parts(context)
        _, features = self._reference(context)
        logits = torch.empty(len(features), context.task.n_classes)
        for fitted, others in (parts, parts[::-1]):
            layer = torch.from_numpy(self._layer(context, features, fitted)[0])
            logits[others] = (features[others].cpu().double() @ layer[:, :-1].T + layer[:, -1]).float()
        return logits.to(context.device)

    def _parts(self, context: Context) -> tuple[Rows, Rows]:
        """The rows of validation that are fitted, and the others; the same in every run with one seed."""
        val = context.splits["val"]
        rng = stream(context.seed, "dfr", "half")
        fitted, rest = stratified_split(val.group.cpu().numpy(), share=self.share, rng=rng)
        if not len(rest):
            raise too_few_to_divide(val, "group")
        return fitted, rest

    def _reference(self, context: Context) -> tuple[Model, Tensor]:
        """The ERM net, and its features of all validation examples, [n, width]."""
        (stage,) = self.erm_stages(context.settings.epochs)
        net = context.reference(stage)
        linear_head(net)  # raises here, before the regressions, if it is none
        return net, require_finite(context.features(net, "val"), what="features", stage=stage.name)

    def _layer(self, context: Context, features: Tensor, rows: Rows) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """Weights and biases [classes, width + 1]: the mean of regressions on balanced subsets of these validation ``rows``.

        A warning says how many of them did not converge.
        """
        val = context.splits["val"]
        z, y, group = features[rows].cpu().double().numpy(), val.y[rows].cpu().numpy(), val.group[rows].cpu().numpy()
        fit, fits = partial(refit, n_classes=context.task.n_classes, c=self.c, penalty=self.penalty), []
        for repeat in range(self.repeats):
            rng = stream(context.seed, "dfr", "subset", repeat)
            subset = balanced_subset(group, rng=rng)
            fits.append(fit(z[subset], y[subset], seed=int(rng.integers(2**31))))
        failed = sum(not converged for _, converged in fits)
        warning = f"{failed} of {self.repeats} logistic regressions did not converge; try a smaller c."
        return np.asarray(np.mean([head for head, _ in fits], axis=0)), (warning,) if failed else ()
