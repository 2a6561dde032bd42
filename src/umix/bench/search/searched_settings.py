"""What a search varies: every searched setting with its values, checked against the run it belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final, get_args, get_origin

from umix.bench.search.search_space import SearchSpace, search_space
from umix.bench.spec.run_spec import RunSpec
from umix.errors import Setting, UserError
from umix.settings import Range


@final
@dataclass(frozen=True)
class Dimension:
    """One searched setting: a range, or a list of values. ``default`` is tried first, whether it is among them or not."""

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

    @property
    def holds_default(self) -> bool:
        """Whether the default is one of the values."""
        if isinstance(self.values, list):
            return self.default in self.values
        return isinstance(self.default, int | float) and self.values.low <= self.default <= self.values.high

    def written(self, value: Any) -> Any:
        """``value`` with three digits, so that it can be written down, and still within the range."""
        if isinstance(self.values, list) or self.whole or value == self.default:
            return value
        return min(max(float(f"{value:.3g}"), self.values.low), self.values.high)

    def as_json(self) -> Any:
        return self.values if isinstance(self.values, list) else self.values.model_dump(mode="json")


def dimensions(base: RunSpec, own: SearchSpace) -> dict[str, Dimension]:
    """The searched settings of ``base`` by full name: the ranges that come with umix, then the user's own over them.

    What ``base`` sets is fixed and not searched, so nothing may be left.
    """
    fixed = {base.plan.setting(key)[0] for key in base.settings if key not in ("net", "net.name")}
    given = {base.plan.setting(key)[0]: values for key, values in own.items()}
    if both := sorted(fixed & set(given)):
        raise UserError(f"The setting {both[0]} must be searched or set, but settings fix it and a range searches it.")
    known = {base.plan.setting(f"{base.method}.{key}")[0]: values for key, values in search_space(base.method).items()}
    found = {key: values for key, values in known.items() if key not in fixed} | given
    return {key: _dimension(base, key, values) for key, values in found.items()}


def _dimension(base: RunSpec, key: str, values: Range | list[Any]) -> Dimension:
    _, field, default = base.plan.setting(key)
    kinds = _number_kinds(field.annotation)
    whole = int in kinds and float not in kinds
    if isinstance(values, list):
        exact = [float(value) if float in kinds and type(value) is int else value for value in values]
        dimension = Dimension(exact, default, whole)
    elif not kinds:
        raise UserError(
            f"The setting {key} must be a number to have a range, but it is {default!r}; use ", Setting("choices"), "."
        )
    elif whole and (values.low % 1 or values.high % 1):
        raise UserError(f"The range of {key} must have whole numbers as ends, got {values.low:g}:{values.high:g}.")
    else:
        dimension = Dimension(values, default, whole)
    for end in dimension.ends:
        _with(base, {key: end})  # raises in words where it is not legal
    return dimension


def _number_kinds(annotation: Any) -> set[type]:
    """Which of int and float a setting may be, beside words such as ``auto``."""
    if annotation in (int, float):
        return {annotation}
    if get_origin(annotation) is tuple:
        return set()
    return set().union(*(_number_kinds(arm) for arm in get_args(annotation)))


def shared_stage(base: RunSpec, space: Mapping[str, Dimension]) -> dict[str, Any]:
    """The settings that let all trials share one recorded stage: as many epochs as the longest window among them needs."""
    of_method = {key: d for key, d in space.items() if key.startswith(f"{base.method}.") and _numbers(d)}
    extremes = [{key: pick(d.ends) for key, d in of_method.items()} for pick in (min, max)]
    plans = [base.plan, *(_with(base, settings).plan for settings in extremes)]
    needed: dict[str, set[int]] = {}
    for plan in plans:
        for stage in plan.method.erm_stages(plan.fit.epochs):
            if stage.record is not None:
                needed.setdefault(stage.settings_name, set()).add(stage.epochs)
    return {key: most for stage, epochs in needed.items() for key, most in _enough_epochs(base, stage, epochs).items()}


def _enough_epochs(base: RunSpec, stage: str, needed: set[int]) -> dict[str, int]:
    """The setting that makes ``stage`` as long as the largest of ``needed``; none if all need the same or it is long enough."""
    most, known = max(needed), base.plan.stages.get(stage, {}).get("epochs")
    if len(needed) < 2 or (known is not None and known >= most):
        return {}
    if f"{stage}.epochs" in base.settings:
        raise UserError(f"{stage}.epochs must be at least {most} for the longest window searched, got {known}.")
    return {f"{stage}.epochs": most}


def _numbers(dimension: Dimension) -> bool:
    return all(isinstance(end, int | float) for end in dimension.ends)


def _with(base: RunSpec, settings: Mapping[str, Any]) -> RunSpec:
    return RunSpec(
        task=base.task, method=base.method, settings={**base.settings, **settings}, seed=base.seed, preset=base.preset
    )
