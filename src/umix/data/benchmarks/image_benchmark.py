"""The base of the image benchmarks: find the folder, check its table against the published counts, load images lazily.

The table that comes with a benchmark is read as text, and every value is checked.
"""

import abc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from umix.data.checks.problems import FolderCheck, Problems
from umix.data.groups import Groups
from umix.data.images.image_files import Images
from umix.data.images.transforms import CenterSquare, RandomBox
from umix.data.task import CheckedSource, Split, Task, Transform
from umix.errors import Setting, UserError, unknown
from umix.store import escape_glob

Columns = dict[str, list[str]]
Codes = NDArray[np.int64]

#: The splits in the order of their codes.
SPLITS = ("train", "val", "test")
#: For columns that hold the codes themselves.
BINARY, THREE = {0: 0, 1: 1}, {0: 0, 1: 1, 2: 2}
#: The code of values that are wrong, and of images in no split.
NOT_USED = -1
SMALL = 64  # pixels


@final
@dataclass(frozen=True, eq=False)
class Listing:
    """File, label, attribute and split of every image; codes are ``NOT_USED`` where they could not be read."""

    files: list[str]  # relative to the folder
    y: Codes
    attribute: Codes
    split: Codes  # 0 train, 1 val, 2 test

    def rows(self, split: int) -> Codes:
        """Which images are in ``split`` and have a label and an attribute."""
        return np.flatnonzero((self.split == split) & (self.y >= 0) & (self.attribute >= 0))


class ImageTask(CheckedSource, abc.ABC):
    """A published set of images in a local folder; nothing is downloaded."""

    default_net: ClassVar[str] = "cnn"
    folders: ClassVar[tuple[str, ...]]  # names of the archive's folder
    tables: ClassVar[tuple[str, ...]]  # the table that lists the images, under any of these names
    contents: ClassVar[str]  # of the folder, in words
    origin: ClassVar[str]  # where people get it
    labels: ClassVar[tuple[str, ...]]
    #: Images in each split as published: one number per evaluation group, or one for the whole split.
    published: ClassVar[Mapping[str, tuple[int, ...]]]

    allow_subset: bool = Field(False, description="accept other counts than the published ones")
    size: int = Field(224, ge=8, le=2**14, description="height and width of the images that the net sees")
    augment: bool = Field(True, description="train on random boxes of the images, mirrored half of the time")

    @classmethod
    def with_defaults(cls, options: dict[str, Any], net: str) -> dict[str, Any]:
        """``options`` with a small image size for nets trained from scratch, fast enough on a CPU, where no size is given."""
        return options if ":" in net else {"size": min(SMALL, cls.model_fields["size"].default), **options}

    @abc.abstractmethod
    def listing(self, folder: Path, problems: Problems) -> Listing:
        """File, label, attribute and split of every image in ``folder``; errors are noted in ``problems``."""

    @abc.abstractmethod
    def groups(self, y: Tensor, attribute: Tensor) -> Groups:
        """The evaluation groups of these examples."""

    def training_groups(self, attribute: Tensor) -> Groups | None:
        """The groups or domains that training uses; None where they are the evaluation groups."""
        return None

    @property
    @abc.abstractmethod
    def stored(self) -> tuple[int, int]:
        """Height and width at which images are decoded."""

    @property
    def evaluation(self) -> Transform:
        """The transform from decoded images to the inputs of the net."""
        return CenterSquare(self.size, self.size)

    def load(self, root: Path | None) -> Task:
        """The task, its images decoded when they are needed (``umix.data.images.decoded_cache.cached`` decodes them once)."""
        folder, problems = self.find(root), Problems()
        listing = self.listing(folder, problems)
        problems.raise_first(self.name, folder)
        require_published([] if self.allow_subset else self.mismatches(listing))
        splits = {name: self._split(name, folder, listing) for name in SPLITS}
        return Task(self.name, splits, self.labels)

    def check(self, root: Path | None) -> FolderCheck:
        """The images and counts in the archive's table, and its problems."""
        folder, problems = self.find(root), Problems()
        listing = self.listing(folder, problems)
        return FolderCheck(
            folder, listing.files, self.counts(listing), problems, self.mismatches(listing), self.allow_subset
        )

    def find(self, root: Path | None) -> Path:
        """The archive's folder: ``root`` itself or a folder in it."""
        return archive_folder(self.name, root, self.folders, self.tables, contents=self.contents, origin=self.origin)

    def counts(self, listing: Listing) -> dict[str, dict[str, int]]:
        """How many images each split has in each evaluation group."""
        sizes = {}
        for code, name in enumerate(SPLITS):
            groups = self.groups(*_columns(listing, code))
            sizes[name] = dict(zip(groups.names, groups.sizes.tolist(), strict=True))
        return sizes

    def mismatches(self, listing: Listing) -> list[str]:
        """A sentence for every count that differs from the published one."""
        differences = []
        for split, sizes in self.counts(listing).items():
            expected = self.published[split]
            cells = sizes if len(expected) > 1 else {"all groups together": sum(sizes.values())}
            differences += [
                f"The {split} split of {self.name} must hold {number:,} images of {cell!r} as published, got {got:,}"
                for (cell, got), number in zip(cells.items(), expected, strict=True)
                if got != number
            ]
        return differences

    def _split(self, name: str, folder: Path, listing: Listing) -> Split:
        code = SPLITS.index(name)
        y, attribute = _columns(listing, code)
        if not len(y):
            raise UserError(f"The {name} split of {self.name} must hold images, but {folder} lists none.")
        height, width = self.stored
        return Split(
            Images(folder, [listing.files[row] for row in listing.rows(code)], height=height, width=width),
            y,
            self.groups(y, attribute),
            self.training_groups(attribute) if name == "train" else None,
            transform=self.evaluation,
            augment=RandomBox(self.size) if self.augment and name == "train" else None,
        )


def archive_folder(
    task: str, root: Path | None, folders: Sequence[str], tables: Sequence[str], *, contents: str, origin: str
) -> Path:
    """The folder of an archive, ``root`` itself or one of ``folders`` in it: the first that has one of its ``tables``."""
    for place in [] if root is None else [root, *(root / name for name in folders)]:
        if any((place / table).is_file() for table in tables):
            return place
    instead = "no folder was given" if root is None else f"{root} holds neither that nor {' or '.join(tables)}"
    raise UserError(
        f"The task {task} must be given the folder {' or '.join(folders)} with {contents}, but {instead}; get it from {origin}, "
        "unpack it and pass it (or the folder above) as ",
        Setting("root"),
        ": umix downloads nothing.",
    )


def require_published(mismatches: Sequence[str]) -> None:
    """Raise the first of the ``mismatches`` with the published counts, if there are some."""
    if mismatches:
        more = f" ({len(mismatches)} counts differ)" if len(mismatches) > 1 else ""
        raise UserError(f"{mismatches[0]}{more}; get the whole archive or pass ", Setting("allow_subset", "True"), ".")


def _columns(listing: Listing, split: int) -> tuple[Tensor, Tensor]:
    rows = listing.rows(split)
    return torch.from_numpy(listing.y[rows]), torch.from_numpy(listing.attribute[rows])


def read_csv(path: Path, columns: Sequence[str]) -> Columns:
    """These columns of a CSV file with a header, as text; quotes, a byte order mark and Windows line ends are understood."""
    import polars

    try:
        table = polars.read_csv(escape_glob(path), infer_schema=False)
    except (OSError, polars.exceptions.PolarsError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"{path} must be a CSV file in UTF-8 with a header, but it cannot be read ({reason}); save it again as one."
        ) from None
    columns_by_name = {name.strip(): name for name in table.columns}
    for name in columns:
        if name not in columns_by_name:
            raise unknown(f"column (wanted from {path})", name, columns_by_name)
    return {name: table[columns_by_name[name]].fill_null("").to_list() for name in columns}


def codes(
    where: str, values: Sequence[str], legal: Mapping[int, int], problems: Problems, *, first_line: int = 2
) -> Codes:
    """The code that ``legal`` gives to each of ``values``; ``NOT_USED`` for others, which are noted in ``problems``."""
    distinct, inverse = np.unique(np.array(values, dtype=str), return_inverse=True)
    numbered: dict[float, int] = dict(legal.items())
    meant = [numbered.get(_number(text), NOT_USED) for text in distinct]
    read: Codes = np.array(meant, dtype=np.int64)[inverse]
    bad = [f"line {row + first_line}: {values[row]!r}" for row in np.flatnonzero(read == NOT_USED).tolist()]
    problems.add(f"{where} must be {' or '.join(str(number) for number in legal)} in every row", bad)
    return read


def check_unique(where: str, values: Sequence[str], problems: Problems) -> None:
    """Note in ``problems`` which values occur more than once."""
    twice = [f"{value!r} ({n} times)" for value, n in Counter(values).items() if n > 1]
    problems.add(f"{where} must occur once each", twice)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
