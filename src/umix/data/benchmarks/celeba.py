"""CelebA: photographs of faces (Liu et al. 2015), blond hair or not, as Sagawa et al. (2020) use them.

The label is Blond_Hair, the attribute Male; few men are blond. Group = 2·y + male. The tables are the CSV files or the original
.txt files (the number of images, the names of the attributes, then columns set apart by blanks).

Evaluation takes the central 178×178 pixels, resized; training takes random boxes of the whole 178×218 image, as published.
"""

from pathlib import Path
from typing import ClassVar, final

import numpy as np
from torch import Tensor

from umix.data.benchmarks.image_benchmark import (
    NOT_USED,
    THREE,
    Columns,
    ImageTask,
    Listing,
    check_unique,
    codes,
    read_csv,
)
from umix.data.checks.problems import Problems
from umix.data.groups import Groups
from umix.data.images.transforms import CenterSquare
from umix.errors import UserError, unknown

WIDTH, HEIGHT = 178, 218  # of every aligned image
SEXES = ("female", "male")
_ATTRIBUTES, _PARTITION, _IMAGES = "list_attr_celeba", "list_eval_partition", "img_align_celeba"


@final
class CelebA(ImageTask):
    """Photographs of faces, label = blond hair, sex as the spurious attribute (local folder)."""

    name: ClassVar[str] = "celeba"
    folders: ClassVar = ("celebA_v1.0", "celeba", "CelebA")
    tables: ClassVar = (f"{_ATTRIBUTES}.csv", f"{_ATTRIBUTES}.txt")
    contents: ClassVar[str] = f"{_ATTRIBUTES}.csv and {_PARTITION}.csv (or both as .txt) and the images in {_IMAGES}/"
    origin: ClassVar[str] = "the authors' page (mmlab.ie.cuhk.edu.hk/projects/CelebA.html)"
    labels: ClassVar = ("not blond", "blond")
    published: ClassVar = {
        "train": (71629, 66874, 22880, 1387),
        "val": (8535, 8276, 2874, 182),
        "test": (9767, 7535, 2480, 180),
    }

    def listing(self, folder: Path, problems: Problems) -> Listing:
        traits, where = _read(folder, _ATTRIBUTES, ["image_id", "Blond_Hair", "Male"])
        parts, where_parts = _read(folder, _PARTITION, ["image_id", "partition"])
        line, line_parts = (3 if where.endswith(".txt") else 2), (1 if where_parts.endswith(".txt") else 2)
        for name, ids in ((where, traits["image_id"]), (where_parts, parts["image_id"])):
            check_unique(f"{name}: values of image_id", ids, problems)
        split = codes(f"{where_parts}: partition", parts["partition"], THREE, problems, first_line=line_parts)
        code = dict(zip(parts["image_id"], split.tolist(), strict=True))
        listed = set(traits["image_id"])
        problems.add(f"images of {where} must be in {where_parts}", [i for i in traits["image_id"] if i not in code])
        problems.add(f"images of {where_parts} must be in {where}", [i for i in parts["image_id"] if i not in listed])
        images = _IMAGES
        if (folder / _IMAGES / _IMAGES).is_dir():  # some archives hold the folder twice
            images = f"{_IMAGES}/{_IMAGES}"
        binary = {
            column: codes(f"{where}: {column}", traits[column], {-1: 0, 1: 1}, problems, first_line=line)
            for column in ("Blond_Hair", "Male")
        }
        return Listing(
            files=[f"{images}/{image}" for image in traits["image_id"]],
            y=binary["Blond_Hair"],
            attribute=binary["Male"],
            split=np.array([code.get(image, NOT_USED) for image in traits["image_id"]], dtype=np.int64),
        )

    def groups(self, y: Tensor, attribute: Tensor) -> Groups:
        return Groups.cells(y, attribute, labels=self.labels, attributes=SEXES)

    @property
    def stored(self) -> tuple[int, int]:
        side = min(WIDTH, self.size)  # stored small; batches are enlarged on the device
        return round(side * HEIGHT / WIDTH), side

    @property
    def evaluation(self) -> CenterSquare:
        return CenterSquare(self.stored[1], self.size)


def _read(folder: Path, table: str, columns: list[str]) -> tuple[Columns, str]:
    """These columns of a table that is there as .csv or as .txt, and the file's name."""
    if (folder / f"{table}.csv").is_file():
        return read_csv(folder / f"{table}.csv", columns), f"{table}.csv"
    path = folder / f"{table}.txt"
    try:
        lines = [line.split() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{folder} must hold {table}.csv or {table}.txt, but neither can be read ({error}).") from None
    header = columns  # the partition has none
    if table == _ATTRIBUTES:
        header, lines = ["image_id", *(lines[1] if len(lines) > 1 else [])], lines[2:]
    for name in columns:
        if name not in header:
            raise unknown(f"column (wanted from {path})", name, header)
    for number, line in enumerate(lines):
        if len(line) != len(header):
            raise UserError(f"{path} must have {len(header)} columns, but row {number + 1} has {len(line)}.")
    return {name: [line[header.index(name)] for line in lines] for name in columns}, path.name
