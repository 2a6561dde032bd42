"""The net that is trained: its settings and its logits."""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from umix.adapters.sklearn.chosen_method import options
from umix.bench.spec.presets import preset
from umix.nets.net import Net, NetSettings
from umix.nets.registry import net_settings


def chosen_net(name: str, given: dict[str, Any] | None) -> NetSettings:
    """The net ``name`` with the options ``given``; what is not set of the usual net comes from the preset for tables."""
    usual = preset("table", "default")["net"]
    known = {key: value for key, value in usual.items() if key != "name"} if name == usual["name"] else {}
    return net_settings(name, **{**known, **options("net_options", given)})


def batch_size_of(given: int | Literal["auto"], *, rows: int) -> int:
    """Rows per step: ``given``, or a 32nd of the training rows, so that few rows are learned from in as many steps."""
    return int(np.clip(rows // 32, 32, 256)) if given == "auto" else given


@torch.no_grad()
def net_logits(net: Net, blocks: Iterable[NDArray[np.floating[Any]]]) -> NDArray[np.float64]:
    """The logits of every row of the ``blocks``, [n, classes]."""
    logits: NDArray[np.float64] = torch.cat([net(torch.from_numpy(x).double()) for x in blocks]).numpy()
    return logits
