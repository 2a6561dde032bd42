"""SUBY and SUBG: training on a subset in which all classes, or all groups, are as large (Idrissi et al. 2022).

Every class (``suby``) or group (``subg``) is cut to as many random rows as the smallest has, once, before training. Then a net is
trained by ERM on these rows alone. What is thrown away costs little where the smallest group is not tiny, and nothing is repeated
or weighed: papers on groups compare with it. ``resample`` and ``reweight`` keep all rows; ``pde`` starts from the same subset and
adds the others.

Differs from the paper:
- an epoch has as many visits as there are training rows, so the rows of the subset are visited several times in it; else a small
  subset would be trained for a few steps only.

Differs from the released code:
- as above; there an epoch visits every row of the subset once, in batches of 2 to 128 rows, for as many epochs as other methods;
- classes and groups without rows are left out; there an empty group leaves nothing to train on.
"""

import abc
from functools import partial
from typing import ClassVar, final

import torch
from torch import Tensor

from umix.core.streams import stream
from umix.core.subsets import balanced_first, grown_size
from umix.data.samplers import Growing
from umix.data.task import Split
from umix.methods.method import WEIGHTS_ONLY, Method, Needs
from umix.training.context import Context
from umix.training.objective import MeanRisk
from umix.training.train_result import Notes, TrainResult

_FEW = 10  # rows of a class or group in the subset below which the run says how few they are


class Subsampling(Method, abc.ABC):
    """A method that trains on a random subset in which all units, classes or groups, have as many rows."""

    paper: ClassVar[str] = "Idrissi et al., Simple data balancing achieves competitive worst-group-accuracy, CLeaR 2022"
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    unit: ClassVar[str]

    @abc.abstractmethod
    def unit_of(self, train: Split) -> Tensor:
        """The unit of every training row, int64 [n]."""

    def train(self, context: Context) -> TrainResult:
        unit = self.unit_of(context.splits["train"]).cpu().numpy()
        order, kept = balanced_first(unit, rng=stream(context.seed, "fit", "subset"))
        each = kept // len(set(unit.tolist()))
        notes = Notes(
            choices={"subset": {"words": f"subset: {kept:,} of {len(unit):,} rows, {each:,} per {self.unit}"}}
        )
        if each < _FEW:
            warning = (
                f"{self.name} trains on {kept:,} of {len(unit):,} rows, {each:,} per {self.unit}, because a {self.unit} is that "
                f"small; resample with by={self.unit} keeps all rows."
            )
            notes += Notes(warnings=(warning,))
        kept_at = partial(grown_size, first=kept, total=len(unit), warm_up=1.0, added=0.0, expansions=1)
        return context.fit(MeanRisk(), sampler=Growing(torch.from_numpy(order), kept_at)).after(notes)


@final
class SUBY(Subsampling):
    """Class-balanced subset: every class is cut to the size of the smallest."""

    name: ClassVar[str] = "suby"
    unit: ClassVar[str] = "class"

    def unit_of(self, train: Split) -> Tensor:
        return train.y


@final
class SUBG(Subsampling):
    """Group-balanced subset: every group is cut to the size of the smallest."""

    name: ClassVar[str] = "subg"
    needs_groups: ClassVar[bool] = True
    unit: ClassVar[str] = "group"

    def unit_of(self, train: Split) -> Tensor:
        return train.group
