"""Inputs, labels and indices of a batch as a loader of an ``IndexedDataset`` gives it."""

from collections.abc import Mapping
from typing import Any

from umix.adapters.loop.indexed_dataset import INDEX
from umix.errors import UserError

_LABELS = ("y", "label", "labels", "target")


def batch_parts(batch: Any) -> tuple[Any, Any, Any]:
    """The inputs, the labels and the indices of ``batch``: (x, y, index), or a dict with "index" and a label.

    The inputs of a dict are its entry "x", or all that is neither the index nor the label.
    """
    if isinstance(batch, tuple | list) and len(batch) == 3:
        return batch[0], batch[1], batch[2]
    if isinstance(batch, Mapping) and INDEX in batch:
        label = next((name for name in _LABELS if name in batch), None)
        if label is not None:
            rest = {name: value for name, value in batch.items() if name not in (INDEX, label)}
            return rest.get("x", rest), batch[label], batch[INDEX]
    shape = f"the entries {', '.join(map(str, batch))}" if isinstance(batch, Mapping) else f"{len(batch)} parts"
    raise UserError(
        f"A batch must be (x, y, index), or a dict with index and one of {', '.join(_LABELS)}, got {shape}; wrap the training set "
        "in umix.IndexedDataset."
    )
