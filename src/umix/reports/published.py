"""Numbers of the UMIX paper, to stand beside one's own."""

import json
import math
from functools import cache
from importlib import resources
from typing import Any

from umix.core.statistics import Spread

#: What must be said wherever the numbers are shown.
CAVEAT = (
    "Published: Han et al., NeurIPS 2022. Its averages are not all of one kind: ERM's on Waterbirds can only be the adjusted "
    "one, UMIX's is the plain one."
)


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        (resources.files("umix.reports") / "published.json").read_text(encoding="utf-8")
    )
    return content


def published(task: str, method: str) -> dict[str, Spread]:
    """``average`` and ``worst`` of the method on the task as rates, as far as the paper has them; empty where it has none.

    >>> published("waterbirds", "umix")["worst"]
    Spread(mean=0.9, std=0.011)
    """
    found = _content()["methods"].get(method, {}).get(task, {})
    return {rate: Spread(_share(mean), _share(std)) for rate, (mean, std) in found.items()}


def published_for_rule(task: str, method: str, rule: str) -> dict[str, Spread]:
    """The same for UMIX selected with validation groups known (rule ``worst``) or not (``average``), the paper's table 2."""
    found = _content()["validation_groups"].get(task, {}).get(rule, {}) if method == "umix" else {}
    return {rate: Spread(_share(mean), math.nan) for rate, mean in found.items()}


def _share(percent: float) -> float:
    return round(percent / 100, 6)
