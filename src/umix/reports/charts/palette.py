"""Colours that people with any colour vision tell apart (Okabe and Ito 2008), the same for a name in every chart."""

from collections.abc import Sequence

#: Yellow and black are left out: one is lost on white, the other on a dark page.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6BB1", "#7F7F7F")
#: Shapes tell apart the names that have to share a colour.
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
#: For methods: the baseline is grey, the others differ in lightness as well as in hue.
METHOD_COLOURS = ("#7F7F7F", "#D55E00", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8C6BB1")


def colours(names: Sequence[str], palette: Sequence[str] = COLOURS) -> dict[str, str]:
    """A colour for every name, by its place; beyond the palette they repeat.

    >>> colours(["a", "b"])
    {'a': '#0072B2', 'b': '#E69F00'}
    """
    return {name: palette[place % len(palette)] for place, name in enumerate(names)}


def shapes(names: Sequence[str]) -> dict[str, str]:
    """A shape for every name; two of a colour have different ones as far as shapes go.

    >>> names = [str(number) for number in range(9)]
    >>> shapes(names)["0"], shapes(names)["8"], colours(names)["0"] == colours(names)["8"]
    ('circle', 'square', True)
    """
    return {name: SHAPES[(place + place // len(COLOURS)) % len(SHAPES)] for place, name in enumerate(names)}
