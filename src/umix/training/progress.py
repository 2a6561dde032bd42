"""What a trainer tells whoever is watching."""

from typing import Protocol, final


class Progress(Protocol):
    """Told when a stage begins, goes on and ends; counts are steps."""

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
