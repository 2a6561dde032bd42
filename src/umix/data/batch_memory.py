"""Reuse of the memory of earlier batches.

The operating system allocates large memory page by page, at the first write to each page, and frees it when a batch is deleted.
For 64 images of 224×224 this costs as much time as transforming them. So memory that is no longer referenced is reused.
"""

import math
import threading

import torch
from torch import Tensor

_LEAST = 2**20  # numbers; smaller blocks are kept by the allocator anyway
_MOST = 4  # blocks that are kept: one with the net, one being written, for training and for evaluation
_BLOCKS: list[tuple[Tensor, int]] = []  # a block, and its number of references while it is unused
_LOCK = threading.Lock()


def empty_batch(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """An uninitialised float32 tensor; on a CPU a large one reuses the memory of an earlier, unreferenced tensor."""
    size = math.prod(shape)
    if device.type != "cpu" or size < _LEAST:
        return torch.empty(shape, device=device)
    with _LOCK:
        for place, (block, idle) in enumerate(_BLOCKS):
            if len(block) >= size and _references(block) <= idle:
                _BLOCKS.append(_BLOCKS.pop(place))  # the block that was unused the longest is freed first
                return block[:size].view(shape)
        with torch.inference_mode(False):  # memory allocated in evaluation must be usable in training too
            block = torch.empty(size)
        _BLOCKS.append((block, _references(block)))
        del _BLOCKS[:-_MOST]
        return block[:size].view(shape)


def _references(block: Tensor) -> int:
    """How many tensors share the memory of ``block``, whether Python or autograd holds them."""
    count: int = torch._C._storage_Use_Count(block.untyped_storage()._cdata)
    return count
