"""The specification of one run."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

from pydantic import Field, model_validator

from umix.bench.spec.plan import Plan, make_plan
from umix.core.words import run_words
from umix.data.rows.row_roles import RowRoles
from umix.settings import Settings
from umix.store import name_part

_FORMAT = 1  # increased when a new version gives other numbers for the same spec
_SHOWN = 8  # digits of the key in the name of a folder: a run that shares them by chance is refused, see ``execute.finished``


@final
class RunSpec(Settings):
    """Everything that decides a run's numbers, and nothing else: task, method, settings, seed.

    >>> RunSpec(task="four_moons", method="umix", settings={"eta": 3}, seed=1).plan.method.eta
    3.0
    """

    task: str = Field(description="a task's name, or the path of data of your own")
    method: str = Field(description="a method's name")
    settings: dict[str, Any] = Field(default_factory=dict, description="by name: eta, fit.epochs")
    seed: int = Field(default=0, ge=0, lt=2**32, description="seed of everything random")
    preset: str = Field(default="default", description="named settings that the others come from")
    trust_code: bool = Field(
        default=False, exclude=True, description="whether a preset file may name code as its net; no part of the key"
    )

    @model_validator(mode="after")
    def _has_a_plan(self) -> "RunSpec":
        self.plan  # noqa: B018 — raises if a name or a setting is wrong
        return self

    @cached_property
    def plan(self) -> Plan:
        """The parts of the run, defaults filled in."""
        return make_plan(self.task, self.method, self.settings, preset_name=self.preset, trust_code=self.trust_code)

    @cached_property
    def key(self) -> str:
        """A hash of the plan and the seed; setting a value to its default does not change it."""
        content = {"format": _FORMAT, "seed": self.seed, **self.plan.as_json()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def changed(self, settings: Mapping[str, Any], *, seed: int | None = None) -> "RunSpec":
        """This spec with other ``settings``, all of them, and perhaps another seed."""
        return RunSpec(
            task=self.task,
            method=self.method,
            settings=dict(settings),
            seed=self.seed if seed is None else seed,
            preset=self.preset,
            trust_code=self.trust_code,
        )

    @property
    def fold(self) -> int | None:
        """Which fold of the rows is test, counted from 1; None where rows are not divided into folds."""
        source: object = self.plan.source
        return source.fold if isinstance(source, RowRoles) else None

    @property
    def words(self) -> str:
        """Which of the runs of its method on its task this is."""
        return run_words(self.seed, self.fold)

    @property
    def directory_name(self) -> str:
        """The name of the run's folder: title of the data, method, the seed unless it is 0, the fold if any, a part of the key."""
        seed, fold = f"seed{self.seed}-" if self.seed else "", f"fold{self.fold}-" if self.fold else ""
        return f"{name_part(self.plan.source.title)}-{self.method}-{seed}{fold}{self.key[:_SHOWN]}"
