"""One batch of UMIX: which examples are mixed with which, and what the mixed batch costs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from torch import Tensor, nn

from umix.core.losses import cross_entropy
from umix.core.mixing import Loss, cutmix, mix, mixed_risk
from umix.errors import UserError


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
