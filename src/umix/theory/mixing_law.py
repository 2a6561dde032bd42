"""The law of λ: Beta(α, β) as drawn, and the tilted mixture D̃ of the paper's analysis, with moments in closed form.

One draw of λ mixes two examples, with the shares λ and 1-λ of the loss. Written from the view of one
example, the law of its share is tilted: D̃ = α/(α+β)·Beta(α+1, β) + β/(α+β)·Beta(β+1, α). Two
identities follow for *every* law of λ and explain much of docs/explanation/theory.md:
``E_D̃[(1-λ)²] = E_D̃[1-λ]/2`` and ``E_D̃[(1-λ)²/λ²] = E[1/(λ(1-λ))] - 3 ≥ 1``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, final

from scipy.special import beta as beta_function
from scipy.special import hyp2f1, poch, roots_jacobi

from umix.errors import UserError

Nodes = list[tuple[float, float]]


def beta_nodes(a: float, b: float, count: int) -> Nodes:
    """Gauss–Jacobi pairs (λ, probability) of Beta(a, b): exact for polynomials of degree ``2·count - 1``."""
    points, masses = roots_jacobi(count, b - 1, a - 1)
    return list(zip(((1 + points) / 2).tolist(), (masses / masses.sum()).tolist(), strict=True))


@final
@dataclass(frozen=True)
class MixingLaw:
    """λ ~ Beta(alpha, beta)."""

    alpha: float
    beta: float

    @classmethod
    def symmetric(cls, alpha: float) -> Self:
        return cls(alpha, alpha)

    def nodes(self, count: int = 48) -> Nodes:
        """Pairs (λ, probability) that integrate smooth functions of λ."""
        return beta_nodes(self.alpha, self.beta, count)

    def tilted(self, strength: float = 1.0) -> "TiltedLaw":
        """D̃, with ``1-λ`` multiplied by ``strength``."""
        return TiltedLaw(self.alpha, self.beta, strength)


@final
@dataclass(frozen=True)
class TiltedLaw:
    """D̃ of Beta(alpha, beta), with the partner's share ``1-λ`` multiplied by ``strength``.

    Strength 1 is mixup. With less strength every input moves less towards its partner. No choice of
    (alpha, beta) does that: for these, ``E[(1-λ)^k]`` is of the same order for every k. An expansion
    in ``1-λ`` is therefore valid only in the limit of small strength.
    """

    alpha: float
    beta: float
    strength: float = 1.0

    def components(self) -> Iterator[tuple[float, float, float]]:
        """(probability, a, b) of the two Beta laws of λ before ``strength``."""
        total = self.alpha + self.beta
        yield self.alpha / total, self.alpha + 1, self.beta
        yield self.beta / total, self.beta + 1, self.alpha

    def moment(self, order: int) -> float:
        """``E[(1-λ)^order]``.

        >>> law = MixingLaw.symmetric(2.0).tilted()
        >>> law.moment(1), law.moment(2)
        (0.4, 0.2)
        """
        return self.strength**order * float(
            sum(share * poch(b, order) / poch(a + b, order) for share, a, b in self.components())
        )

    def squared_odds(self) -> float:
        """``E[(1-λ)²/λ²]``, the factor of lemma A.2; (α+1)/(α-1) for a symmetric law of strength 1. Raises UserError if infinite.

        >>> round(MixingLaw.symmetric(1.5).tilted().squared_odds(), 12)
        5.0
        """
        self._need(2, "E[(1-λ)²/λ²], the factor of lemma A.2,")
        if self.strength == 1:
            return float(sum(share * b * (b + 1) / ((a - 1) * (a - 2)) for share, a, b in self.components()))
        # With u = 1-λ before strength, u ~ Beta(b, a): E[s²u²(1-su)^-2] is Euler's integral of 2F1.
        return self.strength**2 * float(
            sum(
                share * poch(b, 2) / poch(a + b, 2) * hyp2f1(2, b + 2, a + b + 2, self.strength)
                for share, a, b in self.components()
            )
        )

    def nodes(self, count: int = 48, *, pole: int = 0) -> Nodes:
        """Pairs (λ, mass) that integrate smooth functions, or with ``pole`` functions that grow like ``λ^-pole`` at 0.

        With a pole, the quadrature is that of the integrand times ``λ^pole``, so the masses do not add up to 1.
        """
        if pole and self.strength == 1:
            self._need(pole, "The expectation of a loss on inputs divided by λ")
            return [
                (lam, share * mass * beta_function(a - pole, b) / beta_function(a, b) * lam**pole)
                for share, a, b in self.components()
                for lam, mass in beta_nodes(a - pole, b, count)
            ]
        return [
            (1 - self.strength * (1 - lam), share * mass)
            for share, a, b in self.components()
            for lam, mass in beta_nodes(a, b, count)
        ]

    def _need(self, power: int, what: str) -> None:
        """Raise UserError unless ``E[λ^-power]`` is finite: Beta(a, ·) has the density ``λ^(a-1)`` near 0, so a > power."""
        least = min(self.alpha, self.beta)
        if self.strength == 1 and least + 1 <= power:
            raise UserError(
                f"{what} must have alpha and beta above {power - 1} to be finite, got {least:g}: near λ = 0 the density "
                f"of Beta({least + 1:g}, ·) falls like λ^{least:g} while the integrand grows like λ^-{power}; "
                f"choose alpha > {power - 1}, or a mixing strength below 1."
            )
