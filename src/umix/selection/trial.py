"""What candidates are compared on: the net of the run, or heads on the frozen body of a net that is pretrained.

Nets of one linear layer are stacked and cost next to nothing, while every candidate of a large net is a fit of its own. So where
the body of a net was trained elsewhere, candidates are compared as runs with ``freeze`` are: its features are computed once, and
each candidate is a linear head on them. The winner is trained whole.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from umix.core.streams import torch_stream
from umix.models.backbone import Backbone
from umix.models.mlp import Linear
from umix.selection.halving import stages_folder
from umix.training.context import Context
from umix.training.features import featured
from umix.training.fit_settings import FitSettings
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import Objective

#: How heads are trained: as those on features of one's own (the preset ``arrays``).
HEAD = FitSettings(optimizer="adamw", lr=0.003, weight_decay=0.01, batch_size=128, epochs=30)


@contextmanager
def trial_context(context: Context) -> Iterator[Context]:
    """The context that candidates are trained in: ``context`` itself, or that of heads on features of its pretrained body."""
    net = context.net
    if not isinstance(net, Backbone) or context.engine.processes > 1 or not _is_pretrained(net, context):
        yield context
        return
    whole = replace(context.task, splits=context.splits)  # validation may have other groups than the task's
    with stages_folder(context) as folder:
        task = featured(whole, net, folder, seed=context.seed, engine=context.engine, progress=context.progress).task
        # Those of the whole net have other rates: what a candidate may cost is counted from the simplest head.
        evaluation = replace(context.evaluation, floor=None)
        yield replace(
            context,
            task=task,
            net=Linear(dropout=net.dropout),
            settings=HEAD,
            stages={},
            evaluation=evaluation,
            directory=None,
            splits={name: split.to(context.device) for name, split in task.splits.items()},
        )


def on_features(objective: Objective) -> Objective:
    """``objective`` for inputs that are features, which have no boxes to cut: they are mixed whole."""
    if isinstance(objective, MixupRisk) and objective.mixing == "cutmix":
        return replace(objective, mixing="input")
    return objective


def _is_pretrained(net: Backbone, context: Context) -> bool:
    """Whether the weights of the body are the same for every seed, so that they come from elsewhere, and its head is linear."""
    bodies: list[list[Tensor]] = []
    for seed in (0, 1):
        with torch_stream(seed, "check", "init"):
            body, head = net.parts(context.example, context.task.n_classes)
        if head is not None and not isinstance(head, nn.Linear):
            return False
        bodies.append([one for one in body.parameters() if one.requires_grad])
    return bool(bodies[0]) and all(torch.equal(one, other) for one, other in zip(*bodies, strict=True))
