"""Files of weights: their hash, and loading them into a module without unpickling code."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn

from umix.errors import UserError

_SAFE_READER = (2, 6)  # the version of torch from which on weights_only=True runs no code (CVE-2025-32434)


def files_hash(paths: Sequence[Path]) -> str:
    """A hash of the names and bytes of these files, not of their folders.

    A file is read again only if its size or its time of change differs.
    """
    try:
        states = [(path, path.stat()) for path in paths]
        digests = [(path.name, _hash(path.resolve(), state.st_size, state.st_mtime_ns)) for path, state in states]
    except OSError as error:
        raise UserError(f"{error.filename} must be a file that can be read, but it cannot: {error.strerror}.") from None
    return hashlib.sha256(repr(sorted(digests)).encode()).hexdigest()[:32]


@lru_cache(maxsize=256)
def _hash(path: Path, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state_hash(module: nn.Module) -> str:
    """A hash of all parameters and buffers of ``module``."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name}{tensor.dtype}{list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:32]


def load_weights(module: nn.Module, path: Path) -> None:
    """Put the weights of a safetensors file, or of a torch file with nothing but tensors, into ``module``.

    Those of the last layer may be missing or of another shape: the head is new anyway.
    """
    tensors, expected = _tensors(path), module.state_dict()
    missing = [name for name in expected if name not in tensors or tensors[name].shape != expected[name].shape]
    last = next(
        (f"{name}." for name, part in reversed(list(module.named_modules())) if isinstance(part, nn.Linear)), None
    )
    lacking = [name for name in missing if last is None or not name.startswith(last)]
    lacking = [name for name in lacking if not name.endswith("num_batches_tracked")]  # old files do not count batches
    if lacking:
        raise UserError(
            f"{path} must hold the weights of this net, but {len(lacking)} of {len(expected)} are missing or of another shape "
            f"(first: {lacking[0]}); give the file of the same architecture."
        )
    module.load_state_dict({name: tensors[name] for name in expected if name not in missing}, strict=False)


def _tensors(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise UserError(f"There is no file of weights at {path}.")
    if path.suffix != ".safetensors" and tuple(map(int, torch.__version__.split(".")[:2])) < _SAFE_READER:
        raise UserError(
            f"{path} must be a .safetensors file, because files of torch can be made to run code in torch {torch.__version__}; "
            "save it as .safetensors, or install torch 2.6."
        )
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # pickle, zip and torch raise different exceptions
        reason = " ".join(str(error).split("\n")[0].split())
        raise UserError(
            f"{path} must hold tensors by name and nothing else, but it cannot be read ({reason}); save it as .safetensors."
        ) from None
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise UserError(f"{path} must hold tensors by name and nothing else: save the module's state_dict.")
    return content
