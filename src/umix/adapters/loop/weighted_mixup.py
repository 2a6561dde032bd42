"""The second stage of UMIX in a training loop of one's own.

    mixup = WeightedMixup(trajectory.weights(eta=3))
    for epoch in range(epochs):
        for x, y, index in loader:
            loss = mixup(net, x, y, index)
            ...
        mixup.end_epoch()

Those who call the net themselves write ``inputs, loss = mixup.mix(x, y, index)`` and ``loss(net(inputs))``.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Tensor, distributed, nn

from umix.adapters.loop.mixed_pairs import MixedPairs
from umix.core.mixing import Loss, draw_lambda
from umix.core.pairing import partners
from umix.core.streams import stream
from umix.errors import UserError
from umix.training.stage import FINAL


@final
class WeightedMixup:
    """The weighted loss of mixed pairs with probability ``sigma``, else of the batch as it is (UMIX Algorithm 1).

    ``weights`` [n] has a weight for every training example; ``Trajectory.weights`` gives them. λ ~ Beta(alpha, alpha), and
    whether to mix at all, are drawn once per batch, or per example with ``per_example``. ``mixing`` is what is mixed where inputs
    are: all of them, or boxes of images (``cutmix``). ``loss(logits, y)`` gives a loss per example, [batch]; by default the
    cross-entropy. The same seed, weights and batches give the same numbers as ``umix run``, in several processes others in each.
    """

    def __init__(
        self,
        weights: Tensor,
        *,
        sigma: float = 0.5,
        alpha: float = 0.5,
        mixing: Literal["input", "cutmix"] = "input",
        per_example: bool = False,
        loss: Loss | None = None,
        seed: int = 0,
    ) -> None:
        try:
            weights = torch.as_tensor(weights, dtype=torch.float32)
        except (TypeError, ValueError):
            raise UserError(
                f"WeightedMixup.weights must be a number for every training example, [n], got {type(weights).__name__}; "
                "trajectory.weights(eta=...) gives them."
            ) from None
        if weights.dim() != 1 or not len(weights) or not bool((weights.isfinite() & (weights >= 0)).all()):
            raise UserError(
                f"WeightedMixup.weights must be a finite number of at least 0 for every training example, [n], got "
                f"{list(weights.shape)} with {int((~(weights.isfinite() & (weights >= 0))).sum())} others."
            )
        if not bool(weights.any()):
            raise UserError(
                "WeightedMixup.weights must have a weight above 0, but all are 0: nothing would be trained."
            )
        if not 0 <= sigma <= 1 or not alpha > 0:
            raise UserError(f"sigma must lie in 0..1 and alpha must be above 0, got sigma={sigma} and alpha={alpha}.")
        if mixing not in ("input", "cutmix"):
            raise UserError(
                f"mixing must be 'input' or 'cutmix', got {mixing!r}; to mix features pass before=, the last layer of the net."
            )
        self.sigma, self.alpha, self.mixing, self.per_example, self.loss = sigma, alpha, mixing, per_example, loss
        self.seed, self.epoch = seed, 0
        self._weights = weights
        self._rng = self._stream()

    @property
    def weights(self) -> Tensor:
        """The weight of every training example, float32 [n]."""
        return self._weights

    def __call__(
        self, net: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, index: Tensor, *, before: nn.Module | None = None
    ) -> Tensor:
        """The loss of the batch, a scalar; ``index`` [batch] are the places of its examples in the training set.

        With ``before``, the last layer of ``net``, features are mixed instead of inputs: what enters that layer.
        """
        pairs = self.pairs(y, index)
        if before is None:
            return pairs.loss(net(pairs.inputs(x)))
        with pairs.before(before):
            logits = net(x)
        return pairs.loss(logits)

    def mix(self, x: Tensor, y: Tensor, index: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """The mixed inputs, and the function that gives the loss of their logits."""
        pairs = self.pairs(y, index)
        return pairs.inputs(x), pairs.loss

    def pairs(self, y: Tensor, index: Tensor) -> MixedPairs:
        """What is drawn for a batch: λ and the partners, with the labels and weights of its examples."""
        if not isinstance(index, Tensor) or y.dim() != 1 or index.shape != y.shape:
            got = list(index.shape) if isinstance(index, Tensor) else f"an index of type {type(index).__name__}"
            raise UserError(
                f"A batch must have one index per label, both [batch], got {got} for labels {list(y.shape)}."
            )
        if self._weights.device != y.device:
            self._weights = self._weights.to(y.device)
        try:
            w = self._weights.index_select(0, index.to(y.device, torch.int64))
        except IndexError:
            raise UserError(
                f"The index of an example must lie in 0..{len(self._weights) - 1}, the places of the weights, got "
                f"{int(index.min())}..{int(index.max())}; IndexedDataset gives the right ones."
            ) from None
        lam = draw_lambda(len(y), sigma=self.sigma, alpha=self.alpha, per_example=self.per_example, rng=self._rng)
        if lam is None:
            return MixedPairs(y, w, None, None, self._rng, self.loss, self.mixing)
        pair = torch.from_numpy(partners(len(y), rng=self._rng)).to(y.device, non_blocking=True)
        drawn = torch.from_numpy(lam).to(y.device, torch.float32) if isinstance(lam, np.ndarray) else lam
        return MixedPairs(y, w, drawn, pair, self._rng, self.loss, self.mixing)

    def end_epoch(self) -> None:
        """Begin the random numbers of the next epoch."""
        self.set_epoch(self.epoch + 1)

    def set_epoch(self, epoch: int) -> None:
        """Begin the random numbers of ``epoch``, counted from 0."""
        self.epoch = epoch
        self._rng = self._stream()

    def _stream(self) -> np.random.Generator:
        rank = _rank()
        return stream(self.seed, FINAL, "objective" if rank == 0 else f"objective-{rank}", self.epoch)

    def state_dict(self) -> dict[str, Any]:
        """The weights, the epoch and the state of this process's random numbers: tensors, numbers and texts."""
        return {
            "weights": self._weights,
            "seed": self.seed,
            "epoch": self.epoch,
            "rank": _rank(),
            "generator": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was taken.

        All processes may load the state of one: the others then draw other random numbers than that one until the epoch ends.
        """
        known = set(state) == {"weights", "seed", "epoch", "rank", "generator"} and isinstance(state["weights"], Tensor)
        if not known or state["weights"].shape != self._weights.shape:
            got = f"one of {len(state['weights'])}" if known else f"the entries {', '.join(map(str, state))}"
            raise UserError(
                f"The state of WeightedMixup must be that of {len(self._weights)} examples, as state_dict gives it, got {got}."
            )
        drawn = np.random.PCG64(0)
        try:
            drawn.state = state["generator"]
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"The state of WeightedMixup must hold its random numbers as state_dict gives them, but they cannot be read "
                f"({error}); it is damaged: train from the start."
            ) from None
        self._weights = state["weights"].to(self._weights)
        self.seed, self.epoch = int(state["seed"]), int(state["epoch"])
        self._rng = np.random.Generator(drawn if state["rank"] == _rank() else drawn.jumped(1 + _rank()))


def _rank() -> int:
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
