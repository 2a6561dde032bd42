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
from pydantic import Field

from umix.core.quiet_fit import quiet_fit
from umix.core.streams import stream
from umix.core.subsets import balanced_subset, stratified_split
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.parts.held_out_rows import too_few_to_divide
from umix.nets.net import Net
from umix.settings import between
from umix.training.finite_outputs import require_finite
from umix.training.last_layer import linear_head, set_last_layer
from umix.training.stage import ErmStage
from umix.training.trainer import Trainer

Penalty = Literal["l1", "l2"]

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
    needs_gradients: ClassVar[bool] = False
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    c: Annotated[float, between(0.01, 10.0, log=True)] = Field(1.0, gt=0, description="inverse strength of the penalty")
    penalty: Penalty = Field("l1", description="of the weights: sum of sizes or of squares")
    repeats: int = Field(10, ge=1, description="balanced subsets over which the weights are averaged")
    share: float = Field(0.5, gt=0, lt=1, description="part of validation that is fitted; the rest is for selection")

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),)

    def train(self, trainer: Trainer) -> Net:
        val = trainer.splits["val"]
        group: np.ndarray = val.group.cpu().numpy()
        missing = [name for g, name in enumerate((val.training_groups or val.groups).names) if g not in group]
        if missing:
            trainer.warn(
                f"Validation has no example of {', '.join(missing)}: the last layer is balanced over the others."
            )
        chosen, rest = stratified_split(group, share=self.share, rng=stream(trainer.seed, "dfr", "half"))
        if not len(rest):
            raise too_few_to_divide(val, "group")
        (stage,) = self.erm_stages(trainer.settings.epochs)
        net = trainer.reference(stage)
        linear_head(net)  # raises here, before the regressions, if it is none
        features = require_finite(trainer.features(net, "val"), what="features", stage=stage.name)
        z, y = features[chosen].cpu().double().numpy(), val.y[chosen].cpu().numpy()
        fit, fits = partial(refit, n_classes=trainer.task.n_classes, c=self.c, penalty=self.penalty), []
        for repeat in range(self.repeats):
            rng = stream(trainer.seed, "dfr", "subset", repeat)
            rows = balanced_subset(group[chosen], rng=rng)
            fits.append(fit(z[rows], y[rows], seed=int(rng.integers(2**31))))
        failed = sum(not converged for _, converged in fits)
        if failed:
            trainer.warn(f"{failed} of {self.repeats} logistic regressions did not converge; try a smaller c.")
        weight = torch.from_numpy(np.mean([head for head, _ in fits], axis=0))
        set_last_layer(net, weight)
        return trainer.adopt(net, val=val.rows(torch.from_numpy(rest).to(val.y.device)))
