"""A closer look at some training examples, ``closer.safetensors``: the most uncertain ones, and as many drawn at random.

``index`` says which they are, ``features`` [k, width] what the trained net makes of them, ``prediction`` [k] which class it
predicts after its last epoch and ``correct`` [k] whether that is right. Inputs that are small and not images in files are kept
too, as ``x``: nobody can look them up in a file.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from umix.core.streams import stream
from umix.data.lazy import Lazy, Sliced
from umix.files import write_tensors
from umix.nets.net import Net
from umix.run_folder import EXAMPLE_FEATURES
from umix.training.evaluate import outputs
from umix.training.trainer import Trainer

#: How many of each kind: a pass over them costs little beside an epoch, and they show any cluster worth a name.
MOST = 500
_SMALL = 4096  # numbers in an input that is kept


def write_example_features(directory: Path, trainer: Trainer, net: Net, x: Tensor | Lazy) -> None:
    """Write the closer look at the run's training examples, whose inputs were ``x`` before anything was made of them.

    A run that does not know their uncertainty has none.
    """
    u = trainer.kept.get("uncertainty")
    if u is None:
        return
    index = torch.from_numpy(chosen(u.numpy(), stream(trainer.seed, "report", "closer")))
    train = trainer.splits["train"].rows(index.to(trainer.device))
    features = outputs(net, train, batch_size=trainer.settings.batch_size, features=True)
    with torch.no_grad():
        prediction = net.head(features).argmax(dim=1)
    tensors = {
        "index": index,
        "features": _half(features.flatten(1)),
        "correct": prediction == train.y,
        "prediction": prediction.int(),
    }
    if isinstance(x, Tensor | Sliced) and x[0].numel() <= _SMALL:
        tensors["x"] = x[index] if isinstance(x, Tensor) else x.take(index)
    contents = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    write_tensors(directory / EXAMPLE_FEATURES, contents, {"kind": "closer"})


def _half(features: Tensor) -> Tensor:
    """The features in half precision, which clusters do not miss; what is too large for it becomes its largest number."""
    largest = torch.finfo(torch.float16).max
    return features.clamp(-largest, largest).half()


def chosen(u: np.ndarray, rng: np.random.Generator, *, most: int = MOST) -> np.ndarray:
    """The indices of the ``most`` highest ``u`` [n], ties broken at random, and of as many of the others, in order.

    >>> chosen(np.array([0.0, 0.9, 0.5, 1.0]), np.random.default_rng(0), most=2).tolist()
    [0, 1, 2, 3]
    """
    order = rng.permutation(len(u))
    order = order[np.argsort(-u[order], kind="stable")]
    return np.sort(np.concatenate([order[:most], rng.permutation(order[most:])[:most]]))
