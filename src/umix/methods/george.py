"""GEORGE: clusters of each class's features as groups, then GroupDRO (Sohoni et al. 2020).

Step 1: train a net by ERM. Its features tell subclasses apart that its labels do not name. Cluster the examples of every class,
by a mixture of Gaussians or by k-means, in the main directions of the features, which are scaled to length 1, or by hardness, the
largest logit of another class minus the own. The number of clusters, from 2 to 10, is the one with the largest mean of the
clusters' silhouettes. Step 2: train a new net by GroupDRO with the clusters as groups. Group labels are not used.

With one cluster per class it is GroupDRO over classes; if the clusters are the true groups it is GroupDRO. With ``then=umix``
step 2 is UMIX with the error rates of the clusters; the ERM net must not have learned all examples by heart then, or all rates are
0 and so the weights are equal, which the run says (fewer ``reference_epochs`` help).

Differs from the paper:
- features are reduced to their main directions within each class (principal components) instead of by UMAP;
- clusters are not clustered once more (the paper's overclustering, which keeps a small cluster if its silhouette rises and its loss
  is high);
- the epoch is selected as in every run, not by the worst cluster of validation;
- hardness is defined for any number of classes; a silhouette is computed from at most 2,000 examples of a class.

Differs from the released code:
- as above; the released code selects the Waterbirds model by a mean that knows the true shares of subclasses;
- ``adjustment`` acts on the group weights only, as in GroupDRO here.
"""

from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from umix.core.clusters import TRIED, Clusters, Kind, clusters_within, main_directions_within
from umix.core.streams import stream
from umix.methods.parts.inferred_groups import InferredGroups, InfersGroups
from umix.models.model import Model
from umix.settings import among
from umix.training.context import Context
from umix.training.evaluate import require_finite
from umix.training.stage import ErmStage
from umix.training.train_result import Notes

_SHORT = 1e-6  # features of a smaller length are divided by this, as in the released code


@final
class GEORGE(InfersGroups):
    """Clusters of an ERM net's features as groups, then GroupDRO: no groups are given."""

    name: ClassVar[str] = "george"
    paper: ClassVar[str] = (
        "Sohoni et al., No subclass left behind: Fine-grained robustness in coarse-grained classification problems, NeurIPS 2020"
    )
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    reference_epochs: int | None = Field(
        None, ge=1, description="epochs of the ERM net; none: those of the final fit; reference.epochs overrides it"
    )
    by: Annotated[Literal["features", "hardness"], among("features", "hardness")] = Field(
        "features", description="what is clustered: features of the ERM net, or how hard each example is for it"
    )
    directions: int = Field(2, ge=1, description="main directions of a class's features in which it is clustered")
    kind: Annotated[Kind, among("gmm", "kmeans")] = Field("gmm", description="a mixture of Gaussians, or k-means")
    clusters: int | None = Field(
        None, ge=1, description="clusters of each class; none: from 2 to 10, the largest silhouette decides"
    )

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", self.reference_epochs or epochs),)

    def infer(self, context: Context) -> InferredGroups:
        y = context.splits["train"].y
        (stage,) = self.erm_stages(context.settings.epochs)
        net = context.reference(stage)
        logits = require_finite(context.logits(net, "train"), what="logits", stage=stage.name)
        clusters = self._clustered(net, logits, context)
        cell = torch.from_numpy(clusters.cluster).to(y.device)
        one_each = "Every class is one cluster, so the groups are the classes alone."
        warnings = (one_each,) if clusters.n_clusters == len(y.unique()) else ()
        return InferredGroups(
            cell, clusters.n_clusters, logits.argmax(1) != y, Notes({"environment": cell}, warnings=warnings)
        )

    def _clustered(self, net: Model, logits: torch.Tensor, context: Context) -> Clusters:
        y, n_classes = context.splits["train"].y, context.task.n_classes
        labels: np.ndarray = y.cpu().numpy()
        if self.by == "hardness":
            z = hardness(logits, y)[:, None].cpu().double().numpy()
        else:
            features = require_finite(context.features(net, "train"), what="features", stage="reference")
            unit = normalize(features.cpu().double(), dim=1, eps=_SHORT).numpy()
            z = main_directions_within(unit, labels, n_classes=n_classes, width=self.directions)
        return clusters_within(
            z,
            labels,
            n_classes=n_classes,
            sizes=TRIED if self.clusters is None else [self.clusters],
            kind=self.kind,
            average="clusters",
            rng=stream(context.seed, "reference", "clusters"),
        )


def hardness(logits: Tensor, y: Tensor) -> Tensor:
    """The largest logit of another class minus that of ``y``, [n]: above 0 for examples that the classifier gets wrong.

    With one class nothing is hard: 0.

    >>> hardness(torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]]), torch.tensor([0, 2]))
    tensor([-1.,  2.])
    """
    if logits.shape[1] < 2:
        return logits.new_zeros(len(y))
    label = y[:, None]
    return logits.scatter(1, label, -torch.inf).max(dim=1).values - logits.gather(1, label)[:, 0]
