"""The second stage of UMIX in a training loop of one's own.

    mixup = WeightedMixup(trajectory.weights(eta=3))
    for epoch in range(epochs):
        for x, y, index in loader:
            loss = mixup(net, x, y, index)
            ...
        mixup.end_epoch()

Those who call the net themselves write ``inputs, loss = mixup.mix(x, y, index)`` and ``loss(net(inputs))``.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Tensor, distributed, nn

from umix.core.losses import cross_entropy
from umix.core.mixing import Loss, cutmix, draw_lambda, mix, mixed_risk
from umix.core.pairing import partners
from umix.core.streams import stream
from umix.errors import UserError, unknown
from umix.training.stage import FINAL


@final
class WeightedMixup:
    """The weighted loss of mixed pairs with probability ``sigma``, else of the batch as it is (UMIX Algorithm 1).

    The same seed, weights and batches give the same numbers as ``umix run``. Each of several processes draws its own numbers.

    Args:
        weights: a weight for every training example, [n]; ``Trajectory.weights`` gives them.
        sigma: probability of mixing a batch.
        alpha: λ ~ Beta(alpha, alpha) is the share of an example in its mixture.
        mixing: ``input`` mixes whole inputs, ``cutmix`` boxes of images.
        per_example: draw λ, and whether to mix, for every example instead of once per batch.
        loss: ``loss(logits, y)`` gives a loss per example, [batch]; by default the cross-entropy.
        seed: seed of everything that is drawn.

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

    def pairs(self, y: Tensor, index: Tensor) -> "MixedPairs":
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
        if len(state["weights"]) != len(self._weights):
            raise UserError(
                f"The state of WeightedMixup must be that of {len(self._weights)} examples, got one of {len(state['weights'])}; "
                "load it with the training set that it was taken with."
            )
        drawn = np.random.PCG64(0)
        drawn.state = state["generator"]
        self._weights = state["weights"].to(self._weights)
        self.seed, self.epoch = int(state["seed"]), int(state["epoch"])
        self._rng = np.random.Generator(drawn if state["rank"] == _rank() else drawn.jumped(1 + _rank()))


@final
@dataclass(eq=False)
class MixedPairs:
    """The labels ``y`` and weights ``w`` [batch] of a batch; ``lam`` None: nothing is mixed, else with the examples ``pair``.

    Mix the inputs (``inputs``) or what enters a module (``before``), call the net, and ask for its ``loss``.
    """

    y: Tensor
    w: Tensor
    lam: float | Tensor | None
    pair: Tensor | None
    rng: np.random.Generator
    loss_of: Loss | None = None
    how: Literal["input", "cutmix"] = "input"
    logits_mixed: int | None = None  # as many logits are mixed, not the features that made them

    def inputs(self, x: Tensor) -> Tensor:
        """The mixed inputs; CutMix changes λ to the true share of the image that stayed."""
        if self.lam is None or self.pair is None:
            return x
        if not isinstance(x, Tensor) or not x.is_floating_point():
            got = x.dtype if isinstance(x, Tensor) else f"a {type(x).__name__}"
            raise UserError(
                f"Inputs to be mixed must be one tensor of numbers to average, got {got}; mix the features instead: pass before=, "
                "the last layer of the net."
            )
        if len(x) != len(self.y):
            raise UserError(f"A batch must have an input for each label, got {len(x)} for {len(self.y)} labels.")
        if self.how == "input":
            return mix(x, self.pair, self.lam)
        if x.dim() < 3:
            raise UserError(
                f"mixing='cutmix' must be given images [batch, …, height, width], got {list(x.shape)}; choose mixing='input'."
            )
        mixed, self.lam = cutmix(x, self.pair, self.lam, rng=self.rng)
        return mixed

    @contextmanager
    def before(self, module: nn.Module) -> Iterator[None]:
        """Inside the block, what enters ``module`` is mixed: the features, where it is the last layer of a net.

        A linear layer on every token, whose logits the net reduces to those of one token, as decoders do with the last of a text:
        the tokens of two texts do not match, so ``loss`` mixes the logits, which is the same because the layer is linear.
        Raises if the net was called and ``module`` was not, or was called twice.
        """
        if not isinstance(module, nn.Module):
            raise UserError(f"before must be a module of the net, got {module!r}; pass the module itself, as net.head.")
        if self.lam is None or self.pair is None:
            yield
            return
        lam, pair, calls = self.lam, self.pair, 0

        def mixed(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
            nonlocal calls
            calls += 1
            if isinstance(module, nn.Linear) and given[0].dim() > 2:
                self.logits_mixed = module.out_features
                return given
            return (mix(given[0], pair, lam), *given[1:])

        def tokens_were_mixed(_: nn.Module, given: tuple[Any, ...], made: Any) -> None:
            if given[0].dim() == 3 and isinstance(made, Tensor) and made.dim() == 3 and self.logits_mixed is None:
                raise UserError(
                    f"A module that is applied to every token must be an nn.Linear to mix features before it, got "
                    f"{type(module).__name__}; pass the nn.Linear that makes the logits."
                )

        hooks = [module.register_forward_pre_hook(mixed)]
        if not isinstance(module, nn.Conv1d):
            hooks.append(module.register_forward_hook(tokens_were_mixed))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
        if calls != 1:
            raise UserError(
                f"The module that features are mixed before must be used once in a forward pass, but "
                f"{type(module).__name__} was used {calls} times; pass the layer that makes the logits."
            )

    def loss(self, logits: Tensor) -> Tensor:
        """w_i·λ·ℓ(x̃, y_i) + w_j·(1−λ)·ℓ(x̃, y_j), the mean over the batch (UMIX eq. 4)."""
        if not isinstance(logits, Tensor):
            raise UserError(
                f"The net must give logits [batch, classes], a tensor, got {type(logits).__name__}; call it with a function that "
                "takes them out, as lambda x: net(x).logits."
            )
        if self.logits_mixed is not None and self.lam is not None and self.pair is not None:
            if logits.shape[1] != self.logits_mixed:
                raise UserError(
                    f"A linear layer on every token must make the {logits.shape[1]} logits to mix features before it, got "
                    f"{self.logits_mixed} outputs; pass the last layer of the net."
                )
            logits = mix(logits, self.pair, self.lam)
        if self.loss_of is not None:
            return mixed_risk(logits, self.y, self.w, self.pair, self.lam, loss=self._one_each)
        if self.y.is_floating_point() or logits.dim() != 2 or logits.shape[1] < 2:
            raise UserError(
                "The cross-entropy must be given logits [batch, classes] of two classes or more and labels that are whole numbers, "
                f"got {list(logits.shape)} and labels of {self.y.dtype}; for anything else pass loss=."
            )
        return mixed_risk(logits, self.y, self.w, self.pair, self.lam)

    def _one_each(self, logits: Tensor, y: Tensor) -> Tensor:
        """The losses that the user's function gives, [batch]."""
        losses = self.loss_of(logits, y) if self.loss_of is not None else cross_entropy(logits, y)
        if losses.shape != self.y.shape:
            raise UserError(
                f"The loss of WeightedMixup must give one number per example, {list(self.y.shape)}, got {list(losses.shape)}; "
                'set reduction="none".'
            )
        return losses


def named_part(module: nn.Module, name: str) -> nn.Module:
    """The part of ``module`` that is called ``name``, with dots as in ``named_modules``; itself for an empty name.

    >>> named_part(nn.Sequential(nn.ReLU()), "0")
    ReLU()
    """
    try:
        return module.get_submodule(name)
    except AttributeError:
        known = [part for part, _ in module.named_modules() if part]
        raise unknown(f"part of {type(module).__name__}", name, known) from None


def _rank() -> int:
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
