"""The table that comes with a benchmark: read as text, every value checked."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from umix.data.checks.problems import Problems
from umix.errors import UserError, unknown
from umix.files import as_written

Columns = dict[str, list[str]]
Codes = NDArray[np.int64]

#: The splits in the order of their codes.
SPLITS = ("train", "val", "test")
#: For columns that hold the codes themselves.
BINARY, THREE = {0: 0, 1: 1}, {0: 0, 1: 1, 2: 2}
#: The code of values that are wrong, and of images in no split.
NOT_USED = -1


@final
@dataclass(frozen=True, eq=False)
class Listing:
    """File, label, attribute and split of every image; codes are ``NOT_USED`` where they could not be read."""

    files: list[str]  # relative to the folder
    y: Codes
    attribute: Codes
    split: Codes  # 0 train, 1 val, 2 test

    def rows(self, split: int) -> Codes:
        """Which images are in ``split`` and have a label and an attribute."""
        return np.flatnonzero((self.split == split) & (self.y >= 0) & (self.attribute >= 0))


def read_csv(path: Path, columns: Sequence[str]) -> Columns:
    """These columns of a CSV file with a header, as text; quotes, a byte order mark and Windows line ends are understood."""
    import polars

    try:
        table = polars.read_csv(as_written(path), infer_schema=False)
    except (OSError, polars.exceptions.PolarsError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"{path} must be a CSV file in UTF-8 with a header, but it cannot be read ({reason}); save it again as one."
        ) from None
    known = {name.strip(): name for name in table.columns}
    for name in columns:
        if name not in known:
            raise unknown(f"column (wanted from {path})", name, known)
    return {name: table[known[name]].fill_null("").to_list() for name in columns}


def codes(
    where: str, values: Sequence[str], legal: Mapping[int, int], problems: Problems, *, first_line: int = 2
) -> Codes:
    """The code that ``legal`` gives to each of ``values``; ``NOT_USED`` for others, which are noted in ``problems``."""
    distinct, inverse = np.unique(np.array(values, dtype=str), return_inverse=True)
    numbered: dict[float, int] = dict(legal.items())
    meant = [numbered.get(_number(text), NOT_USED) for text in distinct]
    read: Codes = np.array(meant, dtype=np.int64)[inverse]
    bad = [f"line {row + first_line}: {values[row]!r}" for row in np.flatnonzero(read == NOT_USED).tolist()]
    problems.add(f"{where} must be {' or '.join(str(number) for number in legal)} in every row", bad)
    return read


def check_unique(where: str, values: Sequence[str], problems: Problems) -> None:
    """Note in ``problems`` which values occur more than once."""
    twice = [f"{value!r} ({n} times)" for value, n in Counter(values).items() if n > 1]
    problems.add(f"{where} must occur once each", twice)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
