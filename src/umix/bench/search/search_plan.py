"""The plan of a search, checked before its first trial."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from umix.bench.runs.record import known_rule
from umix.bench.search.search_space import SearchedSetting, SearchSpace, searched_settings, shared_stage
from umix.bench.spec.run_spec import RunSpec
from umix.errors import Setting, UserError
from umix.store import name_part


@final
@dataclass(frozen=True, eq=False)
class Search:
    """What is searched and how trials are scored.

    ``space`` has the searched settings by full name. ``shared`` has the settings that all trials
    get so that they can share one first stage.
    """

    base: RunSpec
    space: Mapping[str, SearchedSetting]
    shared: Mapping[str, Any]
    seeds: tuple[int, ...]
    select: str | None
    name: str
    out: Path

    @property
    def folder(self) -> Path:
        """The folder of the study and of its trials' runs, apart from other runs because trials are not results."""
        return self.out / f"tune-{self.name}"

    @property
    def title(self) -> str:
        """A name for the study, unique by a hash of what is searched."""
        content = hashlib.sha256(json.dumps(self.about(), sort_keys=True).encode()).hexdigest()[:8]
        return f"{name_part(self.base.plan.source.title)}-{self.base.method}-{content}"

    def spec(self, drawn: Mapping[str, Any], seed: int) -> RunSpec:
        return self.base.changed({**self.base.settings, **self.shared, **drawn}, seed=seed)

    def about(self) -> dict[str, str]:
        """What must be the same for all processes that share one study."""
        fixed = self.spec({key: setting.default for key, setting in self.space.items()}, 0)
        return {
            "settings": fixed.key,
            "ranges": str({key: setting.as_json() for key, setting in sorted(self.space.items())}),
            "seeds": str(list(self.seeds)),
            "selection": str(self.select),
        }


def plan_search(
    task: str,
    method: str,
    *,
    settings: Mapping[str, Any] | None = None,
    preset: str = "default",
    space: SearchSpace | None = None,
    seeds: Sequence[int] = (0,),
    select: str | None = None,
    name: str | None = None,
    out: str | Path = "runs",
    trust_code: bool = False,
) -> Search:
    """The search that ``tune`` executes; raises UserError if a setting, range, seed or name is wrong."""
    base = RunSpec(task=task, method=method, settings=dict(settings or {}), preset=preset, trust_code=trust_code)
    if select is not None:
        known_rule(select)
    if not seeds or len(set(seeds)) < len(seeds):
        raise UserError(f"A search must have seeds, each once, got {list(seeds)}.")
    name = f"{name_part(base.plan.source.title)}-{method}" if name is None else name
    if not re.fullmatch(r"[\w.\-]+", name):
        raise UserError(Setting("name"), f" must be letters, digits, dots, dashes and underscores, got {name!r}.")
    searched = searched_settings(base, space or {})
    if not searched:
        raise UserError(
            f"{method} has no setting left to search; give a range, for example ",
            Setting("range", "fit.lr=1e-4:1e-1:log"),
            ".",
        )
    return Search(base, searched, shared_stage(base, searched), tuple(seeds), select, name, Path(out))
