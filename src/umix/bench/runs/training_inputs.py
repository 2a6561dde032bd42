"""What a run trains: images decoded once, or the features of a frozen net and a head on top of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from umix.bench.spec.plan import Plan
from umix.core.streams import torch_stream
from umix.data.images.decoded_cache import cached
from umix.data.images.image_files import Images
from umix.data.tables.preprocessing import one_hot
from umix.data.task import Task
from umix.errors import UserError
from umix.models.backbone import Backbone
from umix.models.mlp import Linear
from umix.models.model import ModelSettings
from umix.training.engine import Engine
from umix.training.features import featured
from umix.training.progress import Progress


@final
@dataclass(frozen=True, eq=False)
class TrainingInputs:
    """The task and the net as they are trained; ``body`` is the hash of a frozen body where its name does not decide it."""

    task: Task
    net: ModelSettings
    body: str = ""


def for_net(task: Task, net: ModelSettings) -> Task:
    """``task`` as ``net`` takes it: a table as codes and numbers with gaps, or as 0/1 columns and standardised numbers."""
    return task if net.supports_categorical else one_hot(task)


def training_inputs(
    task: Task, plan: Plan, cache: Path, *, seed: int, stream: bool, engine: Engine, progress: Progress
) -> TrainingInputs:
    """``task`` with its images decoded into ``cache`` unless ``stream``; for a frozen net, its features and a linear head.

    ``task`` is what ``for_net`` returns.
    """
    net = plan.model
    if isinstance(net, Backbone) and net.freeze:
        _refuse_boxes(plan)
        stored = featured(task, net, cache, seed=seed, engine=engine, progress=progress)
        return TrainingInputs(stored.task, Linear(dropout=net.dropout), stored.body)
    if isinstance(net, Backbone):
        with torch_stream(seed, "check", "init"):  # what is wrong with the net is said before images are decoded
            net.build(task.splits["train"].example, task.n_classes)
    return TrainingInputs(task if stream else _decoded(task, cache, progress), net.with_categories(task.categories))


def _refuse_boxes(plan: Plan) -> None:
    """Raise where boxes of images would be mixed: the head of a frozen net is trained on features."""
    name = plan.method.name
    if plan.method.model_dump().get("mixing") == "cutmix":
        raise UserError(
            f"{name}.mixing must be input or features for a frozen net, whose head is trained on features that have no boxes to "
            f"cut, got cutmix; set {name}.mixing=features."
        )


def _decoded(task: Task, directory: Path, progress: Progress) -> Task:
    """``task`` with its images, if it has any, decoded once into ``directory``."""
    total = sum(len(split) for split in task.splits.values() if isinstance(split.x, Images))
    if not total:
        return task
    progress.start("decode", total=total, done=0)
    try:
        return cached(task, directory, announce=progress.note, advance=progress.advance)
    finally:
        progress.finish()
