"""A task from texts of one's own: a column of a table is the only input, the others say what is known of each row."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

from pydantic import Field

from umix.data.rows.file_source import FileSource
from umix.data.rows.row_notes import small_groups
from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import content_hash
from umix.data.task import Task
from umix.data.texts.text_reader import read_texts, text_inputs
from umix.data.texts.tokenizer import tokenizer_hash, tokenizer_of
from umix.errors import UserError, unknown

if TYPE_CHECKING:
    import polars


class TextOptions(RowRoles):
    """A table of texts of your own: which column is what, and how texts become inputs."""

    text: str = Field(description="column of the texts, the only input")
    drop: tuple[str, ...] = Field((), description="columns that are not mentioned as unused")
    tokenizer: str | None = Field(
        None, exclude=True, description="folder or hub name of the tokenizer; else that of an hf: net; else word counts"
    )
    tokens: int = Field(300, ge=2, description="longest text in tokens; what is beyond is cut")

    def task(self, frame: "polars.DataFrame", title: str) -> Task:
        """The task in ``frame``."""
        self.check_roles(frame.columns, title)
        if self.text not in frame.columns:
            raise unknown(f"text column of {title}", self.text, frame.columns)
        if self.text in (*self.single, *self.groups):
            raise UserError(f"The column {self.text!r} must have one role, but it is the text and another one.")
        if not len(frame):
            raise UserError(f"{title} must have rows, but it is empty.")
        texts, notes = read_texts(frame[self.text])
        known = self.known_rows(frame)
        x, reader, cut = text_inputs(
            texts, known.rows, column=self.text, id=self.id, tokenizer=self.tokenizer, length=self.tokens
        )
        splits = {name: known.split(name, x[name]) for name in known.rows}
        used = {self.text, *self.single, *self.groups, *self.drop}
        unused = [name for name in frame.columns if name not in used]
        if unused:
            notes.append(f"Only the text is an input; not used: {', '.join(unused)}.")
        notes += [*cut, *known.notes, *small_groups(splits)]
        return Task(title, splits, known.classes, preprocessing=reader, notes=tuple(notes))


@final
class TextSource(TextOptions, FileSource):
    """Texts of your own, in a column of a table."""

    name: ClassVar[str] = "text"

    @classmethod
    def hash_of(cls, path: Path, values: dict[str, Any]) -> str:
        """The hash of the file, and of the tokenizer where there is one."""
        tokenizer = values.get("tokenizer")
        return content_hash(path) + (f"-{tokenizer_hash(tokenizer)}" if tokenizer else "")

    @classmethod
    def suited(cls, options: dict[str, Any], net: str) -> dict[str, Any]:
        return {**tokenizer_of(net), **options}
