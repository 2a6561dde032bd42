"""The weights of the epochs that a selection rule may choose."""

from pathlib import Path
from typing import final

import numpy as np
from torch import Tensor

from umix.core.epoch_counts import Counts
from umix.core.selection import RULES, THRESHOLD_RULES, best_choice
from umix.models.model import Model
from umix.run_folder import weights_folder, weights_path
from umix.store import remove, write_tensors

#: Bytes of weights that wait until they are compared; a larger net is decided on after every epoch.
MOST_WAITING = 2**25
_COMPANION = "companion."  # how the names of weights begin that take no part in prediction


@final
class BestWeights:
    """Keeps the weights of the epochs that some rule would select: as files in ``directory``, and with ``hold`` in ``held``.

    The weights of new epochs wait in memory: to compare epochs and to write files takes longer than a short epoch.
    """

    def __init__(self, directory: Path | None, *, hold: bool = False) -> None:
        self._directory = directory
        self._hold = hold
        self._waiting: dict[int, dict[str, Tensor]] = {}
        self._size = 0  # bytes that wait
        self.held: dict[int, dict[str, Tensor]] = {}

    def offer(self, net: Model, epoch: int) -> bool:
        """Let the weights of ``epoch``, the newest one, wait for ``settle``; whether so many wait that it should be called now."""
        if self._directory is None and not self._hold:
            return False
        weights = {name: tensor.clone() for name, tensor in _predicting(net).items()}
        self._waiting[epoch] = weights
        self._size += sum(tensor.nbytes for tensor in weights.values())
        return self._size >= MOST_WAITING

    def settle(self, val: Counts, *, last: bool) -> None:
        """Keep the waiting weights of the epochs of ``val`` that a rule selects, and delete those that no rule selects any more.

        The newest are also kept if their epoch is the ``last`` one.
        """
        if not self._waiting:
            return
        wanted = selected_epochs(val) | ({val.epochs - 1} if last else set())
        new = {epoch: weights for epoch, weights in self._waiting.items() if epoch in wanted}
        self._waiting, self._size = {}, 0
        if self._hold:
            self.held = {epoch: weights for epoch, weights in self.held.items() if epoch in wanted} | new
        if self._directory is None:
            return
        for epoch, weights in new.items():
            tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
            write_tensors(weights_path(self._directory, epoch), tensors, {"kind": "weights", "epoch": str(epoch)})
        keep = {weights_path(self._directory, epoch) for epoch in wanted}
        for path in weights_folder(self._directory).glob("epoch-*.safetensors"):
            if path not in keep:
                remove(path)


def _predicting(net: Model) -> dict[str, Tensor]:
    """The weights that are needed for prediction: all but those of a companion."""
    return {name: tensor.detach() for name, tensor in net.state_dict().items() if not name.startswith(_COMPANION)}


def selected_epochs(val: Counts) -> set[int]:
    """The epochs that some rule selects, with argmax or together with a threshold; the rule ``last`` is left out."""
    rules = [rule for rule in scored_rules(val) if rule != "last"]
    with_threshold = [rule for rule in rules if rule in THRESHOLD_RULES and val.has_thresholds]
    return {best_choice(val, rule, "off").epoch for rule in rules} | {
        best_choice(val, rule, "tuned").epoch for rule in with_threshold
    }


def scored_rules(val: Counts) -> list[str]:
    """The selection rules that have a score here: without groups there is no worst group, for example."""
    return [rule for rule, scores in RULES.items() if val.epochs and not np.isnan(scores(val)).all()]
