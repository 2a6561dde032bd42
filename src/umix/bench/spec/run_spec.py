"""A run as a value."""

import hashlib
import json
from functools import cached_property
from typing import Any, final

from pydantic import Field, model_validator

from umix.bench.spec.plan import Plan, make_plan
from umix.settings import Settings

_FORMAT = 1  # raised when the same spec would give other numbers


@final
class RunSpec(Settings):
    """Everything that decides a run's numbers, and nothing else: task, method, settings, seed.

    ``settings`` has the keys of the command line's ``--set``; whatever is not set comes from the task's preset.

    >>> RunSpec(task="four_moons", method="umix", settings={"eta": 3}, seed=1).plan.method.eta
    3.0
    """

    task: str
    method: str
    settings: dict[str, Any] = Field(default_factory=dict)
    seed: int = Field(0, ge=0, lt=2**32)
    preset: str = "default"

    @model_validator(mode="after")
    def _has_a_plan(self) -> "RunSpec":
        self.plan  # noqa: B018 — raises if a name or a setting is wrong
        return self

    @cached_property
    def plan(self) -> Plan:
        """The parts of the run, defaults filled in."""
        return make_plan(self.task, self.method, self.settings, preset_name=self.preset)

    @cached_property
    def key(self) -> str:
        """A hash of the plan and the seed: spelling a default out does not change it."""
        content = {"format": _FORMAT, "seed": self.seed, **self.plan.as_json()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def directory_name(self) -> str:
        """The run's folder: readable, and unique by its hash."""
        return f"{self.plan.source.title}-{self.method}-seed{self.seed}-{self.key}"
