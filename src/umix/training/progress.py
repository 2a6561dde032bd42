"""The interface by which fits report their progress."""

from typing import Protocol, final


class Progress(Protocol):
    """Is called when a stage begins, advances and ends; ``total``, ``done`` and ``steps`` count steps."""

    def start(self, stage: str, *, total: int, done: int) -> None: ...

    def advance(self, steps: int) -> None: ...

    def finish(self) -> None: ...

    def note(self, message: str) -> None: ...


@final
class Silent:
    """Shows nothing."""

    def start(self, stage: str, *, total: int, done: int) -> None: ...

    def advance(self, steps: int) -> None: ...

    def finish(self) -> None: ...

    def note(self, message: str) -> None: ...
