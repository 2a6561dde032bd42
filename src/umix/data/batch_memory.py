"""Memory for large batches that is used again when a batch is gone.

The operating system maps new memory page by page at the first write, and takes it back when a batch
is freed. For 64 images of 224×224 this costs as much as transforming them. So a few blocks of
memory are kept, and a new batch is written into a block whose last batch is gone.

A batch is a tensor over a NumPy view that is made for it alone. torch holds a reference to the view
for as long as any tensor uses its memory: slices, detached tensors, and tensors saved by autograd.
So a block is free exactly when the view of its last batch is gone, which a weak reference tells.
"""

import math
import threading
import weakref
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

_LEAST = 2**20  # numbers in a batch; the allocator keeps smaller memory by itself
_MOST = 4  # blocks that are kept: one in use by the net and one being written, for training and for evaluation


@final
@dataclass(eq=False)
class _Block:
    """A block of memory, and a weak reference to the view that its last batch was made of."""

    memory: Tensor
    view: "weakref.ref[np.ndarray[Any, Any]]"


_BLOCKS: list[_Block] = []
_LOCK = threading.Lock()


def empty_batch(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """An uninitialised float32 tensor; a large one on a CPU may use the memory of an earlier batch that is gone."""
    size = math.prod(shape)
    if device.type != "cpu" or size < _LEAST:
        return torch.empty(shape, device=device)
    with _LOCK, torch.inference_mode(False):  # a batch made in evaluation must be an ordinary tensor
        for place, block in enumerate(_BLOCKS):
            if len(block.memory) >= size and block.view() is None:
                memory = _BLOCKS.pop(place).memory
                break
        else:
            memory = torch.empty(size)
        view = memory.numpy()[:size]
        _BLOCKS.append(_Block(memory, weakref.ref(view)))
        del _BLOCKS[:-_MOST]  # the first one is the one that was not used for longest
        return torch.from_numpy(view).view(shape)
