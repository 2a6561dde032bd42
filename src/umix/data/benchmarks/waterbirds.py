"""Waterbirds: photographs of birds pasted on land or water (Sagawa et al. 2020).

The label is the kind of bird, the attribute the background; in training they agree in 95 % of the images. Group = 2·y + place.

Differs from the published transforms: training boxes are cut from the image scaled to 256×256 (at size 224), the size at which
it is decoded once, instead of from the file, so that a box's ratio of sides is relative to that square.
"""

from pathlib import Path
from typing import ClassVar, final

from torch import Tensor

from umix.data.benchmarks.image_benchmark import BINARY, THREE, ImageTask, Listing, check_unique, codes, read_csv
from umix.data.checks.problems import Problems
from umix.data.groups import Groups

PLACES = ("land", "water")


@final
class Waterbirds(ImageTask):
    """Photographs of birds, label = waterbird, background as the spurious attribute (local folder)."""

    name: ClassVar[str] = "waterbirds"
    folders: ClassVar = ("waterbirds_v1.0", "waterbird_complete95_forest2water2")
    tables: ClassVar = ("metadata.csv",)
    contents: ClassVar[str] = "metadata.csv (img_id, img_filename, y, split, place) and the images it names"
    origin: ClassVar[str] = "the authors' page (github.com/kohpangwei/group_DRO) or WILDS"
    labels: ClassVar = ("landbird", "waterbird")
    published: ClassVar = {
        "train": (3498, 184, 56, 1057),
        "val": (467, 466, 133, 133),
        "test": (2255, 2255, 642, 642),
    }

    def listing(self, folder: Path, problems: Problems) -> Listing:
        table = read_csv(folder / "metadata.csv", ["img_id", "img_filename", "y", "split", "place"])
        for column in ("img_id", "img_filename"):
            check_unique(f"metadata.csv: values of {column}", table[column], problems)
        return Listing(
            files=table["img_filename"],
            y=codes("metadata.csv: y", table["y"], BINARY, problems),
            attribute=codes("metadata.csv: place", table["place"], BINARY, problems),
            split=codes("metadata.csv: split", table["split"], THREE, problems),
        )

    def groups(self, y: Tensor, attribute: Tensor) -> Groups:
        return Groups.cells(y, attribute, labels=self.labels, attributes=PLACES)

    @property
    def stored(self) -> tuple[int, int]:
        side = round(self.size * 256 / 224)
        return side, side
