"""Camelyon17: patches of lymph node sections from five hospitals (Bandi et al. 2019; Koh et al. 2021).

The label is whether the centre of the patch holds tumour. Training takes hospitals 0, 3 and 4, validation is hospital 1 and test
hospital 2: both out of distribution. On disk ``split`` is 0 for training and 1 for a validation sample of the same hospitals,
which is not used here; the other two are told by ``center``.

Evaluation groups are the hospitals. Val and test hold one hospital each, so there the rate of the worst group *is* the plain
average, the headline of this task; the average adjusted to training shares does not exist, as no test hospital is in training.
The domains that group-aware methods train with are the three training hospitals.
"""

from pathlib import Path
from typing import ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from umix.data.benchmarks.image_benchmark import (
    BINARY,
    NOT_USED,
    SPLITS,
    ImageTask,
    Listing,
    check_unique,
    codes,
    read_csv,
)
from umix.data.checks.problems import Problems
from umix.data.groups import Groups

HOSPITALS = tuple(f"hospital {center}" for center in range(5))
TRAIN, VAL, TEST = (0, 3, 4), 1, 2


@final
class Camelyon17(ImageTask):
    """Patches of lymph nodes, label = tumour, tested on a hospital that is not in training (local folder)."""

    name: ClassVar[str] = "camelyon17"
    folders: ClassVar = ("camelyon17_v1.0",)
    tables: ClassVar = ("metadata.csv",)
    contents: ClassVar[str] = "metadata.csv (patient, node, x_coord, y_coord, tumor, center, split) and patches/"
    origin: ClassVar[str] = "WILDS (wilds.stanford.edu)"
    labels: ClassVar = ("normal", "tumor")
    published: ClassVar = {"train": (302436,), "val": (34904,), "test": (85054,)}

    size: int = Field(96, ge=8, le=2**14, description="height and width of the images that the net sees")
    augment: bool = Field(False, description="train on random boxes of the images, mirrored half of the time")

    def listing(self, folder: Path, problems: Problems) -> Listing:
        names = ["patient", "node", "x_coord", "y_coord", "tumor", "center", "split"]
        table = read_csv(folder / "metadata.csv", names)
        spots = zip(*(table[name] for name in names[:4]), strict=True)
        files = [_patch(patient.zfill(3), node, x, y) for patient, node, x, y in spots]
        check_unique("metadata.csv: patches", files, problems)
        center = codes(
            "metadata.csv: center", table["center"], {center: center for center in range(len(HOSPITALS))}, problems
        )
        split = codes("metadata.csv: split", table["split"], BINARY, problems)
        train = np.where(split == 0, SPLITS.index("train"), NOT_USED)
        return Listing(
            files=files,
            y=codes("metadata.csv: tumor", table["tumor"], BINARY, problems),
            attribute=center,
            split=np.select([center == VAL, center == TEST], [SPLITS.index("val"), SPLITS.index("test")], train),
        )

    def groups(self, y: Tensor, attribute: Tensor) -> Groups:
        return Groups.from_ids(attribute, HOSPITALS, attribute=attribute)

    def training_groups(self, attribute: Tensor) -> Groups:
        ids = torch.searchsorted(torch.tensor(TRAIN), attribute)
        return Groups.from_ids(ids, [HOSPITALS[center] for center in TRAIN], attribute=ids)

    @property
    def stored(self) -> tuple[int, int]:
        return self.size, self.size


def _patch(patient: str, node: str, x: str, y: str) -> str:
    where = f"patient_{patient}_node_{node}"
    return f"patches/{where}/patch_{where}_x_{x}_y_{y}.png"
