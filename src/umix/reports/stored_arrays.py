"""The arrays that a run leaves behind, read without torch."""

import json
from pathlib import Path

import numpy as np

from umix.errors import UserError


def read_arrays(path: Path, *, kind: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and metadata of a safetensors file of this ``kind``; a broken or foreign file is refused in words."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            written = json.loads((file.metadata() or {}).get("umix", "{}"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 — not a dict
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(
            f"{path} must be a whole {kind} file, but it cannot be read ({error}); delete the run and run it again."
        ) from None
    metadata: dict[str, str] = written if isinstance(written, dict) else {}
    if metadata.get("kind") != kind:
        raise UserError(f"{path} must be a {kind} file written by umix, got kind {metadata.get('kind')!r}; delete it.")
    return arrays, metadata


def read_bits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Who was predicted correctly and who was visited in which epoch of a trajectory, both bool [epochs, n]."""
    arrays, metadata = read_arrays(path, kind="trajectory")
    n = int(metadata["n"])
    correct, visited = (np.unpackbits(arrays[name], axis=1, count=n).astype(bool) for name in ("correct", "visited"))
    return correct, visited
