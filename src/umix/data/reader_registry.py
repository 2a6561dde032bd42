"""The readers of new data for a finished run: one line for each kind of data that people bring."""

from pathlib import Path
from typing import Protocol

from umix.data.arrays import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.data.rows.reader import Reader
from umix.data.tables.codes import TableCodes
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.texts.text_reader import TextReader
from umix.run_folder import TABLE_CODES


class Loads(Protocol):
    """A class of readers, or several of them."""

    def load(self, directory: Path) -> Reader:
        """The reader in the folder of a run."""


class _TableReaders:
    """The two readers of tables: of codes, and of one-hot columns."""

    def load(self, directory: Path) -> Reader:
        """The reader whose file is in ``directory``."""
        return (TableCodes if (directory / TABLE_CODES).exists() else TablePreprocessing).load(directory)


#: By the name of the task's source.
READERS: dict[str, Loads] = {
    "arrays": ArrayPreprocessing,
    "images": ImageReader,
    "table": _TableReaders(),
    "text": TextReader,
}
