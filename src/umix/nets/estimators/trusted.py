"""scikit-learn's models as bytes, through skops: only types that are listed here or named by the caller are loaded."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from umix.errors import UserError, cause

_SCHEMA = "schema.json"

#: Types of a fitted HistGradientBoostingClassifier without its trees, beside those that skops trusts itself. Loading them runs no
#: code of the file.
BOOSTING = frozenset(
    {
        "functools.partial",
        "sklearn.utils.validation.check_array",
    }
)


def dump_model(model: Any) -> bytes:
    """``model`` as skops writes it, but equal models give equal bytes."""
    import skops.io

    try:
        return _without_addresses(skops.io.dumps(model))
    except Exception as error:  # whatever a model holds may refuse in its own way
        raise UserError(
            f"A model must be stored without pickle, but {type(model).__name__} holds something that skops cannot write "
            f"({cause(error)}); leave functions and the like out of it."
        ) from None


def _without_addresses(content: bytes) -> bytes:
    """The same archive with objects and files numbered in their order, where skops takes addresses in memory, and without dates."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(_SCHEMA))
        numbers: dict[Any, int] = {}
        files: dict[str, str] = {}
        for node in _nodes(schema):
            if "__id__" in node:
                node["__id__"] = numbers.setdefault(node["__id__"], len(numbers))
            if isinstance(node.get("file"), str):
                old = node["file"]
                node["file"] = files.setdefault(old, f"{len(files)}{Path(old).suffix}")
        written = {new: archive.read(old) for old, new in files.items()} | {_SCHEMA: json.dumps(schema).encode()}
    return zipped(written)


def zipped(parts: Mapping[str, bytes]) -> bytes:
    """The files ``parts`` as an archive; equal files give equal bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name), part)  # dated 1980
    return made.getvalue()


@contextmanager
def reading() -> Iterator[None]:
    """Inside the block a stored model is read; whatever its library raises of it becomes one sentence."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"A stored model must be whole, but it cannot be read ({cause(error)}); train it again."
        ) from None


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema, from the outside in."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _nodes(value)


def load_model(content: bytes, *, trusted: Callable[[str], bool]) -> Any:
    """The model in ``content``; a type that skops does not know is refused unless ``trusted`` says yes to its name."""
    import skops.io

    with reading():
        named = skops.io.get_untrusted_types(data=content)
        if foreign := sorted(name for name in named if not trusted(name)):
            raise UserError(
                f"A stored model must hold nothing but a scikit-learn model, but it holds {foreign[0]}; train it again."
            )
        return skops.io.loads(content, trusted=named)
