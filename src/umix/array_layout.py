"""Which arrays a file of umix must hold: their names, types and lengths, checked once when it is opened."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

_TYPES = {"whole": ("int", "uint"), "real": ("float",), "bool": ("bool",), "bytes": ("uint8",)}


@final
@dataclass(frozen=True)
class Array:
    """What an array must be.

    A length in ``shape`` is a number, or a name for any number, the same wherever the name stands in a layout. Where ``low`` or
    ``high`` is given, every value lies between them; NaN does not.
    """

    type: Literal["whole", "real", "bool", "bytes"]
    shape: tuple[int | str, ...]
    low: float | None = None
    high: float | None = None
    optional: bool = False


def misfit(arrays: Mapping[str, Any], layout: Mapping[str, Array], lengths: Mapping[str, int] | None = None) -> str:
    """What is wrong with ``arrays``, of NumPy or of torch, in words; empty if they have this ``layout``.

    ``lengths`` are those that are known by name. Arrays that are not in the layout are ignored.

    >>> import numpy as np
    >>> layout = {"label": Array("whole", ("n",), low=0), "weight": Array("real", ("n",), optional=True)}
    >>> misfit({"label": np.zeros(3, int)}, layout)
    ''
    >>> misfit({"label": np.zeros(3, int), "weight": np.zeros(2)}, layout)
    "'weight' must be real numbers [3], got float64 [2]"
    """
    known = dict(lengths or {})
    for name, wanted in layout.items():
        found = arrays.get(name)
        if found is None:
            if wanted.optional:
                continue
            return f"{name!r} is missing"
        shape = tuple(found.shape)
        if len(shape) == len(wanted.shape):
            for length, at in zip(shape, wanted.shape, strict=True):
                if isinstance(at, str):
                    known.setdefault(at, length)
        if not _has_type(found, wanted) or shape != tuple(known.get(str(at), at) for at in wanted.shape):
            rule = ", ".join(str(known.get(str(at), at)) for at in wanted.shape)
            numbers = {"bool": "true or false", "bytes": "bytes"}.get(wanted.type, f"{wanted.type} numbers")
            return f"{name!r} must be {numbers} [{rule}], got {_type(found)} {list(shape)}"
        for bound, inside, word in (
            (wanted.low, "__ge__", "at least"),
            (wanted.high, "__le__", "at most"),
        ):
            if bound is not None and not bool(getattr(found, inside)(bound).all()):
                return f"{name!r} must be {word} {bound:g} everywhere"
    return ""


def _type(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _has_type(array: Any, wanted: Array) -> bool:
    return _type(array).rstrip("0123456789") in _TYPES[wanted.type] or _type(array) in _TYPES[wanted.type]
