"""What an exported file says about its model, as JSON."""

from collections.abc import Sequence
from typing import Any

from umix.exports.preprocessing import Preprocessing
from umix.exports.roles import Roles
from umix.exports.trained_model import TrainedModel
from umix.version import __version__

#: Every file that is exported holds these words, so that it may be overwritten by a newer export and by nothing else.
MARK = "umix export 1"
_SHOWN = 6  # classes


def described(
    trained: TrainedModel, preprocessing: Preprocessing | None = None, *, outputs: Sequence[str] = ()
) -> dict[str, Any]:
    """The run, the classes and how they are decided, the inputs in order and what must be done before them."""
    record = trained.record
    given = (
        {}
        if preprocessing is None
        else {
            "inputs": [tensor.as_json() for tensor in preprocessing.tensors],
            "columns": [column.as_json() for column in preprocessing.columns],
            "not_included": list(preprocessing.left_out),
        }
    )
    return {
        "format": MARK,
        "umix": __version__,
        "about": about(trained, preprocessing),
        "data": record.title,
        "method": record.method,
        "net": trained.short_title,
        "seed": record.seed,
        "key": record.key,
        "epoch": trained.choice.epoch + 1,
        "selected_by": record.rule(trained.select),
        "classes": list(record.classes),
        "biases": trained.biases.tolist(),
        **given,
        "outputs": list(outputs),
    }


def about(trained: TrainedModel, preprocessing: Preprocessing | None) -> str:
    """A sentence or two: what the model predicts, and what is not in it."""
    record, label = trained.record, Roles.of(trained.record, trained.reader).label or "the class"
    classes = ", ".join(record.classes[:_SHOWN]) + (", …" if len(record.classes) > _SHOWN else "")
    said = [f"Predicts {label} ({classes}), trained on {record.title} with umix (method {record.method})."]
    if preprocessing and preprocessing.left_out:
        said.append(f"Not included: {'; '.join(preprocessing.left_out)}.")
    return " ".join(said)
