"""The hits of every candidate decision of a run, in a file beside its record: what epoch and biases are chosen from together.

Where a run has no groups, the file also has the rates of the fifths of test in order of uncertainty under every decision.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from umix.array_layout import Array, misfit
from umix.core.epoch_counts import Counts
from umix.errors import UserError
from umix.files import read_arrays, write_arrays
from umix.run_folder import DECISIONS

_KIND = "decisions"
_FIFTHS = "{} quintiles"
_LARGEST = 1e6  # bias: those that are compared are logarithms of ratios of class sizes


def write_decisions(directory: Path, counts: Mapping[str, Counts]) -> None:
    """Write the candidate biases and their hits on every split; nothing where they were not counted."""
    if not all(split.has_decisions for split in counts.values()):
        return
    arrays = {"biases": next(iter(counts.values())).biases} | {
        name: split.decided_hits.astype(np.int32) for name, split in counts.items()
    }
    arrays |= {
        _FIFTHS.format(name): split.decided_quintiles for name, split in counts.items() if len(split.decided_quintiles)
    }
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_arrays(directory / DECISIONS, whole, {"kind": _KIND})


def with_decisions(counts: Mapping[str, Counts], directory: Path | None) -> dict[str, Counts]:
    """``counts`` with the decisions that the run in ``directory`` keeps.

    A run of an earlier version has none, nor has a task with very many groups and classes: they are decided by argmax.
    """
    path = None if directory is None else directory / DECISIONS
    if path is None or not path.exists():
        return dict(counts)
    arrays, _ = read_arrays(path, kind=_KIND)
    found = {}
    for name, split in counts.items():
        biases, hits, fifths = arrays.get("biases"), arrays.get(name), arrays.get(_FIFTHS.format(name))
        fifths = split.decided_quintiles if fifths is None else fifths
        if biases is None or hits is None or not _fit(split, biases, hits, fifths):
            raise UserError(
                f"{path} must have the hits of every decision of the run beside it; delete the run and run it again."
            )
        found[name] = replace(split, biases=biases, decided_hits=hits, decided_quintiles=fifths)
    return found


def _fit(split: Counts, biases: np.ndarray, hits: np.ndarray, fifths: np.ndarray) -> bool:
    """Whether these decisions can be about the examples of ``split``: the first is argmax, whose hits are known."""
    sizes = np.concatenate([split.sizes, split.margin_sizes, split.class_sizes])
    layout = {
        "biases": Array("real", ("decisions", len(split.class_sizes)), low=-_LARGEST, high=_LARGEST),
        "hits": Array("whole", (split.epochs, "decisions", len(sizes)), low=0),
    }
    rates = {"fifths": Array("real", (split.epochs, len(biases), 5), low=0, high=1)}
    return (
        not misfit({"biases": biases, "hits": hits}, layout)
        and not (len(fifths) and misfit({"fifths": fifths}, rates))
        and len(biases) > 0
        and not biases[:1].any()
        and bool((hits <= sizes).all())
        and np.array_equal(hits[:, 0], np.concatenate([split.hits, split.margin_hits, split.class_hits], axis=1))
    )
