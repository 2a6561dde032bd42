"""How methods train the last layer again: the settings of this fit, and the fit in which all classes occur as often."""

import abc
from typing import Annotated, Any

from pydantic import Field

from umix.data.samplers import Balanced
from umix.data.task import Split
from umix.methods.method import Method
from umix.nets.net import Net
from umix.settings import between
from umix.training.fit_settings import FitSettings
from umix.training.last_layer import fit_last_layer
from umix.training.objective import MeanRisk
from umix.training.trainer import Trainer


class LayerFit(Method, abc.ABC):
    """A method that ends with a fit of the last layer alone, on features of mean 0 and deviation 1."""

    layer_lr: Annotated[float, between(0.001, 0.1, log=True)] = Field(
        0.01, gt=0, description="learning rate of the last layer"
    )
    layer_epochs: int = Field(30, ge=1, description="epochs of the last layer")

    def layer_settings(self, trainer: Trainer, **changes: Any) -> FitSettings:
        """The settings of the last layer's fit: sgd with momentum 0.9, the run's batches, and ``changes``.

        What users set for ``fit`` is about the net before.
        """
        own = {"epochs": self.layer_epochs, "lr": self.layer_lr, "batch_size": trainer.settings.batch_size}
        return FitSettings(**{**own, **changes})

    def fit_balanced(
        self, trainer: Trainer, net: Net, rows: Split, *, new: bool, val: Split | None = None, **changes: Any
    ) -> Net:
        """``net`` with its last layer trained on ``rows``, in batches in which all classes occur as often.

        The other arguments are those of ``fit_last_layer``; ``changes`` are those of ``layer_settings``.
        """
        settings = self.layer_settings(trainer, **changes)
        return fit_last_layer(
            trainer, net, rows, MeanRisk(), settings=settings, sampler=Balanced(rows.y), new=new, val=val
        )
