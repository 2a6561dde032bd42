"""Memory of images that Pillow keeps for the next ones while many are read.

Pillow gives the memory of an image back when the image is gone, and the operating system maps it anew, page by page, for the next
one. For photographs of 500×500 this costs a third of decoding them. Pillow can keep the memory, but by default it does not.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_EACH = 4  # blocks for each core: an image as it was stored, upright, resized in one direction, and in both

_LOCK = threading.Lock()
_BEFORE: list[int] = []  # the number of blocks that Pillow kept when each of those who are reading now began


@contextmanager
def kept_memory() -> Iterator[None]:
    """Inside the block Pillow keeps memory of images that are gone: some blocks, and no more than were in use at once."""
    from PIL import Image

    core = Image.core  # type: ignore[attr-defined]  # Pillow documents these functions there
    with _LOCK:
        _BEFORE.append(core.get_blocks_max())
        core.set_blocks_max(max(_BEFORE[0], _EACH * (os.cpu_count() or 1)))
    try:
        yield
    finally:
        with _LOCK:
            first = _BEFORE[0]
            _BEFORE.pop()
            if not _BEFORE:
                core.set_blocks_max(first)
