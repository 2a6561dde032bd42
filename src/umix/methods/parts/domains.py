"""The domains that methods of domain generalisation compare, and batches that hold them in equal parts."""

import abc
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from pydantic import Field
from torch import Tensor

from umix.core.environments import Environments, environments
from umix.data.batch import Batch
from umix.methods.method import Method
from umix.training.context import Context

#: What is a domain: the value of the attribute, or the group, which is a cell of label and attribute in most tasks.
DomainsAre = Literal["attribute", "group"]


@final
@dataclass(frozen=True, eq=False)
class Domains:
    """The domain of every training example."""

    ids: Tensor  # int64 [n]
    count: int  # some domains may have no example

    def of(self, batch: Batch, *, like: Tensor) -> Environments:
        """The domains of a batch, in the number format of ``like``."""
        return environments(self.ids.index_select(0, batch.index), n_groups=self.count, like=like)


class ComparesDomains(Method, abc.ABC):
    """A method that compares domains of the training examples, which their groups tell."""

    needs_groups: ClassVar[bool] = True

    domains: DomainsAre = Field(
        "attribute",
        description="what is a domain: the value of the attribute, or the group (a cell of label and attribute in most tasks)",
    )

    def domains_of(self, context: Context) -> Domains:
        """The domains of the training split, whose groups must all be known; groups that have no attribute are domains."""
        train = context.splits["train"]
        group, attribute = train.group, train.attribute
        if self.domains == "group" or attribute is None:
            return Domains(group, len(context.task.training_groups))
        return Domains(attribute, int(attribute.max()) + 1)
