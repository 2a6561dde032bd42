"""Named random streams: every random number of a run is a function of (seed, stage, purpose, epoch).

The method's name is not part of the stream's name. Runs with the same seed therefore share
initialisation and data order, and can be compared in pairs. Every epoch has a new stream, so a
resumed run needs no saved generator state.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import numpy as np


def stream(seed: int, stage: str, purpose: str, epoch: int = 0) -> np.random.Generator:
    """The generator of this name; the same name always gives the same numbers.

    >>> bool(stream(0, "fit", "order").integers(100) == stream(0, "fit", "order").integers(100))
    True
    """
    name = hashlib.sha256(f"{stage}/{purpose}/{epoch}".encode()).digest()
    return np.random.default_rng(np.random.SeedSequence([seed, *np.frombuffer(name, dtype="<u4")]))


@contextmanager
def torch_stream(seed: int, stage: str, purpose: str, epoch: int = 0) -> Iterator[None]:
    """Inside the block, torch's global generators (initialisation, dropout) draw from this stream.

    After the block they have the state that they had before it.
    """
    torch = import_module("torch")  # imported here, because reports use streams without torch
    number = int(stream(seed, stage, purpose, epoch).integers(2**63))
    devices = range(torch.cuda.device_count())
    with torch.random.fork_rng(devices=devices):
        # As torch.manual_seed does, which also takes down a stack trace for every kind of device that is not there: 2 ms.
        torch.default_generator.manual_seed(number)
        if devices:
            torch.cuda.manual_seed_all(number)
        if torch.backends.mps.is_available():
            torch.mps.manual_seed(number)
        yield
