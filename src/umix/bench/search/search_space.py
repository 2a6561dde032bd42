"""The settings that a search varies: the ranges that come with umix, ranges given as text, and their check against a run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import get_annotations
from typing import Any, final, get_args, get_origin

from pydantic.fields import FieldInfo

from umix.bench.spec.run_spec import RunSpec
from umix.errors import Setting, UserError
from umix.methods.registry import METHODS
from umix.settings import Range, Searched, Settings
from umix.toml_text import parse_value

#: The values that a search may try for each setting: a range, or a list of values.
SearchSpace = dict[str, Range | list[Any]]


def search_space(method: str) -> SearchSpace:
    """The search ranges of ``method``'s own hyperparameters; empty if it has none to search.

    They are metadata of its fields (``between`` and ``among`` of ``umix.settings``). The class's own
    fields come first, then those of its parents. The order matters: it decides which random numbers
    a setting is drawn with.

    >>> list(search_space("umix"))
    ['eta', 'sigma', 'alpha', 'length']
    """
    return searched_fields(METHODS[method])


def searched_fields(kind: type[Settings]) -> SearchSpace:
    """The search ranges of the settings ``kind``, in that order; ``among`` and ``between`` of ``umix.settings`` gave them."""
    names = dict.fromkeys(
        name for owner in kind.__mro__ for name in get_annotations(owner) if name in kind.model_fields
    )
    ranges = {name: _searched(kind.model_fields[name]) for name in names}
    return {name: values for name, values in ranges.items() if values is not None}


def _searched(field: FieldInfo) -> Range | list[Any] | None:
    values = next((item.values for item in field.metadata if isinstance(item, Searched)), None)
    return list(values) if isinstance(values, tuple) else values


def parse_range(text: str) -> tuple[str, Range]:
    """The setting and range in a text ``key=low:high`` or ``key=low:high:log``.

    >>> parse_range("eta=1:100:log")
    ('eta', Range(low=1.0, high=100.0, log=True))
    """
    key, _, interval = text.partition("=")
    ends = interval.split(":")
    try:
        low, high = (float(end) for end in ends[:2])
    except ValueError:
        low = high = math.nan
    if not key.strip() or math.isnan(low + high) or ends[2:] not in ([], ["log"]):
        raise UserError(Setting("range"), f" must be given key=low:high or key=low:high:log, got {text!r}.")
    return key.strip(), Range(low=low, high=high, log=len(ends) == 3)


def parse_choices(text: str) -> tuple[str, list[Any]]:
    """The setting and values in a text ``key=a,b,c``; values are numbers, true, false or texts.

    >>> parse_choices("sigma=0.5,1")
    ('sigma', [0.5, 1])
    """
    key, _, listed = text.partition("=")
    values = [part.strip() for part in listed.split(",") if part.strip()]
    if not key.strip() or not values:
        raise UserError(Setting("choices"), f" must be given key=a,b,c, got {text!r}.")
    return key.strip(), [_value(value) for value in values]


def _value(text: str) -> Any:
    value = parse_value(text)
    return value if isinstance(value, int | float | bool | str) else text


@final
@dataclass(frozen=True)
class SearchedSetting:
    """One searched setting: a range or a list of values.

    ``default`` is tried first, even if it is not one of ``values``.
    """

    values: Range | list[Any]
    default: Any
    whole: bool

    @property
    def ends(self) -> list[Any]:
        """The ends of the range, or all values of a list."""
        if isinstance(self.values, list):
            return self.values
        ends = [self.values.low, self.values.high]
        return [int(end) for end in ends] if self.whole else ends

    @property
    def includes_default(self) -> bool:
        """Whether the default is one of the values."""
        if isinstance(self.values, list):
            return self.default in self.values
        return isinstance(self.default, int | float) and self.values.low <= self.default <= self.values.high

    def allows(self, value: Any) -> bool:
        """Whether ``value``, which another process may have stored, is one that a trial of this search has."""
        if isinstance(self.values, list) or isinstance(value, bool) or not isinstance(value, int | float):
            return value == self.default or (isinstance(self.values, list) and value in self.values)
        return value == self.default or self.values.low <= value <= self.values.high

    def rounded(self, value: Any) -> Any:
        """``value`` rounded to three digits, so that it is easy to write down, and clipped to the range."""
        if isinstance(self.values, list) or self.whole or value == self.default:
            return value
        return min(max(float(f"{value:.3g}"), self.values.low), self.values.high)

    def as_json(self) -> Any:
        return self.values if isinstance(self.values, list) else self.values.model_dump(mode="json")


def searched_settings(base: RunSpec, space: SearchSpace) -> dict[str, SearchedSetting]:
    """The searched settings of ``base`` by full name: the ranges that come with umix, overridden by ``space``.

    Settings that ``base`` sets are not searched, so the result may be empty.
    """
    fixed = {base.plan.setting(key)[0] for key in base.settings if key not in ("net", "net.name")}
    requested = {base.plan.setting(key)[0]: values for key, values in space.items()}
    if both := sorted(fixed & set(requested)):
        raise UserError(f"The setting {both[0]} must be searched or set, but settings fix it and a range searches it.")
    method, net = base.plan.method, base.plan.net
    unused = () if "mixing" in net.offers else method.mixing_options
    ranges = {f"{base.method}.{key}": values for key, values in search_space(base.method).items() if key not in unused}
    ranges |= {f"net.{key}": values for key, values in searched_fields(type(net)).items()}
    built_in = {base.plan.setting(key)[0]: values for key, values in ranges.items()}
    searched = {key: values for key, values in built_in.items() if key not in fixed} | requested
    return {key: _searched_setting(base, key, values) for key, values in searched.items()}


def _searched_setting(base: RunSpec, key: str, values: Range | list[Any]) -> SearchedSetting:
    _, field, default = base.plan.setting(key)
    kinds = _number_kinds(field.annotation)
    whole = int in kinds and float not in kinds
    if isinstance(values, list):
        exact = [float(value) if float in kinds and type(value) is int else value for value in values]
        setting = SearchedSetting(exact, default, whole)
    elif not kinds:
        raise UserError(
            f"The setting {key} must be a number to have a range, but it is {default!r}; use ", Setting("choices"), "."
        )
    elif whole and (values.low % 1 or values.high % 1):
        raise UserError(f"The range of {key} must have whole numbers as ends, got {values.low:g}:{values.high:g}.")
    else:
        setting = SearchedSetting(values, default, whole)
    for end in setting.ends:
        _with(base, {key: end})  # raises UserError if the value is not allowed
    return setting


def _number_kinds(annotation: Any) -> set[type]:
    """Which of int and float a setting may be; other types, such as the text ``auto``, are left out."""
    if annotation in (int, float):
        return {annotation}
    if get_origin(annotation) is tuple:
        return set()
    return set().union(*(_number_kinds(arm) for arm in get_args(annotation)))


def shared_stage(base: RunSpec, space: Mapping[str, SearchedSetting]) -> dict[str, Any]:
    """The settings that let all trials share one recorded stage.

    The stage gets as many epochs as the longest window that the search may try needs.
    """
    of_method = {
        key: setting for key, setting in space.items() if key.startswith(f"{base.method}.") and _numbers(setting)
    }
    extremes = [{key: pick(setting.ends) for key, setting in of_method.items()} for pick in (min, max)]
    plans = [base.plan, *(_with(base, settings).plan for settings in extremes)]
    needed: dict[str, set[int]] = {}
    for plan in plans:
        for stage in plan.method.erm_stages(plan.fit.epochs):
            if stage.record is not None:
                needed.setdefault(stage.settings_name, set()).add(stage.epochs)
    return {key: most for stage, epochs in needed.items() for key, most in _enough_epochs(base, stage, epochs).items()}


def _enough_epochs(base: RunSpec, stage: str, needed: set[int]) -> dict[str, int]:
    """The setting that makes ``stage`` as long as the largest of ``needed``.

    Empty if all trials need the same number of epochs, or if the stage is long enough.
    """
    most, current = max(needed), base.plan.stages.get(stage, {}).get("epochs")
    if len(needed) < 2 or (current is not None and current >= most):
        return {}
    if f"{stage}.epochs" in base.settings:
        raise UserError(f"{stage}.epochs must be at least {most} for the longest window searched, got {current}.")
    return {f"{stage}.epochs": most}


def _numbers(setting: SearchedSetting) -> bool:
    return all(isinstance(end, int | float) for end in setting.ends)


def _with(base: RunSpec, settings: Mapping[str, Any]) -> RunSpec:
    return base.changed({**base.settings, **settings})
