"""Frozen, validated settings: the base class of every method, net, task source and run spec."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, final, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.fields import FieldInfo

from umix.errors import UserError, is_utf8, unknown

Value = TypeVar("Value")


class Settings(BaseModel):
    """A frozen model whose constructor raises UserError, in one sentence with the field, its rule and its value."""

    part: ClassVar[str] = ""  # the part of a run that these settings describe: fit, net, task; empty for others

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")

    def __init__(self, /, **values: Any) -> None:
        fields = type(self).model_fields
        for name, value in values.items():
            if isinstance(value, str) and value == "none" and name in fields and _is_optional(fields[name].annotation):
                values[name] = None
            for text in _texts(value):
                if not is_utf8(text):
                    raise UserError(f"{_title(type(self))}.{name} must be text in UTF-8, got {text!r}; rename it.")
        try:
            BaseModel.__init__(self, **values)
        except ValidationError as error:
            raise _user_error(type(self), error) from None


@final
class Range(Settings):
    """An interval of numbers to search."""

    low: float = Field(description="smallest value")
    high: float = Field(description="largest value")
    log: bool = Field(False, description="whether the logarithm is uniform, instead of the number")

    @model_validator(mode="after")
    def _is_an_interval(self) -> "Range":
        if not self.low < self.high or (self.log and self.low <= 0):
            raise UserError(
                f"A search range must have low < high, and low > 0 on a log scale, got {self.low:g}:{self.high:g}."
            )
        return self


@final
@dataclass(frozen=True)
class Searched:
    """Metadata of a field: the values that ``umix tune`` tries for it. Written with ``between`` or ``among``."""

    values: Range | tuple[Any, ...]


def between(low: float, high: float, *, log: bool = False) -> Searched:
    """Metadata of a field that is searched in an interval.

    >>> class Weighting(Settings):
    ...     eta: Annotated[float, between(2, 100, log=True)] = 20.0
    >>> Weighting.model_fields["eta"].metadata
    [Searched(values=Range(low=2.0, high=100.0, log=True))]
    """
    return Searched(Range(low=low, high=high, log=log))


def among(*values: float | str) -> Searched:
    """Metadata of a field that is searched in a list of values.

    >>> among(0.5, 1.0)
    Searched(values=(0.5, 1.0))
    """
    return Searched(values)


def legal(field: FieldInfo) -> str:
    """The legal values of a field, as text.

    >>> from pydantic import Field
    >>> class Mixing(Settings):
    ...     sigma: float = Field(0.5, ge=0, le=1)
    >>> legal(Mixing.model_fields["sigma"])
    'a number in [0, 1]'
    """
    least = "".join(f", at least {m.min_length} of them" for m in field.metadata if _has(m, "min_length"))
    return _kind(field.annotation) + _bounds(field.metadata) + least


def _texts(value: object) -> Iterator[str]:
    """The texts and paths in a value, or in a list of them."""
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, str | Path):
            yield str(one)


def _is_optional(annotation: Any) -> bool:
    """Whether a field may be none, and no text: then the text "none" means it."""
    arms = get_args(annotation)
    return type(None) in arms and str not in arms and not any(list(_literals(arm)) for arm in arms)


def _bounds(metadata: Iterable[object]) -> str:
    bounds = {name: getattr(m, name) for m in metadata for name in ("ge", "gt", "le", "lt") if _has(m, name)}
    if not bounds:
        return ""
    low = f"[{bounds['ge']}" if "ge" in bounds else f"({bounds['gt']}" if "gt" in bounds else "(-inf"
    high = f"{bounds['le']}]" if "le" in bounds else f"{bounds['lt']})" if "lt" in bounds else "inf)"
    return f" in {low}, {high}"


def _has(metadata: object, name: str) -> bool:
    return getattr(metadata, name, None) is not None


def _kind(annotation: Any) -> str:
    options = list(_literals(annotation))
    if options:
        return "one of " + ", ".join(str(option) for option in options)
    names = {float: "a number", int: "a whole number", bool: "true or false", str: "a text", Path: "a path"}
    arms = [arm for arm in getattr(annotation, "__args__", ()) if arm is not type(None)]
    if annotation in names:
        return names[annotation]
    if arms and type(None) in annotation.__args__:
        return _kind(arms[0]) + " or none"
    if get_origin(annotation) is tuple and arms:
        return _several(arms)
    if get_origin(annotation) is Annotated:
        item, *rules = get_args(annotation)
        return _kind(item) + _bounds(m for rule in rules for m in getattr(rule, "metadata", [rule]))
    if get_origin(annotation) is dict:
        return "a table"
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_kind(arm).removeprefix("one of ") for arm in arms)
    return str(annotation)


def _several(arms: list[Any]) -> str:
    """A tuple type as text: a list of any length, or of the length that the type fixes."""
    item, *rules = get_args(arms[0]) if get_origin(arms[0]) is Annotated else [arms[0]]
    count = "" if arms[-1] is Ellipsis else f"{len(arms)} "
    kind = {int: "whole numbers", float: "numbers", str: "texts"}.get(item, "names or tables")
    return f"a list of {count}{kind}" + _bounds(m for rule in rules for m in getattr(rule, "metadata", [rule]))


def _literals(annotation: Any) -> Iterator[object]:
    if str(annotation).startswith("typing.Literal"):
        yield from annotation.__args__


def checked(kind: TypeAdapter[Value], value: object, path: Path) -> Value:
    """``value``, which the file at ``path`` holds, as a ``kind``; UserError with the first fault where it is none."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        fault = first_fault(error)
        raise UserError(f"{path} must be as this version of umix writes it (", fault, "); run it again.") from None


def first_fault(error: ValidationError) -> UserError:
    """The first value that is not what it must be, in words: where it stands, the rule, and what it is."""
    first = error.errors(include_url=False)[0]
    name, rule = ".".join(map(str, first["loc"])), first["msg"][:1].lower() + first["msg"][1:]
    got = "" if first["type"] == "missing" else f", got {first['input']!r}"
    return UserError(f"{name or 'its content'} must be valid: {rule}{got}")


def _title(owner: type[Settings]) -> str:
    """The name of these settings in messages: the part of a run (``fit`` in ``fit.lr``) or the name of the class."""
    return owner.part or getattr(owner, "name", owner.__name__)


def _user_error(owner: type[Settings], error: ValidationError) -> UserError:
    """The first validation error as one sentence: ``umix.sigma must be a number in [0, 1], got 50.``"""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return unknown(f"setting of {_title(owner)}", name, owner.model_fields)
    if first["type"] == "missing" and len(first["loc"]) == 1:
        return UserError(f"{_title(owner)}.{name} must be given.")
    if first["type"] == "value_error":
        raised = first["ctx"]["error"]
        return raised if isinstance(raised, UserError) else UserError(f"{raised}")
    return UserError(f"{_title(owner)}.{name} must be {legal(owner.model_fields[name])}, got {first['input']!r}.")
