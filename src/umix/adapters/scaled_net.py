"""A net that is trained on standardised columns: its settings, its inputs and its logits."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from umix.adapters.chosen_method import options
from umix.adapters.given_rows import Floats
from umix.bench.spec.presets import preset
from umix.nets.net import Net, NetSettings
from umix.nets.registry import net_settings

_FARTHEST = 10.0  # deviations at which inputs are cut, as in tables
_AT_ONCE = 8192  # rows that are predicted at once


def chosen_net(name: str, given: dict[str, Any] | None) -> NetSettings:
    """The net ``name`` with the options ``given``; what is not set of the usual net comes from the preset for tables."""
    usual = preset("table", "default")["net"]
    known = {key: value for key, value in usual.items() if key != "name"} if name == usual["name"] else {}
    return net_settings(name, **{**known, **options("net_options", given)})


def batch_size_of(given: int | Literal["auto"], *, rows: int) -> int:
    """Rows per step: ``given``, or a 32nd of the training rows, so that few rows are learned from in as many steps."""
    return int(np.clip(rows // 32, 32, 256)) if given == "auto" else given


def scaled(scaler: StandardScaler, x: Floats) -> Floats:
    """The columns of ``x`` standardised, and cut where they are far from all others."""
    found: Floats = scaler.transform(x)
    return found.clip(-_FARTHEST, _FARTHEST, out=found)


@torch.no_grad()
def net_logits(net: Net, scaler: StandardScaler, x: Floats) -> NDArray[np.float64]:
    """The logits of every row, [n, classes]."""
    parts = [
        net(torch.from_numpy(scaled(scaler, x[begin : begin + _AT_ONCE])).double())
        for begin in range(0, len(x), _AT_ONCE)
    ]
    logits: NDArray[np.float64] = torch.cat(parts).numpy()
    return logits
