"""A task from texts of one's own: one column of a table is the only input, other columns hold label, groups and split."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

from pydantic import Field, field_serializer

from umix.data.rows.known_rows import check_roles, known_rows, small_group_notes
from umix.data.rows.reader import NewInputs, NoteSum, Reader
from umix.data.rows.row_roles import RowRoles, require_label
from umix.data.rows.table_file import as_frame, content_hash, table_title
from umix.data.task import Task, TaskSource
from umix.data.texts.text_reader import read_texts, text_inputs
from umix.data.texts.tokenizer import tokenizer_hash, tokenizer_of
from umix.errors import UserError, unknown

if TYPE_CHECKING:
    import polars


@final
class TextSource(RowRoles, TaskSource):
    """A table of texts of your own: which column is what, and how texts become inputs."""

    name: ClassVar[str] = "text"

    path: Path = Field(description="the file")
    text: str = Field(description="column of the texts, the only input")
    drop: tuple[str, ...] = Field((), description="columns that are not mentioned as unused")
    tokenizer: str | None = Field(
        None, exclude=True, description="folder or hub name of the tokenizer; else that of an hf: net; else word counts"
    )
    tokens: int = Field(300, ge=2, le=2**20, description="longest text in tokens; what is beyond is cut")

    @field_serializer("path")
    def _file_name(self, path: Path) -> str:
        return path.name  # the folder does not decide the run's numbers

    @classmethod
    def with_defaults(cls, options: dict[str, Any], net: str) -> dict[str, Any]:
        return {**tokenizer_of(net), **options}

    @property
    def title(self) -> str:
        return table_title(self.path)

    @cached_property
    def content(self) -> str:
        """The hash of the file, and of the tokenizer where there is one."""
        return content_hash(self.path) + (f"-{tokenizer_hash(self.tokenizer)}" if self.tokenizer else "")

    def check_files(self) -> None:
        """Raise where the file is missing or unreadable, or where no label is named."""
        self.content  # noqa: B018 — reads the file
        require_label(self.label, self.path)

    def load(self, root: Path | None = None) -> Task:
        """The task in the file; ``root`` is not needed."""
        self.check_files()
        frame = as_frame(self.path)
        self.check_columns(frame)
        texts, empty = read_texts(frame[self.text])
        rows = known_rows(self, frame)
        x, reader, cut = text_inputs(
            texts, rows.rows, column=self.text, id=self.id, tokenizer=self.tokenizer, length=self.tokens
        )
        splits = {name: rows.split(name, x[name]) for name in rows.rows}
        used = {self.text, *self.single, *self.groups, *self.drop}
        unused = [name for name in frame.columns if name not in used]
        notes = NoteSum()
        notes.add([empty])
        if unused:
            notes.add([f"Only the text is an input; not used: {', '.join(unused)}."])
        notes.add([*cut, *rows.notes, *small_group_notes(splits)])
        return Task(self.title, splits, rows.classes, preprocessing=reader, notes=notes.sentences)

    def labelled(self, reader: Reader, new: Any) -> "tuple[NewInputs, polars.DataFrame]":
        frame = reader.frame(new)
        return reader.inputs(frame), frame

    def check_columns(self, frame: "polars.DataFrame") -> None:
        """Raise where a named column is missing or has two roles, or where there are no rows."""
        check_roles(self, frame.columns, self.title)
        if self.text not in frame.columns:
            raise unknown(f"text column of {self.title}", self.text, frame.columns)
        if self.text in (*self.single, *self.groups):
            raise UserError(f"The column {self.text!r} must have one role, but it is the text and another one.")
        if not len(frame):
            raise UserError(f"{self.title} must have rows, but it is empty.")
