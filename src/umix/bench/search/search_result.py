"""What a search found, as a value."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final


@final
@dataclass(frozen=True)
class Trial:
    """One trial: ``value`` is the mean validation score over seeds, None where it was cut short or failed."""

    number: int
    state: Literal["complete", "pruned", "failed", "running"]
    value: float | None
    settings: dict[str, Any]
    start: bool  # the settings that the search started from
    error: str | None = None


@final
@dataclass(frozen=True)
class Tuned:
    """What a search found: ``settings`` over the preset, also written to the file ``preset``."""

    task: str
    method: str
    name: str
    select: str
    seeds: tuple[int, ...]
    value: float
    default: float | None  # of the settings it started from; None where another process is still at it
    settings: dict[str, Any]
    trials: tuple[Trial, ...]  # best first, then those without a value
    importances: dict[str, float]
    preset: Path
