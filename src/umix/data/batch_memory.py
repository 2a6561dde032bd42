"""Memory for batches that earlier batches have left.

The system hands out large memory page by page, each at its first touch, and takes it back when a batch is gone: at 64 images of
224×224 this costs as much as transforming them. Memory that nobody refers to any more is therefore written again.
"""

import math
import threading

import torch
from torch import Tensor

_LEAST = 2**20  # numbers; what is smaller the allocator keeps by itself
_MOST = 4  # blocks that are kept: one with the net, one being written, for training and for evaluation
_BLOCKS: list[tuple[Tensor, int]] = []  # a block, and the number of its references while nobody uses it
_LOCK = threading.Lock()


def empty_batch(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """An uninitialised float32 tensor; on a CPU a large one lies in memory of an earlier one that nobody refers to any more."""
    size = math.prod(shape)
    if device.type != "cpu" or size < _LEAST:
        return torch.empty(shape, device=device)
    with _LOCK:
        for place, (block, idle) in enumerate(_BLOCKS):
            if len(block) >= size and _references(block) <= idle:
                _BLOCKS.append(_BLOCKS.pop(place))  # the longest unused is the first to go
                return block[:size].view(shape)
        with torch.inference_mode(False):  # memory made in evaluation must serve training too
            block = torch.empty(size)
        _BLOCKS.append((block, _references(block)))
        del _BLOCKS[:-_MOST]
        return block[:size].view(shape)


def _references(block: Tensor) -> int:
    """How many tensors share the memory of ``block``, whether Python or autograd holds them."""
    count: int = torch._C._storage_Use_Count(block.untyped_storage()._cdata)
    return count
