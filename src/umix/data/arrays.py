"""Arrays of one's own: precomputed features, or images, with a row for each example.

An .npz file holds the inputs beside the labels, groups and splits. An .npy file holds the inputs alone; a table then holds the
rest, with its rows in the same order. Inputs become float32 [n, ...], standardised by the training rows; pixels
[n, height, width, 3] become [n, 3, height, width].

Arrays are converted once, in pieces, so that beside the array itself there is one float32 copy. An .npy file whose copy would
take more than 2 GiB stays on disk and is converted batch by batch; the numbers are the same. Nothing is ever unpickled.
"""

import hashlib
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, field_serializer
from torch import Tensor

from umix.data.inputs import Inputs, Mapped
from umix.data.rows.known_rows import check_roles, known_rows, small_group_notes
from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.role_columns import Rows
from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import ARRAYS, as_frame, check_file, column_names, content_hash, file_hash
from umix.data.task import Task, TaskSource
from umix.errors import Setting, UserError, unknown
from umix.limits import require_memory
from umix.run_folder import ARRAY_INPUTS
from umix.store import parsed, read_tensors, reading, write_tensors

if TYPE_CHECKING:
    import polars

_KIND = "arrays preprocessing"
_AT_ONCE = 2**22  # numbers that are converted at once
_IN_MEMORY = 2**31  # bytes of a float32 copy beyond which a mapped array stays where it is
_FARTHEST = 10.0  # deviations, as in tables
_CHANNELS = (1, 3, 4)
Array = NDArray[Any]
Floats = NDArray[np.float32]


@final
class ArraySource(RowRoles, TaskSource):
    """Arrays of your own (.npz, or .npy and a table): which array is what, and how the rows are divided."""

    name: ClassVar[str] = "arrays"

    path: Path = Field(description="the file")
    rows: Path | None = Field(None, description="table with label, groups and split of every row of the inputs")
    x: str = Field("x", description="array of the inputs, [rows, ...]")
    standardize: bool = Field(
        True, description="inputs minus their training mean, divided by their deviation; of images by channel"
    )

    @field_serializer("path", "rows")
    def _file_name(self, path: Path | None) -> str | None:
        return None if path is None else path.name  # the folder does not decide the run's numbers

    @property
    def title(self) -> str:
        return self.path.stem

    @cached_property
    def content(self) -> str:
        """The hash of the array file, and of the table where there is one."""
        return file_hash(self.path) + ("" if self.rows is None else f"-{content_hash(self.rows)}")

    def check_files(self) -> None:
        """Raise where a file is missing or unreadable, or where nothing names the label of each row."""
        self.content  # noqa: B018 — reads the files
        if self.rows is None and self.path.suffix.lower() == ".npy":
            raise UserError(
                f"{self.path.name} holds inputs only: name a table with the label of each of its rows, in order, with ",
                Setting("rows"),
                ".",
            )
        if not self.label:
            there = array_names(self.path) if self.rows is None else column_names(self.rows)
            raise UserError(
                f"{self.path.name} needs ",
                Setting("label"),
                f" with the {'array' if self.rows is None else 'column'} of the class to predict; there are "
                f"{', '.join(there)}.",
            )

    def load(self, root: Path | None = None) -> Task:
        """The task in the files; ``root`` is not needed."""
        self.check_files()
        if self.rows is not None:
            frame = as_frame(self.rows)
            check_roles(self, frame.columns, self.rows.name)
            values = read_array(self.path, self.x)
            check_shape(values, self.x)
            self._check_rows(frame, len(values))
        else:
            names = array_names(self.path)
            check_roles(self, [name for name in names if name != self.x] or names, self.path.name)
            values = read_array(self.path, self.x)
            check_shape(values, self.x)
            roles = dict.fromkeys((*self.single, *self.groups))
            frame = columns({name: read_array(self.path, name) for name in roles}, n=len(values))
        return self.task(values, frame, fingerprint=self.content)

    def labelled(self, reader: Reader, new: Any) -> "tuple[NewInputs, polars.DataFrame]":
        """As for every kind of data; in memory ``new`` is a mapping from names to arrays, as an .npz file is."""
        named = (*self.single, *self.groups)
        if isinstance(new, Mapping):
            if self.x not in new:
                raise unknown("array of the inputs", self.x, list(new))
            inputs, arrays = reader.inputs(new[self.x]), {name: in_memory(new[name]) for name in named if name in new}
        else:
            self.check_files()
            inputs = reader.inputs(self.path)
            arrays = {name: read_array(self.path, name) for name in array_names(self.path) if name in named}
        if self.rows is not None:
            frame = as_frame(self.rows)
            self._check_rows(frame, len(inputs.x))
            return inputs, frame
        return inputs, columns(arrays, n=len(inputs.x))

    def _check_rows(self, frame: "polars.DataFrame", n: int) -> None:
        if len(frame) != n:
            raise UserError(
                f"{self.rows and self.rows.name} must have a row for each of the {n} rows of {self.path.name}, got {len(frame)}."
            )

    def task(self, values: Array, frame: "polars.DataFrame", *, fingerprint: str) -> Task:
        """The task of the inputs ``values``; the columns of ``frame`` are the other arrays."""
        known = known_rows(self, frame)
        preprocessing = ArrayPreprocessing.fit(
            values, known.rows["train"], x=self.x, standardize=self.standardize, id=self.id
        )
        splits = {}
        for name, rows in known.rows.items():
            x, change = preprocessing.stored(values, rows, fingerprint)
            splits[name] = known.split(name, x, transform=change)
        notes = known.notes + tuple(small_group_notes(splits))
        return Task(self.title, splits, known.classes, preprocessing=preprocessing, notes=notes)


def task_from_arrays(
    x: Any,
    y: Any,
    *,
    groups: Any = None,
    split: Any = None,
    split_by: Any = None,
    split_by_date: Any = None,
    weight: Any = None,
    id: Any = None,
    **options: Any,
) -> Task:
    """The task of inputs ``x`` and labels ``y`` in memory: arrays, lists or tensors.

    Args:
        x: inputs, [n, ...].
        y: labels, [n].
        groups: an array [n], or a mapping from names to arrays [n]; a group is a label with these values.
        split: train, val or test of every row, [n]; by default rows are divided at random, 60/20/20.
        split_by: values of which none is in two splits, such as patients, [n].
        split_by_date: when every row was, [n]: the oldest rows train, the newest test.
        weight: what each training row counts for, [n].
        id: a name of each row, [n].
        options: settings of arrays that name no array, as ``standardize=False`` or ``val_share=0.1``.

    >>> import numpy as np
    >>> x, place = np.random.default_rng(0).normal(size=(40, 3)), ["land", "water"] * 20
    >>> task_from_arrays(x, ["bird", "bird", "none", "none"] * 10, groups=place).groups
    ('bird, land', 'bird, water', 'none, land', 'none, water')

    """
    values = in_memory(x)
    check_shape(values, "x")
    by = groups if isinstance(groups, Mapping) else {} if groups is None else {"group": groups}
    single = {"split": split, "split_by": split_by, "split_by_date": split_by_date, "weight": weight, "id": id}
    arrays = {name: in_memory(array) for name, array in {"y": y, **by, **single}.items() if array is not None}
    roles: dict[str, Any] = {name: None if array is None else name for name, array in single.items()}
    source = ArraySource(
        path=Path("arrays"), label="y", groups=tuple(by), **roles, **options
    )  # the path is only a title
    check_roles(source, list(arrays), "the arrays")
    task = source.task(values, columns(arrays, n=len(values)), fingerprint=_content(values))
    return replace(task, kind=ArraySource.name)


def _content(values: Array) -> str:
    """A hash of an array in memory."""
    return hashlib.sha256(np.ascontiguousarray(values).view(np.uint8).data).hexdigest()[:32]


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
            if path.suffix.lower() not in ARRAYS:
                raise UserError(f"New arrays must end in {' or '.join(ARRAYS)}, got {str(path)!r}.")
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
            known = parsed(metadata["known"])
            change = Standardize(tensors.get("mean"), tensors.get("scale"), known["channels_last"])
            return cls(known["x"], tuple(known["shape"]), change, known["id"])


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


def array_names(path: Path) -> list[str]:
    """The names of the arrays in an .npz file, in order; the array of an .npy file has none."""
    check_file(path)
    if path.suffix.lower() == ".npy":
        return []
    with _readable(path), np.load(path) as file:
        return list(file.files)


def read_array(path: Path, name: str) -> Array:
    """The array called ``name`` in an .npz file, or the one of an .npy file, which is memory-mapped."""
    check_file(path)
    if path.suffix.lower() == ".npy":
        with _readable(path):
            return np.lib.format.open_memmap(path, mode="c")
    with _readable(path, name), np.load(path) as file:
        if name not in file.files:
            raise unknown(f"array of {path.name}", name, file.files)
        size = file.zip.getinfo(f"{name}.npy").file_size
        require_memory(
            size, f"The array {name!r} of {path.name} takes", "save it as .npy, which is not read as a whole"
        )
        array: Array = file[name]
        return array


@contextmanager
def _readable(path: Path, name: str = "") -> Iterator[None]:
    """Inside the block arrays are read from the file at ``path``; whatever NumPy raises of its content becomes one sentence."""
    if path.suffix.lower() == ".npz" and not zipfile.is_zipfile(path):
        raise UserError(
            f"{path} must be a whole npz file, but it is none; write it with numpy.savez, or rename it to .npy where it holds a "
            "single array."
        )
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # of the archive, of an array's header, or of its numbers
        reason = " ".join(str(error).split()).rstrip(".")
        if any(word in reason.lower() for word in ("pickle", "object array", "python objects")):
            what = f"The array {name!r} of {path.name}" if name else path.name
            raise UserError(
                f"{what} must hold plain numbers or texts, but it holds Python objects, which are never read; save it again "
                "with a number or text type (astype)."
            ) from None
        raise UserError(f"{path} must be a whole {path.suffix[1:]} file, but it cannot be read ({reason}).") from None


def columns(arrays: dict[str, Any], *, n: int) -> "polars.DataFrame":
    """Arrays of one value for each of ``n`` rows (numbers, texts, true and false) as the columns of a table."""
    import polars

    return polars.DataFrame([_column(name, np.asarray(values), n) for name, values in arrays.items()])


def _column(name: str, values: Array, n: int) -> "polars.Series":
    import polars

    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise UserError(f"The array {name!r} must hold one value per row, [{n}], got {list(values.shape)}.")
    if len(values) != n:
        raise UserError(
            f"The array {name!r} must have a value for each of the {n} rows of the inputs, got {len(values)}."
        )
    if values.dtype.kind == "O" and all(value is None or isinstance(value, str) for value in values):
        return polars.Series(name, values.tolist(), dtype=polars.String)
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values, "utf-8")
        except UnicodeDecodeError:
            raise UserError(f"The texts of the array {name!r} must be UTF-8, but some are not.") from None
    if values.dtype.kind not in "biufU":
        raise UserError(f"The array {name!r} must hold numbers, texts, or true and false, got {values.dtype}.")
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
    return polars.Series(name, values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("=")))
