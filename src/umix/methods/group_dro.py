"""GroupDRO: minimise the worst group's risk (Sagawa et al. 2020).

Algorithm 1: keep weights q over groups. For every batch, update q_g ← q_g·exp(step_size·L_g) / Z
for the groups in the batch, then descend Σ_g q_g·L_g. Section 3.3: with ``adjustment`` C, L_g is
replaced by L_g + C/√n_g, so that small groups, which generalise worse, get larger weights.

With ``groups_from=few`` the group of a training row is known with a probability only. As in PG-DRO (Ghosal and Li 2023)
L_g = Σ_i p_ig·ℓ_i / Σ_i p_ig and n_g = Σ_i p_ig. Groups of rows are drawn from p in every epoch and then balanced as known
ones are, so p is that of rows drawn in this way (``balanced_posterior``). If all groups are known this is GroupDRO, draw by draw.

Differs from the paper:
- batches hold all groups in equal parts instead of one group at a time, as in the released code;
- a group that is not in the batch keeps its q: its risk is unknown, not 0; a group without training
  examples has no q;
- ``step_size`` may be ``auto``: the worst validation group chooses it; where validation groups are not
  known or may not choose, it is 0.01.

Differs from the released code:
- the adjustment is used in the exponent only; in the risk that is descended it would have no
  gradient.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, final

from pydantic import Field

from umix.core.weights import balanced_posterior, soft_sizes
from umix.data.samplers import Balanced, BalancedDraws, Sampler
from umix.methods.parts.soft_groups import SoftGroups, TrainsWithGroups
from umix.methods.parts.worst_group_risk import WorstGroupRisk
from umix.selection.select import Auto, Candidate, chooses_by_groups, resolve_auto
from umix.settings import among, between
from umix.training.context import Context
from umix.training.train_result import Notes, TrainResult

StepSize = Annotated[float, Field(ge=0)] | Auto
_STEP_SIZES = (0.01, 0.001, 0.1)  # the first is the paper's
_NOBODY_CHOOSES = "no validation groups may choose: the paper's value"


@final
class GroupDRO(TrainsWithGroups):
    """Group distributionally robust optimisation: the groups that do worst weigh most."""

    name: ClassVar[str] = "group_dro"
    paper: ClassVar[str] = "Sagawa et al., Distributionally robust neural networks for group shifts, ICLR 2020"

    step_size: Annotated[StepSize, between(0.001, 0.1, log=True)] = Field(
        0.01,
        description="how fast the group weights follow the risks (the paper's eta_q); auto: the worst validation group chooses",
    )
    adjustment: Annotated[float, among(0.0, 1.0, 2.0, 4.0)] = Field(
        0.0, ge=0, description="C: groups of n examples count C/sqrt(n) worse than they are"
    )

    def train(self, context: Context) -> TrainResult:
        groups = self.soft_groups(context)
        risk, sampler = self.recipe(groups, context)
        return self._fit(risk, sampler, context).after(groups.notes)

    def recipe(self, groups: SoftGroups, context: Context) -> tuple[WorstGroupRisk, Sampler]:
        """What to minimise, and in which order examples are visited, with these ``groups`` of the training examples.

        A step size that is left open is the first that would be tried.
        """
        group = None if groups.ids is None else groups.ids.to(context.device)
        objective = WorstGroupRisk(
            step_size=_STEP_SIZES[0] if self.step_size == "auto" else self.step_size,
            adjustment=self.adjustment,
            sizes=soft_sizes(groups.p).float().to(context.device),
            group=group,
            p=None if group is not None else balanced_posterior(groups.p).float().to(context.device),
        )
        return objective, BalancedDraws(groups.p) if group is None or self.groups_from == "few" else Balanced(group)

    def _fit(self, risk: WorstGroupRisk, sampler: Sampler, context: Context) -> TrainResult:
        """A net that minimises ``risk`` with the step size that is set, or that the validation groups choose."""
        if self.step_size != "auto":
            return context.fit(risk, sampler=sampler)
        if not chooses_by_groups(context):
            default = {"step_size": risk.step_size, "reason": _NOBODY_CHOOSES}
            return context.fit(risk, sampler=sampler).after(Notes(choices=default))
        candidates = [
            Candidate(
                f"group_dro step_size={step_size:g}",
                self.name,
                {"group_dro.step_size": step_size},
                replace(risk, step_size=step_size),
                sampler,
            )
            for step_size in _STEP_SIZES
        ]
        selection = resolve_auto(self, context, candidates)
        return selection.context.fit(selection.winner.objective, sampler=sampler).after(selection.notes)
