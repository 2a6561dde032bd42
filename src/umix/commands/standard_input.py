"""Standard input that can be given up while another thread waits for it."""

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, final

from umix.errors import UserError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@contextmanager
def standard_input() -> Iterator[IO[bytes]]:
    """Inside the block, the bytes of standard input. After it nothing is waited for any more, also not by other threads.

    Otherwise Ctrl-C would have to wait until something is typed, or sent through the pipe.
    """
    if sys.stdin is None:
        raise UserError("Standard input must be open to be read, but it is closed; name a file.")
    try:
        descriptor = sys.stdin.fileno()
    except io.UnsupportedOperation:
        descriptor = -1
    if os.name != "posix" or descriptor < 0:  # elsewhere pipes cannot be waited for in this way
        yield sys.stdin.buffer
        return
    ended, end = os.pipe()
    try:
        yield io.BufferedReader(_Input(descriptor, ended))
    finally:
        os.close(end)


@final
class _Input(io.RawIOBase):
    """What can be read from ``descriptor``, until it ends or the other end of ``ended`` is closed."""

    name = "<stdin>"

    def __init__(self, descriptor: int, ended: int) -> None:
        self._descriptor, self._ended = descriptor, ended

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        ready, _, _ = select.select([self._descriptor, self._ended], [], [])
        return 0 if self._ended in ready else os.readv(self._descriptor, [buffer])
