"""The trained net of a finished run."""

from collections.abc import Mapping

import torch
from torch import Tensor

from umix.bench.runs.record import RunRecord
from umix.bench.spec.code_in_files import code_refused
from umix.core.streams import torch_stream
from umix.errors import UserError, cause
from umix.files import read_tensors
from umix.nets.net import Net
from umix.nets.net_size import require_fitting_net
from umix.nets.registry import names_code, net_kind, net_settings
from umix.nets.weight_files import state_hash
from umix.run_folder import weights_path


def load_net(
    record: RunRecord,
    *,
    select: str | None = None,
    epoch: int | None = None,
    net_name: str | None = None,
    trust_code: bool = False,
) -> Net:
    """The trained net of a finished run, in evaluation mode, at the epoch that the rule ``select`` chooses on validation.

    The decision that was chosen with the epoch is not part of the net: ``record.choice`` and ``record.biases`` tell it.
    ``epoch`` names the epoch instead; the weights of an epoch are kept if some rule selects it.
    ``net_name`` (for example ``hf:FOLDER``) says where the net's files are now, if they were moved. Their content must be the same.
    A record that names code as its net, ``module:factory``, is loaded with ``trust_code`` only: the module is imported and run.
    """
    _check_code(record, net_name, trust_code=trust_code)
    tensors, _ = read_tensors(
        weights_path(record.directory, record.best_epoch(select) if epoch is None else epoch), kind="weights"
    )
    return net_with(record, tensors, net_name=net_name, trust_code=trust_code)


def net_with(
    record: RunRecord, weights: Mapping[str, Tensor], *, net_name: str | None = None, trust_code: bool = False
) -> Net:
    """The net of ``record`` with these weights, in evaluation mode."""
    _check_code(record, net_name, trust_code=trust_code)
    net = _built(record, net_name)
    try:
        if record.plan["net"].get("freeze"):
            net.head.load_state_dict({name.removeprefix("head."): tensor for name, tensor in weights.items()})
        else:
            net.load_state_dict(dict(weights))
    except RuntimeError as error:
        raise UserError(
            f"The weights of the run {record.key} must fit the net {net_name or record.net} that its record names, but they do not "
            f"({cause(error)}); train it again."
        ) from None
    return net.eval()


def _check_code(record: RunRecord, net_name: str | None, *, trust_code: bool) -> None:
    """Raise UserError if the record, and not the caller, names code as the net."""
    name = str(record.net or record.plan["net"].get("name"))
    if not net_name and not trust_code and names_code(name):
        where = f"The record in {record.directory}" if record.has_directory else f"The record {record.key}"
        raise code_refused(name, where)


def _built(record: RunRecord, net_name: str | None) -> Net:
    """The net of ``record`` before training. The content of its files must not have changed."""
    options = dict(record.plan["net"])
    name, content = options.pop("name"), options.pop("content", "")
    name = net_name or record.net or name
    implied = net_kind(name)[1]
    if "net.weights" in record.settings:
        options["weights"] = record.settings["net.weights"]
    kind = net_kind(name)[0]
    given = {key: value for key, value in options.items() if key not in {*implied, *kind.from_data}}
    settings = net_settings(name, **given).on_columns(tuple(record.input_categories))
    if settings.content != content:
        raise UserError(f"The files of the net {name} have changed since the run {record.key} was trained with it.")
    if settings.model_dump().get("freeze"):
        settings = settings.model_copy(update={"dropout": 0.0})  # nothing is dropped in evaluation
    example = torch.zeros(record.input_shape, dtype=getattr(torch, record.input_dtype))
    require_fitting_net(settings, example, len(record.classes))
    with torch_stream(record.seed, "features", "init"):  # a random frozen body must be the one of training
        net = settings.build(example, len(record.classes))
    if record.body and record.body != state_hash(net.body):
        raise UserError(f"The weights of the net {name} have changed since the run {record.key} was trained with it.")
    return net
