"""The weights of the epochs that a selection rule may choose."""

from pathlib import Path
from typing import final

import numpy as np
from torch import Tensor

from umix.core.epoch_counts import Counts
from umix.core.selection import RULES, Decide, best_choice
from umix.files import write_tensors
from umix.nets.net import Net
from umix.run_folder import weights_folder, weights_path


@final
class BestWeights:
    """Keeps the weights of the epochs that some rule would select: as files in ``directory``, and with ``hold`` in ``held``."""

    def __init__(self, directory: Path | None, *, hold: bool = False) -> None:
        self._directory = directory
        self._hold = hold
        self._seen = 0  # epochs that were offered so far
        self._selected: set[int] = set()  # those that some rule selects
        self.held: dict[int, dict[str, Tensor]] = {}

    def offer(self, net: Net, val: Counts, *, last: bool) -> None:
        """Keep the weights of the newest epoch if a rule would select it, and delete those that no rule selects any more."""
        if self._directory is None and not self._hold:
            return
        newest = val.epochs - 1
        # The best of all epochs is the newest or was the best before; after a checkpoint was restored all are compared.
        among = sorted({*self._selected, newest}) if self._seen == newest else list(range(val.epochs))
        self._seen, self._selected = val.epochs, {among[place] for place in selected_epochs(val.only(among))}
        wanted = self._selected | ({newest} if last else set())
        if self._hold:
            new = (
                {newest: {name: tensor.clone() for name, tensor in _predicting(net).items()}}
                if newest in wanted
                else {}
            )
            self.held = {epoch: weights for epoch, weights in self.held.items() if epoch in wanted} | new
        if self._directory is None:
            return
        if newest in wanted:
            tensors = {name: tensor.contiguous() for name, tensor in _predicting(net).items()}
            write_tensors(weights_path(self._directory, newest), tensors, {"kind": "weights", "epoch": str(newest)})
        keep = {weights_path(self._directory, epoch) for epoch in wanted}
        for path in weights_folder(self._directory).glob("epoch-*.safetensors"):
            if path not in keep:
                path.unlink(missing_ok=True)


def _predicting(net: Net) -> dict[str, Tensor]:
    """The weights that are needed for prediction: all but those of a companion."""
    return {name: tensor.detach() for name, tensor in net.state_dict().items() if not name.startswith("companion.")}


def selected_epochs(val: Counts) -> set[int]:
    """The epochs that some rule selects, with argmax or together with a decision; the rule ``last`` is left out."""
    decides: tuple[Decide, ...] = ("argmax", "biases")
    rules = [rule for rule in scored_rules(val) if rule != "last"]
    return {best_choice(val, rule, decide).epoch for rule in rules for decide in decides}


def scored_rules(val: Counts) -> list[str]:
    """The selection rules that have a score here: without groups there is no worst group, for example."""
    return [rule for rule, scores in RULES.items() if val.epochs and not np.isnan(scores(val)).all()]
