"""A task from a folder of images of one's own.

The class of an image is the folder it lies in (``photos/cat/1.jpg``, or ``photos/train/cat/1.jpg`` where folders called train, val
and test come first), a part of its folders' names, or a column of a table beside the images. A table beside class folders may name
the groups alone. Every image is scaled to a square;
grey, palette and CMYK images become RGB, transparent ones lie on white, turned ones are set upright, and of animated ones the first
frame is taken.
"""

import json
import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

from pydantic import Field, field_serializer, model_validator

from umix.data.checks.problems import FolderCheck, Problems
from umix.data.images.folder_listing import (
    FOLDER,
    PATH,
    SPLIT,
    by_folder,
    by_folder_and_table,
    by_pattern,
    by_table,
    find_images,
    images_hash,
    parts_of,
    require_folder,
    table_in,
)
from umix.data.images.image_files import Images
from umix.data.images.transforms import CenterSquare, RandomBox
from umix.data.rows.known_rows import check_roles, known_rows, small_group_notes
from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import column_names
from umix.data.task import CheckedSource, Task, TaskSource
from umix.errors import Setting, UserError
from umix.run_folder import IMAGE_INPUTS
from umix.store import atomic_write, parsed, reading

if TYPE_CHECKING:
    import polars

SMALL = 64  # pixels: for a small net trained from scratch, fast enough on a CPU
LARGE = 224  # pixels: the size that pretrained nets were trained on


@final
class ImageFolder(RowRoles, CheckedSource):
    """A folder of images of your own: one folder per class, or a table that names them."""

    name: ClassVar[str] = "images"
    default_net: ClassVar[str] = "cnn"

    path: Path = Field(description="the folder")
    label: str = Field("", description="column of the class to predict; must be given unless label_from is folder")
    label_from: Literal["folder"] | None = Field(None, description="folder: the class is the folder an image lies in")
    metadata: Path | None = Field(
        None,
        description="table of the images, of class folders for the groups; else metadata.csv or metadata.parquet in the folder",
    )
    folders: str | None = Field(
        None, description="how the folders of an image name its columns, like {place}/{kind}, instead of a table"
    )
    path_column: str | None = Field(
        None, description="column of the table that names the images, relative to the folder"
    )
    size: int = Field(
        SMALL, ge=8, le=2**14, description=f"height and width of what the net sees; {LARGE} for nets of other libraries"
    )
    augment: bool = Field(True, description="train on random boxes of the images, mirrored half of the time")

    @model_validator(mode="before")
    @classmethod
    def _class_from_one_place(cls, values: dict[str, Any]) -> dict[str, Any]:
        given = values.get("label_from")
        if values.get("folders"):
            for other in ("label_from", "metadata"):
                if values.get(other):
                    raise UserError(
                        "The columns of images must come from one place: give ",
                        Setting("folders"),
                        " or ",
                        Setting(other),
                        ", not both.",
                    )
            parts_of(str(values["folders"]))
        if given is None:
            return values
        by_folder = Setting("label_from", FOLDER)
        if given != FOLDER:
            raise UserError(
                Setting("label_from"),
                f" must be folder, got {given!r}; a column of a table is named with ",
                Setting("label"),
                ".",
            )
        if values.get("label", FOLDER) not in ("", FOLDER):
            named = Setting("label", "COLUMN")
            raise UserError("The class must come from one place: give ", named, " or ", by_folder, ", not both.")
        return {**values, "label": FOLDER}

    @property
    def _names_split(self) -> bool:
        return self.split is not None or (self.folders is not None and SPLIT in parts_of(self.folders))

    @field_serializer("path", "metadata")
    def _file_name(self, path: Path | None) -> str | None:
        return None if path is None else path.resolve().name  # the folder above does not decide the run's numbers

    @classmethod
    def with_defaults(cls, options: dict[str, Any], net: str) -> dict[str, Any]:
        """``options`` with the image size of pretrained nets for nets of other libraries, where no size is given."""
        return {"size": LARGE, **options} if ":" in net else options

    @property
    def title(self) -> str:
        return self.path.resolve().name or self.name

    @cached_property
    def table(self) -> Path | None:
        """The table of the images: the one named or the one in the folder; None where folders say all that is asked."""
        folders_suffice = self.folders is not None or (self.label_from == FOLDER and not self.groups)
        if self.metadata is not None or folders_suffice:
            return self.metadata
        return table_in(self.path)

    @cached_property
    def content(self) -> str:
        """A hash of the images' names and sizes and of the table."""
        return images_hash(self.path, self.table)

    def as_json(self) -> dict[str, Any]:
        """Everything that decides the task, with the table that was found in the folder."""
        return {**TaskSource.as_json(self), "metadata": self._file_name(self.table)}

    def check_files(self) -> None:
        """Raise where the folder or its table is missing, or where nothing names the class of an image."""
        require_folder(self.path)
        if self.folders is not None and not self.label:
            raise UserError(
                f"{self.path} needs ",
                Setting("label"),
                f" with the part of its folders that is the class: {', '.join(parts_of(self.folders))}.",
            )
        if self.label_from is None and self.folders is None and self.table is None:
            raise UserError(
                f"{self.path} needs ",
                Setting("label_from", FOLDER),
                " where each class has a folder, or a table of its images (metadata.csv in it, or ",
                Setting("metadata", "FILE"),
                ") and ",
                Setting("label", "COLUMN"),
                ".",
            )
        if self.table is not None and not self.label:
            raise UserError(
                f"{self.path} needs ",
                Setting("label"),
                f" with the column of the class to predict; {self.table.name} has {', '.join(column_names(self.table))}.",
            )
        self.content  # noqa: B018 — reads the table and the sizes of the images

    def load(self, root: Path | None = None) -> Task:
        """The task, its images decoded when they are needed; ``root`` is not needed."""
        frame, column, notes = self._frame()
        known = known_rows(self._roles(frame), frame)
        reader, files = ImageReader(self.size), frame[column].to_list()
        splits = {}
        for name, rows in known.rows.items():
            x = reader.images(self.path, [files[row] for row in rows.tolist()])
            augment = RandomBox(self.size) if self.augment and name == "train" else None
            splits[name] = known.split(name, x, transform=reader.transform, augment=augment)
        notes += [*known.notes, *small_group_notes(splits)]
        return Task(self.title, splits, known.classes, preprocessing=reader, notes=tuple(notes))

    def check(self, root: Path | None) -> FolderCheck:
        """The images of the folder, their counts and problems; ``root`` is not needed."""
        frame, column, notes = self._frame()
        known, problems = known_rows(self._roles(frame), frame), Problems()
        counts = {
            name: known.split(name, known.y[rows]).group_sizes(known.classes) for name, rows in known.rows.items()
        }
        return FolderCheck(self.path, frame[column].to_list(), counts, problems, notes=[*notes, *known.notes])

    def labelled(self, reader: Reader, new: Any) -> "tuple[NewInputs, polars.DataFrame]":
        frame, column, notes = self._frame()
        inputs = reader.inputs([self.path / name for name in frame[column]])
        return replace(inputs, notes=tuple(notes)), frame

    def _frame(self) -> tuple["polars.DataFrame", str, list[str]]:
        """One row per image, the column that names it, and notes."""
        self.check_files()
        if self.table is None:
            frame, notes = by_folder(self.path) if self.folders is None else by_pattern(self.path, self.folders)
            return frame, PATH, notes
        if self.label_from == FOLDER:
            frame, notes = by_folder_and_table(self.path, self.table, self.path_column)
            return frame, PATH, notes
        frame, column = by_table(self.path, self.table, self.path_column)
        here = str(self.path.resolve()) + os.sep  # a table may name images by absolute paths
        listed, found = {name.removeprefix(here) for name in frame[column]}, find_images(self.path).names
        more = sum(name not in listed for name in found)
        return frame, column, [f"{more} images that {self.table.name} does not name are left out."] if more else []

    def _roles(self, frame: "polars.DataFrame") -> Self:
        """These settings, with folders called train, val and test as the split where no column is named."""
        by_folders = self.table is None or self.label_from == FOLDER
        divided = by_folders and self.split is None and SPLIT in frame.columns
        if divided and self.label_from == FOLDER and (self.folds is not None or self.split_by or self.split_by_date):
            raise UserError(
                f"The folders train and test in {self.title} divide the images already; to divide them otherwise, name their "
                "folders with ",
                Setting("folders", "{part}/{kind}"),
                " and ",
                Setting("label", "kind"),
                ".",
            )
        roles = self.model_copy(update={"split": SPLIT}) if divided else self
        check_roles(roles, frame.columns, self.title if self.table is None else self.table.name)
        return roles


@final
class ImageReader(Reader):
    """How images become inputs of ``size``×``size``; new ones are a folder, all images below it, one file, or a list of files."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (3, self.size, self.size)

    @property
    def transform(self) -> CenterSquare:
        return CenterSquare(self.size, self.size)

    @property
    def side(self) -> int:
        """Height and width of stored images: larger than the net's input, because random boxes are cut from them."""
        return round(self.size * 256 / 224)

    def images(self, folder: Path, files: list[str]) -> Images:
        """These images, decoded when they are needed."""
        return Images(folder, files, height=self.side, width=self.side)

    def inputs(self, new: Any) -> NewInputs:
        import polars

        if isinstance(new, list | tuple):
            folder, names = Path(), [str(name) for name in new]
        else:
            path = Path(new)
            folder, names = (path.parent, [path.name]) if path.is_file() else (path, list(find_images(path).names))
        if not names:
            raise UserError(f"{new} must hold images, but there are none below it.")
        return NewInputs(self.images(folder, names), self.transform, ids={PATH: polars.Series(names)})

    def save(self, directory: Path) -> None:
        atomic_write(directory / IMAGE_INPUTS, json.dumps({"size": self.size}).encode())

    @classmethod
    def load(cls, directory: Path) -> Self:
        path = directory / IMAGE_INPUTS
        with reading(path, "images preprocessing"):
            return cls(int(parsed(path.read_bytes())["size"]))
