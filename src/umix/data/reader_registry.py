"""The readers of new data for a finished run: one line for each kind of data that people bring."""

from umix.data.arrays import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.data.rows.reader import Reader
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.texts.text_reader import TextReader

#: By the name of the task's source.
READERS: dict[str, type[Reader]] = {
    "arrays": ArrayPreprocessing,
    "images": ImageReader,
    "table": TablePreprocessing,
    "text": TextReader,
}
