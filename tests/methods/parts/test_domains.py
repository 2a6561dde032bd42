"""What a domain is."""

from collections.abc import Callable
from dataclasses import replace

import torch

from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.methods.coral import CORAL
from umix.methods.parts.domains import DomainsAre
from umix.training.context import Context

Make = Callable[..., Context]


def domains(run: Context, are: DomainsAre) -> tuple[list[int], int]:
    found = CORAL(domains=are).domains_of(run)
    return found.ids.tolist(), found.count


def test_domains_are_attributes_or_cells_of_label_and_attribute(context: Make) -> None:
    run = context(groups=True)
    train = run.splits["train"]
    assert train.attribute is not None
    assert domains(run, "attribute") == (train.attribute.tolist(), 2)
    assert domains(run, "group") == (train.group.tolist(), 4)


def test_groups_without_an_attribute_are_domains_themselves(context: Make) -> None:
    def named(split: Split) -> Split:
        return replace(split, groups=Groups.from_ids(torch.arange(len(split)) % 3, ["a", "b", "c"]))

    task = context().task
    task = Task(task.name, {name: named(split) for name, split in task.splits.items()}, task.classes)
    run = context(task=task, groups=True)
    assert domains(run, "attribute") == domains(run, "group") == (run.splits["train"].group.tolist(), 3)
