"""The ways in which UMIX can weigh training examples, and those that ``auto`` chooses from.

The paper's weight is η·u + c with the example's own uncertainty u. Where labels are noisy, the uncertainty of single examples is
mostly noise, but that of a class, or of the examples of a class that ERM gets wrong, is not. Where classes are of very different
size, balancing them is half of the work. So there are four kinds of weights, and no kind is best on all data:

- ``example``: η·u + c;
- ``class``: η·ū + c, where ū is the mean of u in the example's class;
- ``balance``: (η·u + c) / n_y, where n_y is the size of the class; with η = 0 plain class balance;
- ``cell``: n^(−power), where n is the size of the example's cell: its class, and whether ERM was wrong in half of the window.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

from torch import Tensor

from umix.core.weights import cells, class_means, importance_weights, inverse_frequency, normalized

Pool = Literal["example", "class", "balance", "cell"]
POOLS: tuple[Pool, ...] = ("example", "class", "balance", "cell")

_ETAS = (1.0, 3.0, 10.0, 30.0, 100.0)


@final
@dataclass(frozen=True)
class Weighting:
    """One way to weigh examples: settings of a UMIX run."""

    pool: Pool
    eta: float
    length: int
    power: float = 1.0

    def settings(self) -> dict[str, Any]:
        """These settings by name, without those that this kind of weights does not use."""
        if self.pool == "cell":
            return {"pool": self.pool, "power": self.power, "length": self.length}
        return {"pool": self.pool, "eta": self.eta, "length": self.length}

    def __str__(self) -> str:
        return " ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.settings().items()
        )

    def weights(self, u: Tensor, y: Tensor, *, c: float, by: Tensor | None = None, normalize: bool = True) -> Tensor:
        """The weight of every training example, [n], from its uncertainty ``u`` and its class ``y``.

        With ``by`` [n], an example counts as that many copies.
        """
        if self.pool == "cell":
            return inverse_frequency(cells(u, y), power=self.power, by=by)
        pooled = class_means(u, y, by=by) if self.pool == "class" else u
        w = importance_weights(pooled, eta=self.eta, c=c)
        if self.pool == "balance":
            w = w * inverse_frequency(y, by=by)
        return normalized(w, by=by) if normalize else w


#: How much a candidate costs: nothing (a linear head in a fleet), a share of a small fit, or of a large one.
Cost = Literal["none", "small", "large"]
_BALANCED_ETAS: Mapping[Cost, tuple[float, ...]] = {"none": (0.0, 3.0, 10.0), "small": (0.0, 3.0), "large": (0.0,)}
_EXAMPLE_ETAS: Mapping[Cost, tuple[float, ...]] = {"none": _ETAS, "small": _ETAS[:4], "large": (3.0, 30.0)}
_CLASS_ETAS: Mapping[Cost, tuple[float, ...]] = {"none": (10.0, 100.0), "small": (10.0, 100.0), "large": (10.0,)}
_POWERS: Mapping[Cost, tuple[float, ...]] = {"none": (0.5, 1.0), "small": (0.5, 1.0), "large": (0.5,)}


def weightings(
    *,
    pools: Sequence[Pool],
    etas: Sequence[float] | None,
    lengths: Sequence[int] | None,
    epochs: int,
    power: float,
    cost: Cost,
) -> list[Weighting]:
    """The weightings to choose from, where ``etas`` and ``lengths`` are None if they are to be chosen too.

    The more a candidate costs, the fewer there are. ``epochs`` are those of the first stage, the longest window. The first one
    weighs all examples alike, if η is free.

    >>> free = {"pools": POOLS, "etas": None, "lengths": None, "epochs": 20, "power": 1.0}
    >>> [len(weightings(**free, cost=cost)) for cost in ("none", "small", "large")]
    [40, 16, 8]
    """
    windows = _windows(lengths, epochs, cost)
    first, several = windows[0], windows if cost == "none" else windows[:1]
    found = [Weighting("example", 0.0, first)] if etas is None else []
    if "example" in pools:
        found += [Weighting("example", eta, length) for length in windows for eta in etas or _EXAMPLE_ETAS[cost]]
        found += [Weighting("example", _ETAS[-1], first)] if etas is None and cost == "small" else []
    if "class" in pools:
        found += [Weighting("class", eta, first) for eta in etas or _CLASS_ETAS[cost]]
    if "balance" in pools:
        found += [
            Weighting("balance", eta, length if eta else first)
            for length in several
            for eta in etas or _BALANCED_ETAS[cost]
        ]
    if "cell" in pools:
        powers = _POWERS[cost] if len(pools) > 1 else (power,)
        found += [Weighting("cell", 0.0, length, each) for length in several for each in powers]
    return list(dict.fromkeys(found))


def _windows(lengths: Sequence[int] | None, epochs: int, cost: Cost) -> list[int]:
    if lengths is not None:
        return list(lengths)
    tried = (2, 5, 10, epochs) if cost == "none" else (2, epochs)
    return sorted({min(length, epochs) for length in tried})
