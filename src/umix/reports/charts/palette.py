"""Colours, shapes and dashes of methods and groups, which people with any colour vision can tell apart.

A method has the same colour in every report. Groups have hues that no method has. Every colour is paired with a shape or a
dash, because colour alone is not enough for everybody.
"""

import zlib
from collections.abc import Sequence

#: Colours of methods: grey for ERM, then hues of Okabe and Ito (2008) and two more from ColorBrewer.
METHOD_COLOURS = ("#7F7F7F", "#D55E00", "#0072B2", "#E69F00", "#009E73", "#56B4E9", "#A6611A", "#5AB4AC")
#: Methods that often stand in one chart, in the order that gives them colours; all others have theirs from a hash of the name.
METHOD_ORDER = (
    "umix", "group_dro", "jtt", "cvar_dro", "mixup", "reweight", "dfr",
    "lff", "resample", "focal", "lisa", "eiil", "irm", "vrex",
    "lisa_umix", "chi2_dro", "ingroup_mixup", "coral", "fish", "ib_irm", "domainmix",
    "cvar_doro", "chi2_doro", "group_mixup", "best", "suby", "subg", "bam",
    "lc", "dpe", "crt",
)  # fmt: skip
#: Colours of groups: crimson, blue, green and violet, which no method has. They stand out from light and dark pages, and are far
#: apart for every kind of colour vision (tests/reports/charts/test_palette.py measures it).
GROUP_COLOURS = ("#BB3355", "#5566AA", "#44AA00", "#CC66FF")
#: Line dashes of the groups, in the order of their colours.
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3))
#: Everything that has no colour of its own: groups beyond the worst four, and groups with too few examples.
GREY = "#8E95A0"
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
_BASELINE = "erm"


def method_colours(labels: Sequence[str], *, first: str | None = None) -> dict[str, str]:
    """A colour for every label of a method: the colour of the method, lighter or darker for its further variants.

    Of several variants the label ``first`` has the method's own colour, by default the one that comes first.

    >>> method_colours(["erm", "umix"]), method_colours(["umix", "jtt"])["umix"]
    ({'erm': '#7F7F7F', 'umix': '#D55E00'}, '#D55E00')
    """
    variants = _variants(sorted(labels, key=lambda label: label != first))
    return {label: _shade(METHOD_COLOURS[_places(label)[0]], variants[label]) for label in labels}


def method_shapes(labels: Sequence[str]) -> dict[str, str]:
    """A shape for every label of a method; methods and variants of similar colour have different shapes.

    >>> method_shapes(["erm", "umix sigma=0.0", "umix sigma=0.5"])
    {'erm': 'circle', 'umix sigma=0.0': 'square', 'umix sigma=0.5': 'triangle-up'}
    """
    found: dict[str, str] = {}
    taken: set[tuple[int, str]] = set()
    for label, variant in _variants(labels).items():
        colour, place = _places(label)
        choices = [SHAPES[(place + variant + step) % len(SHAPES)] for step in range(len(SHAPES))]
        found[label] = next((shape for shape in choices if (colour, shape) not in taken), choices[0])
        taken.add((colour, found[label]))
    return found


def group_colours(names: Sequence[str], worst: Sequence[str] = ()) -> dict[str, str]:
    """A colour for every group: up to four groups have one each; of more, the first four of ``worst``, the others are grey.

    >>> group_colours(["a", "b"])
    {'a': '#BB3355', 'b': '#5566AA'}
    >>> group_colours(["a", "b", "c", "d", "e"], worst=["d"])
    {'a': '#8E95A0', 'b': '#8E95A0', 'c': '#8E95A0', 'd': '#BB3355', 'e': '#8E95A0'}
    """
    most = len(GROUP_COLOURS)
    coloured = names if len(names) <= most else worst[:most]
    own = dict(zip(coloured, GROUP_COLOURS, strict=False))
    return {name: own.get(name, GREY) for name in names}


def dash_of(colour: str) -> tuple[int, ...]:
    """The dash of the lines of a group with this colour; grey lines are solid.

    >>> dash_of("#44AA00")
    (2, 2)
    """
    return DASHES[GROUP_COLOURS.index(colour)] if colour in GROUP_COLOURS else DASHES[0]


def _variants(labels: Sequence[str]) -> dict[str, int]:
    """For every label, how many labels of the same method come before it."""
    seen: dict[str, int] = {}
    numbered = {}
    for label in dict.fromkeys(labels):
        method = label.split(" ")[0]
        numbered[label] = seen.get(method, 0)
        seen[method] = numbered[label] + 1
    return numbered


def _places(label: str) -> tuple[int, int]:
    """The places of a method's colour and shape; methods without a place in the order get them from a hash of their name."""
    method, hues = label.split(" ")[0], len(METHOD_COLOURS) - 1
    if method == _BASELINE:
        return 0, 0
    place = METHOD_ORDER.index(method) if method in METHOD_ORDER else zlib.crc32(method.encode())
    return 1 + place % hues, (1 + place % hues + place // hues) % len(SHAPES)


def _shade(colour: str, variant: int) -> str:
    """The colour itself for the first variant, then lighter and darker ones."""
    if not variant:
        return colour
    towards, share = (255, 0.45) if variant % 2 else (0, 0.4)
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(part + share * (towards - part)):02X}" for part in parts)
