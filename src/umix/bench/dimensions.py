"""What a search varies: every searched setting with its values, checked against the run it belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from umix.bench.search_space import Range, SearchSpace, search_space
from umix.bench.spec import RunSpec
from umix.errors import UserError


@final
@dataclass(frozen=True)
class Dimension:
    """One searched setting: a range, or a list of values; ``default`` is among them and is tried first."""

    values: Range | list[Any]
    default: Any
    whole: bool

    @property
    def ends(self) -> list[Any]:
        """The values among which the extreme ones are."""
        if isinstance(self.values, list):
            return self.values
        ends = [self.values.low, self.values.high]
        return [int(end) for end in ends] if self.whole else ends

    def written(self, value: Any) -> Any:
        """``value`` with three digits, so that it can be written down, and still within the range."""
        if isinstance(self.values, list) or self.whole or value == self.default:
            return value
        return min(max(float(f"{value:.3g}"), self.values.low), self.values.high)

    def as_json(self) -> Any:
        return self.values if isinstance(self.values, list) else self.values.model_dump(mode="json")


def dimensions(base: RunSpec, own: SearchSpace) -> dict[str, Dimension]:
    """The searched settings of ``base`` by full name: the ranges that come with umix, then the user's own over them.

    What ``base`` sets is fixed and not searched, so nothing may be left. The ranges that come with umix are stretched to hold
    the default.
    """
    fixed = {base.plan.setting(key)[0] for key in base.settings if key not in ("net", "net.name")}
    given = {base.plan.setting(key)[0]: values for key, values in own.items()}
    if both := sorted(fixed & set(given)):
        raise UserError(f"The setting {both[0]} must be searched or set, but --set fixes it and a range searches it.")
    known = {base.plan.setting(f"{base.method}.{key}")[0]: values for key, values in search_space(base.method).items()}
    found = {key: _dimension(base, key, values, stretch=True) for key, values in known.items() if key not in fixed}
    found |= {key: _dimension(base, key, values, stretch=False) for key, values in given.items()}
    return found


def _dimension(base: RunSpec, key: str, values: Range | list[Any], *, stretch: bool) -> Dimension:
    _, field, default = base.plan.setting(key)
    whole = field.annotation is int
    if isinstance(values, list):
        if isinstance(default, float):
            values = [float(value) if isinstance(value, int) else value for value in values]
        if default not in values and stretch:
            values = [*values, default]
        dimension = Dimension(values, default if default in values else values[0], whole)
    else:
        if isinstance(default, bool) or not isinstance(default, int | float):
            raise UserError(
                f"The setting {key} must be a number to have a range, but it is {default!r}; use --choices."
            )
        if stretch:
            low, high = min(values.low, default), max(values.high, default)
            values = Range(low=low, high=high, log=values.log and low > 0)
        if whole and (values.low % 1 or values.high % 1):
            raise UserError(f"The range of {key} must have whole numbers as ends, got {values.low:g}:{values.high:g}.")
        nearest = min(max(default, values.low), values.high)
        dimension = Dimension(values, int(nearest) if whole else nearest, whole)
    for end in dimension.ends:
        _with(base, {key: end})  # raises in words where it is not legal
    return dimension


def shared_stage(base: RunSpec, space: Mapping[str, Dimension]) -> dict[str, Any]:
    """The settings that let all trials share one first stage: as many epochs as the longest window among them needs."""
    of_method = {key: d for key, d in space.items() if key.startswith(f"{base.method}.") and _numbers(d)}
    short, long = (
        _with(base, {key: pick(d.ends) for key, d in of_method.items()}).plan.method.trajectory_epochs
        for pick in (min, max)
    )
    if short == long or long is None:
        return {}
    known = base.plan.stages.get("trajectory", {}).get("epochs")
    if known is not None and known >= long:
        return {}
    if "trajectory.epochs" in base.settings:
        raise UserError(f"trajectory.epochs must be at least {long} for the longest window searched, got {known}.")
    return {"trajectory.epochs": long}


def _numbers(dimension: Dimension) -> bool:
    return all(isinstance(end, int | float) for end in dimension.ends)


def _with(base: RunSpec, settings: Mapping[str, Any]) -> RunSpec:
    return RunSpec(
        task=base.task, method=base.method, settings={**base.settings, **settings}, seed=base.seed, preset=base.preset
    )
