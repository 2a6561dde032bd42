"""A state dict as a file of a Trainer's checkpoint: tensors as safetensors, all else as JSON."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from umix.errors import UserError
from umix.files import read_tensors, write_tensors

_KIND = "trainer state"


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write ``state``, whose entries are tensors or values of JSON, to ``path``, atomically."""
    tensors = {name: value.cpu().contiguous() for name, value in state.items() if isinstance(value, Tensor)}
    rest = {name: value for name, value in state.items() if name not in tensors}
    write_tensors(path, tensors, {"kind": _KIND, "rest": json.dumps(rest)})


def read_state(path: Path) -> dict[str, Any]:
    """What ``write_state`` has written to ``path``."""
    if not path.is_file():
        raise UserError(
            f"The checkpoint {path.parent} must hold {path.name} to resume from it, but it does not; resume with the kind of "
            "trainer and the number of processes that wrote it, or train from the start."
        )
    tensors, metadata = read_tensors(path, kind=_KIND)
    return {**tensors, **json.loads(metadata["rest"])}
