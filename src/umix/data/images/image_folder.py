"""A task from a folder of images of one's own.

The class of an image is the folder it lies in (``photos/cat/1.jpg``, or ``photos/train/cat/1.jpg`` where folders called train, val
and test come first), or a column of a table beside the images. Every image is scaled to a square; grey, palette and CMYK images
become RGB, transparent ones lie on white, turned ones are set upright, and of animated ones the first frame is taken.
"""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

from pydantic import Field, field_serializer, model_validator

from umix.data.checks.problems import Checked, Findings
from umix.data.images.folder_listing import FOLDER, PATH, SPLIT, TABLES, by_folder, by_table, find_images
from umix.data.images.image_files import Images
from umix.data.images.transforms import CenterSquare, RandomBox
from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.row_notes import small_groups
from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import column_names, content_hash
from umix.data.task import CheckedSource, Task
from umix.errors import UserError
from umix.files import write_whole

if TYPE_CHECKING:
    import polars

FILE = "images.json"
_KIND = "umix images 1"
SMALL, LARGE = (
    64,
    224,
)  # for a small net from scratch, at a pace that a CPU can keep; for nets that were trained on such images


@final
class ImageFolder(RowRoles, CheckedSource):
    """A folder of images of your own: one folder per class, or a table that names them."""

    name: ClassVar[str] = "images"
    default_net: ClassVar[str] = "cnn"

    path: Path = Field(description="the folder")
    content: str = Field(
        "", description="hash of the images' names and sizes and of the table, which decides the run's key"
    )
    label_from: Literal["folder"] | None = Field(None, description="folder: the class is the folder an image lies in")
    metadata: Path | None = Field(
        None, description="table of the images; else metadata.csv or metadata.parquet in the folder"
    )
    path_column: str | None = Field(
        None, description="column of the table that names the images, relative to the folder"
    )
    size: int = Field(
        SMALL, ge=8, description=f"height and width of what the net sees; {LARGE} for nets of other libraries"
    )
    augment: bool = Field(True, description="train on random boxes of the images, mirrored half of the time")

    @model_validator(mode="before")
    @classmethod
    def _know_the_folder(cls, values: dict[str, Any]) -> dict[str, Any]:
        folder = Path(values["path"])
        found = find_images(folder)
        table = Path(values["metadata"]) if values.get("metadata") else None
        given = values.get("label_from")
        if given not in (None, FOLDER):
            raise UserError(f"--label-from must be folder, got {given!r}; a column of a table is named with --label.")
        by_name = given == FOLDER
        if table is None and not by_name:
            table = next((folder / name for name in TABLES if (folder / name).is_file()), None)
        if by_name and values.get("label"):
            raise UserError("The class must come from one place: give --label COLUMN or --label-from folder, not both.")
        if by_name and table is not None:
            raise UserError(
                "The class must come from one place: give --metadata FILE or --label-from folder, not both."
            )
        if by_name:
            values = {**values, "label": FOLDER}
        elif table is None:
            raise UserError(
                f"{folder} needs --label-from folder where each class has a folder, or a table of its images "
                "(metadata.csv in it, or --metadata FILE) and --label COLUMN."
            )
        elif not values.get("label"):
            raise UserError(
                f"{folder} needs --label with the column of the class to predict; {table.name} has "
                f"{', '.join(column_names(table))}."
            )
        digest = hashlib.sha256(b"" if table is None else content_hash(table).encode())
        for name in found.names:
            digest.update(f"{name}\0{(folder / name).stat().st_size}\0".encode("utf-8", "surrogateescape"))
        return {**values, "path": folder, "metadata": table, "content": digest.hexdigest()[:32]}

    @field_serializer("path", "metadata")
    def _file_name(self, path: Path | None) -> str | None:
        return None if path is None else path.resolve().name  # where it lies decides nothing

    @classmethod
    def suited(cls, options: dict[str, Any], net: str) -> dict[str, Any]:
        """``options`` with the size that nets of other libraries were made for, where no size is given."""
        return {"size": LARGE, **options} if ":" in net else options

    @property
    def title(self) -> str:
        return self.path.resolve().name or self.name

    def load(self, root: Path | None = None) -> Task:
        """The task, its images decoded when they are needed; ``root`` is not needed."""
        frame, column, notes = self._frame()
        known = self._roles(frame).known_rows(frame)
        reader, files = ImageReader(self.size), frame[column].to_list()
        splits = {}
        for name, rows in known.rows.items():
            x = reader.images(self.path, [files[row] for row in rows.tolist()])
            augment = RandomBox(self.size) if self.augment and name == "train" else None
            splits[name] = known.split(name, x, transform=reader.transform, augment=augment)
        notes += [*known.notes, *small_groups(splits)]
        return Task(self.title, splits, known.classes, preprocessing=reader, notes=tuple(notes))

    def check(self, root: Path | None) -> Checked:
        """What the folder says of its images; ``root`` is not needed."""
        frame, column, notes = self._frame()
        known, findings = self._roles(frame).known_rows(frame), Findings()
        counts = {
            name: known.split(name, known.y[rows]).group_sizes(known.classes) for name, rows in known.rows.items()
        }
        return Checked(self.path, frame[column].to_list(), counts, findings, notes=[*notes, *known.notes])

    def _frame(self) -> tuple["polars.DataFrame", str, list[str]]:
        """One row per image, the column that names it, and notes."""
        if self.metadata is None:
            frame, notes = by_folder(self.path)
            return frame, PATH, notes
        frame, column = by_table(self.path, self.metadata, self.path_column)
        listed, found = set(frame[column].to_list()), find_images(self.path).names
        more = sum(name not in listed for name in found)
        return frame, column, [f"{more} images that {self.metadata.name} does not name are left out."] if more else []

    def _roles(self, frame: "polars.DataFrame") -> RowRoles:
        """The roles of the columns: folders called train, val and test are a split where no column is named."""
        divided = self.metadata is None and self.split is None and SPLIT in frame.columns
        roles = {name: getattr(self, name) for name in RowRoles.model_fields}
        chosen = RowRoles(**{**roles, "split": SPLIT} if divided else roles)
        chosen.check_roles(frame.columns, self.title if self.metadata is None else self.metadata.name)
        return chosen


@final
class ImageReader(Reader):
    """How images become inputs of ``size``×``size``; new ones are a folder, all images below it, or one file."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def transform(self) -> CenterSquare:
        return CenterSquare(self.size, self.size)

    def images(self, folder: Path, files: list[str]) -> Images:
        """These images, decoded when they are needed."""
        side = round(self.size * 256 / 224)  # boxes are cut from more than the net sees
        return Images(folder, files, height=side, width=side)

    def inputs(self, new: Any) -> NewInputs:
        import polars

        path = Path(new)
        folder, names = (path.parent, [path.name]) if path.is_file() else (path, list(find_images(path).names))
        if not names:
            raise UserError(f"{path} must hold images, but there are none below it.")
        return NewInputs(self.images(folder, names), self.transform, ids={PATH: polars.Series(names)})

    def save(self, directory: Path) -> None:
        write_whole(directory / FILE, json.dumps({"kind": _KIND, "size": self.size}).encode())

    @classmethod
    def load(cls, directory: Path) -> Self:
        try:
            known = json.loads((directory / FILE).read_text(encoding="utf-8"))
            if known["kind"] != _KIND:
                raise ValueError(known["kind"])
            return cls(int(known["size"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{directory / FILE} must be a file that umix wrote, but it cannot be read ({error})."
            ) from None
