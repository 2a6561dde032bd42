"""Frozen, validated settings: the base of every method, net, task source and run spec."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from umix.errors import UserError, unknown


class Settings(BaseModel):
    """A frozen value whose constructor raises one sentence that names the field, its rule and what it got."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")

    def __init__(self, /, **values: Any) -> None:
        try:
            BaseModel.__init__(self, **values)
        except ValidationError as error:
            raise UserError(_sentence(type(self), error)) from None


def legal(field: FieldInfo) -> str:
    """The legal values of a field in words.

    >>> class Mixing(Settings):
    ...     sigma: float = Field(0.5, ge=0, le=1)
    >>> legal(Mixing.model_fields["sigma"])
    'a number in [0, 1]'
    """
    bounds = {name: getattr(m, name) for m in field.metadata for name in ("ge", "gt", "le", "lt") if _has(m, name)}
    kind = _kind(field.annotation)
    if not bounds:
        return kind
    low = f"[{bounds['ge']:g}" if "ge" in bounds else f"({bounds['gt']:g}" if "gt" in bounds else "(-inf"
    high = f"{bounds['le']:g}]" if "le" in bounds else f"{bounds['lt']:g})" if "lt" in bounds else "inf)"
    return f"{kind} in {low}, {high}"


def _has(metadata: object, name: str) -> bool:
    return getattr(metadata, name, None) is not None


def _kind(annotation: Any) -> str:
    options = list(_literals(annotation))
    if options:
        return "one of " + ", ".join(str(option) for option in options)
    names = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}
    arms = [arm for arm in getattr(annotation, "__args__", ()) if arm is not type(None)]
    if annotation in names:
        return names[annotation]
    if arms and type(None) in annotation.__args__:
        return _kind(arms[0]) + " or none"
    return "a list of whole numbers" if int in arms else str(annotation)


def _literals(annotation: Any) -> Iterator[object]:
    if str(annotation).startswith("typing.Literal"):
        yield from annotation.__args__


def _sentence(owner: type[Settings], error: ValidationError) -> str:
    """The first thing wrong, in words: ``UMIX.sigma must be a number in [0, 1], got 50.``"""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return str(unknown(f"setting of {owner.__name__}", name, owner.model_fields))
    if first["type"] == "missing":
        return f"{owner.__name__}.{name} must be given."
    if first["type"] == "value_error":
        return f"{first['ctx']['error']}"
    return f"{owner.__name__}.{name} must be {legal(owner.model_fields[name])}, got {first['input']!r}."
