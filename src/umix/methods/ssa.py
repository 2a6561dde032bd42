"""SSA: spread spurious attribute (Nam et al. 2022).

The groups of a few rows are known. Stage 1: nets learn the attribute from these rows and, as far as they are sure of it, from their
own predictions for the training rows; each predicts the groups of rows that it has not seen (``umix.methods.parts.attribute_nets``
says how). Stage 2: GroupDRO with the predicted groups. A training row whose group is known and may be used keeps it. If all are
known, SSA is GroupDRO.

Known groups of validation are used unless groups are only reported, those of training where groups may train.

Differs from the paper:
- thresholds are computed once per epoch of stage 1, and pseudo-labels come from the same view of a row;
- a prediction no better than chance is refused, and the run says how good it is;
- the epoch of stage 2 is selected as in all fits of umix, by all validation rows; the paper keeps the half that trains out.

Differs from the released code:
- there is none to compare with; stage 1 follows the pseudo-labelling of the code of PG-DRO (Ghosal and Li 2023), in which every
  group but the smallest takes one row more.
"""

from typing import ClassVar, final

import torch

from umix.data.samplers import Balanced
from umix.methods.parts.attribute_nets import TrainsWithFewGroups
from umix.methods.parts.worst_group_risk import WorstGroupRisk
from umix.training.context import Context
from umix.training.train_result import Notes, TrainResult


@final
class SSA(TrainsWithFewGroups):
    """Spread spurious attribute: nets predict the groups of training rows from a few known ones, then GroupDRO."""

    name: ClassVar[str] = "ssa"
    paper: ClassVar[str] = (
        "Nam et al., Spread spurious attribute: Improving worst-group accuracy with spurious attribute estimation, ICLR 2022"
    )

    def train(self, context: Context) -> TrainResult:
        groups = self.known(context) or self.by_nets(context)
        group = groups.p.argmax(dim=1).to(context.device)
        sizes = torch.bincount(group, minlength=groups.p.shape[1])
        objective = WorstGroupRisk(step_size=self.step_size, adjustment=self.adjustment, sizes=sizes, group=group)
        fitted = context.fit(objective, sampler=Balanced(group))
        return fitted.after(groups.notes + Notes({"predicted_group": group}))
