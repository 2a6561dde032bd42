"""The result of a run as loggers write it: the numbers and words of its summary, by their names in the JSON of ``umix run``."""

from collections.abc import Iterator
from typing import Any, NamedTuple, final

from umix.bench.runs.record import RunRecord


@final
class Selected(NamedTuple):
    """What the rule selected: ``numbers`` (``summary/worst``, ``summary/groups/NAME/rate``) and ``words``, at this epoch."""

    epoch: int
    numbers: dict[str, float]
    words: dict[str, str]


def selected(record: RunRecord, select: str | None) -> Selected:
    """The summary of ``record`` under the rule ``select``, or under the run's own where that has no score."""
    summary = record.summary(select if select is None or record.has(select) else None)
    values = dict(_flat("summary", summary.model_dump(mode="json")))
    numbers = {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
    return Selected(summary.epoch, numbers, {name: value for name, value in values.items() if isinstance(value, str)})


def _flat(name: str, value: Any) -> Iterator[tuple[str, float | str]]:
    """The numbers and words below ``value`` by their path; truth values, lists and what is not known are left out."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _flat(f"{name}/{key}", below)
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield name, value
