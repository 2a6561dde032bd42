"""The idx files of MNIST: a header that tells type and shape, then the bytes; gzipped or not."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_UNSIGNED_BYTES = 8  # the code of the type; MNIST has no other


class IdxError(Exception):
    """Why a file is no whole idx file of unsigned bytes."""


def find_idx(folder: Path, name: str) -> Path | None:
    """The file called ``name`` in ``folder``, or its gzipped form; None where there is neither."""
    places = (folder / name, folder / f"{name}.gz")
    return next((place for place in places if place.is_file()), None)


def read_idx(path: Path, dimensions: int) -> Bytes:
    """The array in the idx file at ``path``; raises IdxError where its header does not fit its length or ``dimensions``."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise IdxError(f"it cannot be read: {error}") from None
    begin = 4 + 4 * dimensions
    if len(content) < begin or content[:4] != bytes((0, 0, _UNSIGNED_BYTES, dimensions)):
        raise IdxError(f"its header is not that of an idx file with {dimensions} dimensions of bytes")
    shape = struct.unpack(f">{dimensions}I", content[4:begin])
    if len(content) - begin != math.prod(shape):
        raise IdxError(f"its header says {'×'.join(map(str, shape))} bytes, but {len(content) - begin} follow")
    return np.frombuffer(content, np.uint8, offset=begin).reshape(shape)
