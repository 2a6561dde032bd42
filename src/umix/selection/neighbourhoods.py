"""Neighbourhoods of validation examples, which stand in for groups that nobody knows where candidates are compared.

Examples of the same class that lie together are more likely to share an attribute than others. So a net that fails a minority has
neighbourhoods in which it is mostly wrong, while label noise is spread over all of them.
"""

import torch
from torch import Tensor

from umix.core.neighbours import class_neighbours
from umix.core.streams import stream
from umix.training.context import Context
from umix.training.example_vectors import example_vectors

ROWS = 500


def validation_neighbourhoods(context: Context) -> Tensor:
    """The validation rows that are nearest to each of at most ``ROWS`` random ones and of the same class, [rows, k].

    Neighbours are found by standardised inputs, or, where these are no vectors of numbers, by the features of an ERM net.
    """
    x, y = example_vectors(context, ("train", "val"))["val"], context.task.splits["val"].y.cpu().numpy()
    rng = stream(context.seed, "neighbourhoods", "rows")
    return torch.from_numpy(class_neighbours(x, y, rng=rng, of=rng.permutation(len(y))[:ROWS]))
