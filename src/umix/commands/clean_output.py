"""What commands print can be shown, and comes from umix: warnings of libraries do not reach people raw."""

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from typing import TextIO

from rich.markup import escape

from umix.errors import UmixWarning, is_users_code, one_line
from umix.terminal import ERR

_FOR_CHILDREN = "PYTHONWARNINGS"  # read by Python when it starts, so it is about processes that this one starts


@contextlib.contextmanager
def clean_output() -> Iterator[None]:
    """Inside the block, warnings of umix and of people's own code are a line each; those of libraries are left out.

    ``python -W`` and PYTHONWARNINGS leave warnings as Python shows them. What the encoding of a terminal cannot show is escaped.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError):  # it cannot be flushed any more, which the first printed line will show
                stream.reconfigure(errors="backslashreplace")
    if sys.warnoptions or _FOR_CHILDREN in os.environ:
        yield
        return
    last_resort, logging.lastResort = logging.lastResort, logging.NullHandler()
    os.environ[_FOR_CHILDREN] = "ignore"
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print
            yield
    finally:
        del os.environ[_FOR_CHILDREN]
        logging.lastResort = last_resort


def _print(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, UmixWarning) or is_users_code(filename):
        ERR.print(f"[yellow]warning:[/yellow] {escape(one_line(str(message)))}", highlight=False, soft_wrap=True)
