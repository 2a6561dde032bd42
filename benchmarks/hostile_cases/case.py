"""One command on hostile input, and what makes it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np

#: Code that must never run appends a line to the file that this environment variable names.
CANARY = "UMIX_CANARY"


@final
@dataclass(frozen=True)
class Case:
    """A command with its arguments, run in the folder of its files.

    ``outputs`` are files that must be unchanged, or still not be there, if the command is refused.
    """

    what: str  # in words, for the list of failures
    argv: list[str]
    stdin: bytes = b""
    outputs: tuple[Path, ...] = field(default=())


#: Writes the files of a case into an empty folder. Equal generators make equal cases.
Maker = Callable[[Path, np.random.Generator], Case]
