"""What tables and texts in a file share: the file's content, not its place, decides the run's key."""

import abc
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_serializer, model_validator

from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import as_frame, column_names, content_hash
from umix.data.task import Task, TaskSource
from umix.errors import UserError

if TYPE_CHECKING:
    import polars


class FileSource(RowRoles, TaskSource, abc.ABC):
    """Rows in a file of one's own."""

    path: Path
    content: str = Field("", description="hash of what is read, which decides the run's key")

    @model_validator(mode="before")
    @classmethod
    def _know_the_file(cls, values: dict[str, Any]) -> dict[str, Any]:
        path = Path(values["path"])
        content = cls.hash_of(path, values)
        if not values.get("label"):
            raise UserError(
                f"{path.name} needs --label with the column of the class to predict; it has {', '.join(column_names(path))}."
            )
        return {**values, "path": path, "content": content}

    @classmethod
    def hash_of(cls, path: Path, values: dict[str, Any]) -> str:
        """The hash of all that is read with these settings: the file alone, unless a source knows better."""
        return content_hash(path)

    @abc.abstractmethod
    def task(self, frame: "polars.DataFrame", title: str) -> Task:
        """The task in ``frame``."""

    @field_serializer("path")
    def _file_name(self, path: Path) -> str:
        return path.name  # where the file lies decides nothing

    @property
    def title(self) -> str:
        return self.path.stem

    def load(self, root: Path | None = None) -> Task:
        """The task; ``root`` is not needed."""
        return self.task(as_frame(self.path), self.title)
