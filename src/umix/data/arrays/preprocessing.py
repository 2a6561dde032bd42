"""From an array of any number type to the float32 inputs of a net: checked, and standardised by the training rows.

Arrays are converted once, in pieces, so that beside the array itself there is one float32 copy. An .npy file whose copy would
take more than 2 GiB stays on disk and is converted batch by batch; the numbers are the same.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter, with_config
from torch import Tensor
from typing_extensions import TypedDict

from umix.data.arrays.array_file import SUFFIXES, Array, array_names, columns, read_array
from umix.data.inputs import Inputs, Mapped
from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.role_columns import Rows
from umix.errors import UserError
from umix.files import parsed, read_tensors, reading, write_tensors
from umix.run_folder import ARRAY_INPUTS
from umix.settings import checked

_KIND = "arrays preprocessing"
_AT_ONCE = 2**22  # numbers that are converted at once
_IN_MEMORY = 2**31  # bytes of a float32 copy beyond which a mapped array stays where it is
_FARTHEST = 10.0  # deviations, as in tables
_CHANNELS = (1, 3, 4)
Floats = NDArray[np.float32]


@final
@with_config(ConfigDict(strict=True))
class _Known(TypedDict):
    """What is stored beside the learned numbers."""

    x: str
    shape: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    channels_last: bool
    id: str | None


_KNOWN = TypeAdapter(_Known)


@final
@dataclass(frozen=True, eq=False)
class Standardize:
    """Stored examples [batch, ...] as float32: channels first, minus ``mean``, times ``scale``, cut at ±10 (None: as they are)."""

    mean: Tensor | None
    scale: Tensor | None
    channels_last: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        x = x.movedim(-1, 1) if self.channels_last else x
        if self.mean is None or self.scale is None:
            return x.float()
        return x.float().sub(self.mean.to(x.device)).mul_(self.scale.to(x.device)).clamp_(-_FARTHEST, _FARTHEST)

    def __repr__(self) -> str:
        learned = [b"" if part is None else part.numpy().tobytes() for part in (self.mean, self.scale)]
        return f"Standardize({hashlib.sha256(b'|'.join(learned)).hexdigest()[:16]}, {self.channels_last})"


@final
@dataclass(frozen=True, eq=False)
class ArrayPreprocessing(Reader):
    """How the array called ``x``, of examples of this ``shape``, becomes inputs; ``id`` names its rows."""

    x: str
    shape: tuple[int, ...]
    change: Standardize
    id: str | None = None

    @classmethod
    def fit(cls, values: Array, train: Rows, *, x: str, standardize: bool, id: str | None = None) -> Self:
        """The preprocessing fitted on the rows ``train`` of ``values`` [n, ...]; raises where a value is not a finite number."""
        _check_finite(values, x)
        last = values.ndim == 4 and values.shape[3] in _CHANNELS and values.shape[1] not in _CHANNELS
        mean, scale = _moments(values, train, channels_last=last) if standardize else (None, None)
        return cls(x, values.shape[1:], Standardize(mean, scale, last), id)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.shape[-1], *self.shape[:-1]) if self.change.channels_last else self.shape

    def stored(self, values: Array, rows: Rows, fingerprint: str) -> tuple[Tensor | Inputs, Standardize | None]:
        """The ``rows`` of ``values`` as inputs, or memory-mapped with the transform that turns a batch of them into inputs."""
        size = 4 * len(values) * math.prod(values.shape[1:])
        if isinstance(values, np.memmap) and size > _IN_MEMORY and values.dtype.str in ("<f2", "<f4", "<f8", "|u1"):
            return Mapped(torch.from_numpy(values), fingerprint).rows(torch.from_numpy(rows)), self.change
        x, begin = torch.empty(len(rows), *self.input_shape), 0
        for part in _parts(values, rows):
            x[begin : begin + len(part)] = self.change(torch.from_numpy(part))
            begin += len(part)
        return x, None

    def inputs(self, new: Any) -> NewInputs:
        """The rows of a file (.npz with the array of training's name, .npy), or of an array in memory."""
        import polars

        ids: dict[str, polars.Series] = {}
        notes = []
        if isinstance(new, str | Path):
            path = Path(new)
            if path.suffix.lower() not in SUFFIXES:
                raise UserError(f"New arrays must end in {' or '.join(SUFFIXES)}, got {str(path)!r}.")
            values = read_array(path, self.x)
            check_shape(values, self.x)
            if self.id in array_names(path):
                ids = {self.id: columns({self.id: read_array(path, self.id)}, n=len(values))[self.id]}
            elif self.id:
                notes.append(f"{path.name} has no array {self.id!r}: predictions are in the order of its rows.")
        else:
            values = in_memory(new)
            check_shape(values, self.x)
        if values.shape[1:] != self.shape:
            raise UserError(
                f"{self.x!r} must have rows of the shape {list(self.shape)} that the model was trained with, got "
                f"{list(values.shape[1:])}."
            )
        _check_finite(values, self.x)
        x, change = self.stored(values, np.arange(len(values)), "new")
        return NewInputs(x, transform=change, ids=ids, notes=tuple(notes))

    def save(self, directory: Path) -> None:
        """Write everything into ``directory``."""
        known = {"x": self.x, "shape": self.shape, "channels_last": self.change.channels_last, "id": self.id}
        learned = {"mean": self.change.mean, "scale": self.change.scale}
        tensors = {name: tensor for name, tensor in learned.items() if tensor is not None}
        write_tensors(directory / ARRAY_INPUTS, tensors, {"kind": _KIND, "known": json.dumps(known)})

    @classmethod
    def load(cls, directory: Path) -> Self:
        """What ``save`` wrote."""
        path = directory / ARRAY_INPUTS
        tensors, metadata = read_tensors(path, kind=_KIND)
        with reading(path, _KIND):
            stored = parsed(metadata["known"])
        known = checked(_KNOWN, stored, path)
        shape, last = tuple(known["shape"]), known["channels_last"]
        return cls(known["x"], shape, Standardize(tensors.get("mean"), tensors.get("scale"), last), known["id"])


def in_memory(array: Any) -> Array:
    """A tensor, an array or a list as an array."""
    return array.detach().cpu().numpy() if isinstance(array, Tensor) else np.asarray(array)


def check_shape(values: Array, name: str) -> None:
    """Raise where the inputs are not numbers [n, ...]."""
    if values.dtype.kind not in "biuf":
        raise UserError(f"The inputs {name!r} must be numbers, got {values.dtype}.")
    if values.ndim < 2 or not math.prod(values.shape[1:]):
        hint = "; reshape them to [n, 1]" if values.ndim == 1 else ""
        raise UserError(
            f"The inputs {name!r} must be [rows, ...] with at least one number per row, got {list(values.shape)}{hint}."
        )
    if not len(values):
        raise UserError(f"The inputs {name!r} must have rows, but there are none.")


def _check_finite(values: Array, name: str) -> None:
    if values.dtype.kind != "f":
        return
    bad, first, begin = 0, -1, 0
    for part in _parts(values, np.arange(len(values))):
        odd = ~np.isfinite(part).reshape(len(part), -1).all(axis=1)
        if odd.any():
            first = begin + int(odd.argmax()) if first < 0 else first
            bad += int(odd.sum())
        begin += len(part)
    if bad:
        raise UserError(
            f"The inputs {name!r} must be finite numbers, but {bad} of {len(values)} rows hold NaN or infinity, the first "
            f"is row {first} (counted from 0); remove or fill them."
        )


def _parts(values: Array, rows: Rows) -> Iterator[Floats]:
    """The ``rows`` as float32, some at a time."""
    step = max(1, _AT_ONCE // math.prod(values.shape[1:]))
    whole = len(rows) == len(values)  # then the rows are in order, and slices need no copy
    for begin in range(0, len(rows), step):
        part = values[begin : begin + step] if whole else values[rows[begin : begin + step]]
        with np.errstate(over="ignore"):  # becomes infinite, which is refused later
            yield np.ascontiguousarray(part, dtype=np.float32)


def _moments(values: Array, rows: Rows, *, channels_last: bool) -> tuple[Tensor, Tensor]:
    """Mean and 1/deviation of every number, or of every channel of images, over ``rows``; 1 where nothing varies."""
    images = values.ndim == 4

    def total(of: Callable[[Array], Array]) -> Array:
        found: Array = np.zeros(())
        for part in _parts(values, rows):
            seen = of(np.moveaxis(part, -1, 1) if channels_last else part)
            found = found + seen.sum(axis=(0, 2, 3) if images else 0, keepdims=True)
        return found

    n = len(rows) * (math.prod(values.shape[1:]) // (values.shape[3 if channels_last else 1]) if images else 1)
    mean = total(lambda part: part.astype(np.float64)) / n
    deviation = np.sqrt(total(lambda part: (part - mean) ** 2) / n)
    scale = 1 / np.where(deviation > 0, deviation, 1.0)
    return torch.from_numpy(mean).float()[0], torch.from_numpy(scale).float()[0]
