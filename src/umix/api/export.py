"""``umix.export``: a trained model as a file for other programs."""

from pathlib import Path

from umix.api.result import RunResult, as_result
from umix.bench.runs.record import RunRecord
from umix.core.selection import Decide
from umix.exports.exported import Exported, Format


def export(
    run: RunResult | RunRecord | str | Path,
    output: str | Path,
    *,
    format: Format | None = None,
    select: str | None = None,
    decide: Decide | None = None,
    license: str | None = None,
    trust_code: bool = False,
) -> Exported:
    """Write the model of a finished run for use elsewhere and return what was written; its outputs equal those of ``predict``.

    Args:
        run: a result, a record or a run's folder.
        output: ``model.onnx``, ``model.pt2`` (torch.export), ``model.safetensors`` (a plain state dict), ``README.md`` (a model
            card), or a folder: state dict, config and card, or with ``format="mlflow"`` a model of MLflow.
        format: ``onnx``, ``pt2``, ``state_dict``, ``card`` or ``mlflow``; by default what the suffix of ``output`` says.
        select: rule that picks the epoch and, with ``decide``, the decision.
        decide: ``biases`` or ``argmax``; by default as the run was told.
        license: licence that the model card names, as the Hugging Face hub spells it (``mit``).
        trust_code: whether the record of the run may name code as its net, ``module:factory``, which is then imported.

    """
    result = as_result(run, trust_code=trust_code)
    return result.export(output, format=format, select=select, decide=decide, license=license)
