"""Balanced softmax: the class sizes are part of the softmax in training and not at prediction (Ren et al. 2020).

min mean CE(z + log n), where n_y is the number of training examples of class y (Theorem 1). If training examples have the shares
n_y / n and the classes are equally frequent at prediction, z is the right score of the latter by Bayes' rule. It is
``logit_adjustment`` with tau = 1, as log n and log n/Σn differ by a constant, which a softmax ignores.

It balances classes, not groups: where all classes have the same size it is ERM. Where the worst group belongs to the largest class,
it gets worse: on frozen features of birds it has the validation rate 54.9, with ERM 62.1. Reweighting by class does the same.
On adult, whose worst group is in the smaller class, it gains 13 points.

Differs from the paper:
- the meta sampler, which learns how to resample classes, is left out;
- a class without training examples counts as the largest one: with log 0 its logit would have no gradient.

Differs from the released code:
- the same.
"""

from typing import ClassVar, final

from umix.methods.logit_adjustment import class_log_shares
from umix.methods.method import Method
from umix.methods.parts.offset_risk import OffsetRisk
from umix.training.context import Context
from umix.training.train_result import TrainResult


@final
class BalancedSoftmax(Method):
    """Balanced softmax: class sizes are accounted for in training, so that predictions do not favour large classes."""

    name: ClassVar[str] = "balanced_softmax"
    paper: ClassVar[str] = "Ren et al., Balanced meta-softmax for long-tailed visual recognition, NeurIPS 2020"
    takes_weights: ClassVar[bool] = True

    def train(self, context: Context) -> TrainResult:
        return context.fit(OffsetRisk(offset=class_log_shares(context)))
