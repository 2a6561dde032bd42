"""PG-DRO: GroupDRO with probabilistic groups (Ghosal and Li 2023).

The groups of a few rows are known. For every training row the probability p_ig of each group is estimated from them, 0 for groups
of other classes, and GroupDRO is run with soft groups: L_g = Σ_i p_ig·ℓ_i / Σ_i p_ig, q_g ← q_g·exp(step_size·(L_g + C/√n_g)) / Z
with n_g = Σ_i p_ig, descend Σ_g q_g·L_g. A row whose group is known and may be used has probability 1 there. If all rows are known,
it is GroupDRO.

p comes from calibrated logistic regression (``estimate=regression``, that of ``groups_from=few``) or from SSA's nets (``net``, as
in the paper, which trains such nets and takes their softmax).

How it differs from ``group_dro`` with ``groups_from=few``: that one draws the group of each row from p in every epoch, balances the
drawn groups in its batches and corrects p for that (``balanced_posterior``), so L_g estimates the mean over all rows. Here p is
used as it is. Batches hold the likeliest groups in equal parts (``batches=balanced``), so rows that are probably of a small group
weigh more in every L_g, or rows in random order (``shuffled``), so small groups are often missing.

Differs from the paper:
- ``estimate=regression``, which is calibrated and trains no net where examples are vectors, is an addition;
- ``adjustment`` is used in the exponent only, as in GroupDRO; a group that is not in the batch keeps its q.

Differs from the released code:
- balanced batches hold the likeliest groups; the released code casts probabilities to integers for its sampler.
"""

from typing import Annotated, ClassVar, Literal, final

from pydantic import Field

from umix.core.weights import soft_sizes
from umix.data.samplers import Balanced, Sampler, Shuffled
from umix.methods.parts.attribute_nets import ATTRIBUTE, TrainsWithFewGroups
from umix.methods.parts.soft_groups import SoftGroups
from umix.methods.parts.spread_groups import spread_groups
from umix.methods.parts.worst_group_risk import WorstGroupRisk
from umix.settings import among
from umix.training.context import Context
from umix.training.train_result import Notes, TrainResult


@final
class PGDRO(TrainsWithFewGroups):
    """Probabilistic group DRO: the worst group's risk, with groups that are known with a probability."""

    name: ClassVar[str] = "pg_dro"
    paper: ClassVar[str] = "Ghosal and Li, Distributionally robust optimization with probabilistic group, AAAI 2023"
    stages: ClassVar[tuple[str, ...]] = ("reference", ATTRIBUTE)

    estimate: Annotated[Literal["regression", "net"], among("regression", "net")] = Field(
        "regression", description="what estimates the groups' probabilities: logistic regression, or SSA's nets"
    )
    batches: Annotated[Literal["balanced", "shuffled"], among("balanced", "shuffled")] = Field(
        "balanced", description="batches of the likeliest groups in equal parts, or of rows in random order"
    )

    def train(self, context: Context) -> TrainResult:
        groups = self._groups(context)
        likeliest = groups.p.argmax(dim=1)
        objective = WorstGroupRisk(
            step_size=self.step_size,
            adjustment=self.adjustment,
            sizes=soft_sizes(groups.p).float().to(context.device),
            group=None if groups.ids is None else groups.ids.to(context.device),
            p=None if groups.ids is not None else groups.p.float().to(context.device),
        )
        sampler: Sampler = Balanced(likeliest) if self.batches == "balanced" else Shuffled()
        return context.fit(objective, sampler=sampler).after(groups.notes + Notes({"predicted_group": likeliest}))

    def _groups(self, context: Context) -> SoftGroups:
        if (known := self.known(context)) is not None:
            return known
        if self.estimate == "net":
            return self.by_nets(context)
        p, notes = spread_groups(context, user=self.name)
        return SoftGroups(p, notes=notes)
