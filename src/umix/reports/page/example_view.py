"""One example as people see it: a picture, a text, the cells of its row, or its numbers."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from umix.reports.page.training_table import Source
from umix.reports.training_examples import Closer

#: The longer side of a thumbnail, in pixels.
SIZE = 72
_LONGEST = 240  # letters of a text
_CELLS = 12  # of a row
_NUMBERS = 8  # of an input that is nothing else


@final
@dataclass(frozen=True)
class Shown:
    """What is known of how an example looks; ``name`` is its file, or its row."""

    name: str
    picture: str | None = None
    text: str | None = None
    cells: Mapping[str, str] = field(default_factory=dict)


@final
class Viewer:
    """Shows the examples of one run, from its own files and from the user's.

    ``row`` and ``file`` say where each example came from; ``closer`` has the inputs of some of them.
    """

    def __init__(
        self,
        source: Source,
        *,
        row: np.ndarray | None,
        file: Sequence[str] | np.ndarray | None,
        closer: Closer | None = None,
    ) -> None:
        self._source, self._row, self._file = source, row, file
        self._x = None if closer is None else closer.x
        self._place = {} if closer is None else {int(index): place for place, index in enumerate(closer.index)}

    def show(self, index: int) -> Shown:
        """The example ``index``."""
        table = self._source.table
        if self._file is not None:
            path = str(self._file[index])
            return Shown(path.rpartition("/")[2], picture=thumbnail_of_file(path))
        if self._row is None:
            return self._from_inputs(index, f"example {index + 1}")
        row = int(self._row[index])
        name = f"row {row + 1}"
        if table is not None and self._source.text is not None:
            return Shown(name, text=shortened(table[self._source.text][row]))
        if table is not None:
            return Shown(name, cells=_cells(table.select(self._source.inputs).row(row, named=True)))
        return self._from_inputs(index, name)

    def _from_inputs(self, index: int, name: str) -> Shown:
        """The example as its kept input shows it; only its name where no input was kept."""
        if self._x is None or index not in self._place:
            return Shown(name)
        x = self._x[self._place[index]]
        picture = thumbnail_of_array(x)
        if picture is not None:
            return Shown(name, picture=picture)
        return Shown(name, text=_numbers(x) if x.dtype.kind == "f" else None)  # token numbers say nothing to people


def shortened(text: Any, longest: int = _LONGEST) -> str:
    r"""The text in one line, cut where it is long.

    >>> shortened("a  b\nc", longest=4)
    'a b…'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    cells = {name: "–" if value is None else shortened(value, 60) for name, value in list(row.items())[:_CELLS]}
    return cells | ({"…": f"{len(row) - _CELLS} more columns"} if len(row) > _CELLS else {})


def _numbers(x: np.ndarray) -> str:
    flat = x.ravel()
    more = f", … ({flat.size} numbers)" if flat.size > _NUMBERS else ""
    return ", ".join(f"{float(value):.3g}" for value in flat[:_NUMBERS]) + more


def thumbnail_of_file(path: str) -> str | None:
    """The image at ``path``, small, as a data address; None where it is not there or cannot be decoded."""
    from PIL import Image, ImageOps

    try:
        with Image.open(Path(path)) as file:
            file.draft("RGB", (2 * SIZE, 2 * SIZE))
            image = ImageOps.exif_transpose(file).convert("RGB")
    except Exception:  # Pillow has many kinds for broken files, and a report does without the picture
        return None
    image.thumbnail((SIZE, SIZE))
    return _address(image, "JPEG", quality=70)


def thumbnail_of_array(x: np.ndarray) -> str | None:
    """Inputs [1, 2 or 3 channels, height, width] as a picture, scaled to their own range; None for other shapes.

    Two channels are drawn red and green.
    """
    from PIL import Image

    if x.ndim != 3 or x.shape[0] > 3 or min(x.shape[1:]) < 2:
        return None
    low, high = float(x.min()), float(x.max())
    pixels = ((x - low) / (high - low or 1.0) * 255).astype(np.uint8)
    if len(pixels) == 1:
        pixels = np.repeat(pixels, 3, axis=0)
    elif len(pixels) == 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:1])])
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    factor = max(1, round(SIZE / max(image.size)))
    if factor > 1:
        image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    else:
        image.thumbnail((SIZE, SIZE))
    return _address(image, "PNG", optimize=True)


def _address(image: Any, form: str, **options: Any) -> str:
    content = io.BytesIO()
    image.save(content, form, **options)
    return f"data:image/{form.lower()};base64,{base64.b64encode(content.getvalue()).decode()}"
