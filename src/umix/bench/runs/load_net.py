"""The trained net of a finished run."""

from collections.abc import Mapping

import torch
from torch import Tensor

from umix.bench.runs.record import RunRecord
from umix.bench.spec.code_in_files import code_refused
from umix.core.streams import torch_stream
from umix.errors import UserError
from umix.models.model import Model, ModelSettings
from umix.models.prototypes import match_head
from umix.models.registry import names_code, net_kind, net_settings
from umix.models.weight_files import state_hash
from umix.run_folder import weights_path
from umix.store import read_tensors, reading


def load_net(
    record: RunRecord,
    *,
    select: str | None = None,
    epoch: int | None = None,
    net_name: str | None = None,
    trust_code: bool = False,
) -> Model:
    """The trained net of a finished run, in evaluation mode, at the epoch that the rule ``select`` chooses on validation.

    The threshold that was chosen with the epoch is not part of the net: ``record.choice`` and ``record.biases`` tell it.

    Args:
        record: the record of the run, as ``load_run`` gives it.
        select: rule that picks the epoch; by default the run's.
        epoch: the epoch itself instead, counted from 0; its weights are kept if some rule selects it.
        net_name: where the net's files are now, if they were moved, as ``hf:FOLDER``. Their content must be the same.
        trust_code: whether the record may name code as its net, ``module:factory``, which is then imported.

    """
    _check_code(record, net_name, trust_code=trust_code)
    path = weights_path(record.directory, record.best_epoch(select) if epoch is None else epoch)
    tensors, _ = read_tensors(path, kind="weights")
    odd = [name for name, tensor in tensors.items() if tensor.is_floating_point() and not tensor.isfinite().all()]
    if odd:
        raise UserError(
            f"{path} must hold finite weights, but {odd[0]!r} is not; the run has diverged, or the file is damaged: run it again, "
            "with a smaller fit.lr."
        )
    with reading(path, "weights"):
        return net_with(record, tensors, net_name=net_name, trust_code=trust_code)


def net_with(
    record: RunRecord, weights: Mapping[str, Tensor], *, net_name: str | None = None, trust_code: bool = False
) -> Model:
    """The net of ``record`` with these weights, in evaluation mode."""
    _check_code(record, net_name, trust_code=trust_code)
    net = _built(record, _settings(record, net_name))
    match_head(net, weights)
    part: torch.nn.Module = net
    if record.plan["net"].get("freeze"):
        part, weights = net.head, {name.removeprefix("head."): tensor for name, tensor in weights.items()}
    part.load_state_dict(dict(weights))
    return net.eval()


def _check_code(record: RunRecord, net_name: str | None, *, trust_code: bool) -> None:
    """Raise UserError if the record, and not the caller, names code as the net."""
    name = str(record.net or record.plan["net"].get("name"))
    if not net_name and not trust_code and names_code(name):
        where = f"The record in {record.directory}" if record.has_directory else f"The record {record.key}"
        raise code_refused(name, where)


def _example(record: RunRecord) -> Tensor:
    return torch.zeros(record.input_shape, dtype=getattr(torch, record.input_dtype))


def _settings(record: RunRecord, net_name: str | None) -> ModelSettings:
    """The settings of the net of ``record``. The content of its files must not have changed."""
    options = dict(record.plan["net"])
    name, content = options.pop("name"), options.pop("content", "")
    kind, implied = net_kind(net_name or record.net or name)
    if kind.name != name:
        raise UserError(f"The net of the run {record.key} must be of the kind {name} of its plan, got {kind.name}.")
    if "net.weights" in record.settings:
        options["weights"] = record.settings["net.weights"]
    given = {key: value for key, value in options.items() if key not in {*implied, *kind.from_data}}
    title = net_name or record.net or name
    settings = net_settings(title, **given).with_categories(tuple(record.input_categories))
    if settings.content != content:
        raise UserError(f"The files of the net {title} have changed since the run {record.key} was trained with it.")
    return settings


def _built(record: RunRecord, settings: ModelSettings) -> Model:
    """The net of ``record`` before training."""
    if settings.model_dump().get("freeze"):
        settings = settings.model_copy(update={"dropout": 0.0})  # nothing is dropped in evaluation
    with torch_stream(record.seed, "features", "init"):  # a random frozen body must be the one of training
        net = settings.build(_example(record), len(record.classes))
    if record.body and record.body != state_hash(net.as_layers(settings.title).body):
        raise UserError(
            f"The weights of the net {settings.title} have changed since the run {record.key} was trained with it."
        )
    return net
