"""The result of a search and its trials."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final


@final
@dataclass(frozen=True)
class Trial:
    """One trial: ``value`` is the mean validation score over seeds, None if the trial was pruned or failed."""

    number: int
    state: Literal["complete", "pruned", "failed", "running"]
    value: float | None
    settings: dict[str, Any]
    start: bool  # the settings that the search started from
    error: str | None = None


@final
@dataclass(frozen=True)
class SearchResult:
    """The best settings of a search and all its trials.

    ``settings`` override the preset that the search started from. Both together are also written to
    the preset file ``preset``.
    """

    task: str
    method: str
    name: str
    select: str
    seeds: tuple[int, ...]
    value: float
    default: float | None  # value of the settings it started from; None while another process executes that trial
    settings: dict[str, Any]
    trials: tuple[Trial, ...]  # best first, then those without a value
    importances: dict[str, float]
    preset: Path
