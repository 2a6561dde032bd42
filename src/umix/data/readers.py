"""Who reads new data for a finished run: one line for each kind of data that people bring."""

from umix.data.array_preprocessing import ArrayPreprocessing
from umix.data.image_folder import ImageReader
from umix.data.new_inputs import Reader
from umix.data.preprocessing import TablePreprocessing
from umix.data.text_inputs import TextReader

#: By the name of the task's source.
READERS: dict[str, type[Reader]] = {
    "arrays": ArrayPreprocessing,
    "images": ImageReader,
    "table": TablePreprocessing,
    "text": TextReader,
}
