"""Fitted objects of skrub: computed with the same digits every time, saved without pickle, loaded only if they are ours."""

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from umix.data.tables.skops_types import TRUSTED
from umix.errors import UserError, cause
from umix.files import reading, write_whole


@contextmanager
def steady() -> Iterator[None]:
    """Inside the block skrub warns about nothing (unseen texts, date formats) and computes in one thread.

    With several threads the decomposition of texts sums in another order, which changes the last digits.
    """
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def applied(name: str) -> Iterator[None]:
    """Inside the block something of skrub is applied that was read from the file ``name``; what it raises becomes one sentence."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:
        raise UserError(
            f"What skrub learned from the training rows ({name}) must apply to the table, but it raised {cause(error)}; run again."
        ) from None


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write ``state`` to ``path``; it holds only types that skops can save."""
    import skops.io

    write_whole(path, skops.io.dumps(state, compression=zipfile.ZIP_DEFLATED, compresslevel=1))


def load_state(path: Path, *, format: str) -> dict[str, Any]:
    """What ``save_state`` wrote; a file with types that are not trusted is refused before any of its code could run."""
    import skops.io

    if not path.exists():
        raise UserError(f"{path.parent} must hold a run on a table, but it has no {path.name}.")
    with reading(path, "preprocessing", fix="run again"):
        content = path.read_bytes()
        foreign = sorted(set(skops.io.get_untrusted_types(data=content)) - TRUSTED)
        if foreign:
            raise UserError(f"{path} must hold nothing but a table's preprocessing, but it holds {foreign[0]}.")
        state = skops.io.loads(content, trusted=sorted(TRUSTED))
    if not isinstance(state, dict) or state.get("format") != format:
        raise UserError(f"{path} must be a preprocessing file of this version of umix; run again.")
    return state
