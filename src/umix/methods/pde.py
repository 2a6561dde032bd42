"""PDE: progressive data expansion (Deng et al. 2023).

Warm-up: train on a balanced subset, every group cut to as many random rows as the smallest group has, so that the net learns what
tells the classes apart within each group. Expansion: keep training this net, with a lower learning rate, while random rows of any
group that are not in the subset yet are added to it little by little.

The learning rate stays as it is unless ``lr_factor`` is set, because fits of umix are short: on validation a lower rate improved
some scores of one set among four_moons, colored_digits, features of Waterbirds and Adult, and none of the others.

Differs from the paper:
- every epoch visits as many rows as the training split has, so a small subset is visited several times in one epoch; the lengths of
  warm-up and expansion are shares of the fit (``warm_up``, ``expansions``) instead of numbers of epochs;
- ``added`` is the share of the other rows that are in by the end, instead of a number of rows per expansion;
- groups smaller than ``group_size`` start with all their rows.

Differs from the released code:
- added rows are drawn without replacement, as the paper says; the released code draws them with replacement;
- all expansions are alike; for CelebA the released code first goes over to a subset that is balanced by the attribute alone;
- the learning rate drops once, at the first expansion; in the released code it drops only if a scheduler is passed.
"""

import math
from functools import partial
from typing import Annotated, ClassVar, Literal, final

import torch
from pydantic import Field

from umix.core.streams import stream
from umix.core.subsets import balanced_first, grown_size
from umix.data.loader import n_batches
from umix.data.samplers import Growing
from umix.methods.method import Method
from umix.settings import among
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.objective import MeanRisk
from umix.training.train_result import Notes, TrainResult

_FEW = 10  # rows of a group in the balanced subset below which the run says how few they are


@final
class PDE(Method):
    """Progressive data expansion: a group-balanced subset first, then more and more of the other rows."""

    name: ClassVar[str] = "pde"
    paper: ClassVar[str] = (
        "Deng et al., Robust learning with progressive data expansion against spurious correlation, NeurIPS 2023"
    )
    needs_groups: ClassVar[bool] = True

    warm_up: Annotated[float, among(0.25, 0.5, 0.75)] = Field(
        0.5, ge=0, le=1, description="share of the epochs that train on the balanced subset alone"
    )
    added: Annotated[float, among(0.1, 0.3, 1.0)] = Field(
        0.1, ge=0, le=1, description="share of the other rows that are in by the end"
    )
    expansions: Annotated[int, among(1, 5, 20)] = Field(
        10,
        ge=1,
        description="in how many equal parts they are added, the first right after the warm-up; 1: all at once",
    )
    lr_factor: Annotated[float, among(0.01, 0.1, 1.0)] = Field(
        1.0, gt=0, description="by which the learning rate is multiplied at the first expansion"
    )
    group_size: Annotated[int, Field(ge=1)] | Literal["smallest"] = Field(
        "smallest",
        description="rows of every group in the balanced subset; smallest: as many as the smallest group has",
    )

    def train(self, context: Context) -> TrainResult:
        train, settings = context.splits["train"], context.final_settings
        most = None if self.group_size == "smallest" else self.group_size
        group = train.group.cpu().numpy()
        order, first = balanced_first(group, most=most, rng=stream(context.seed, "fit", "subset"))
        per_group = first // len(set(group.tolist()))
        notes = Notes()
        if most is None and per_group < _FEW:
            warning = (
                f"PDE begins with {first:,} of {len(group):,} rows, {per_group:,} per group, because a group is that small; a "
                "larger pde.group_size takes more rows of the others."
            )
            notes = Notes(warnings=(warning,))
        size_at = partial(
            grown_size,
            first=first,
            total=len(group),
            warm_up=self.warm_up,
            added=self.added,
            expansions=self.expansions,
        )
        lr_milestones = (
            self._lr_milestones(len(group), settings) if size_at(1.0) > first and self.lr_factor != 1 else ()
        )
        return context.fit(
            MeanRisk(lr_milestones=lr_milestones), sampler=Growing(torch.from_numpy(order), size_at)
        ).after(notes)

    def _lr_milestones(self, n: int, settings: FitSettings) -> tuple[tuple[int, float], ...]:
        """The first step of the first epoch after the warm-up, and the factor of the learning rate."""
        epoch = math.ceil(self.warm_up * settings.epochs - 1e-9)
        return ((epoch * n_batches(n, settings.batch_size), self.lr_factor),)
