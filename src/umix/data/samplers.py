"""In which order an epoch visits the training examples."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from umix.data.task import Split

#: A sampler gives the rows of the training split that one epoch visits, drawn from the epoch's own stream.
Sampler = Callable[[Split, np.random.Generator], Tensor]


def shuffled(split: Split, rng: np.random.Generator) -> Tensor:
    """Every example once, in random order; depends on the number of examples and the stream only."""
    return torch.from_numpy(rng.permutation(len(split)))
