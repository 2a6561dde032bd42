"""The page: one HTML file that needs nothing else, with the charts' library inside."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from umix.reports.charts.figure import Figure
from umix.reports.gather import Gathered
from umix.reports.page.reproduce import command, versions
from umix.reports.page.section import Section
from umix.version import __version__

_MOST_ROWS = 300  # of a figure's numbers; more are thinned out, which the page says
_BITS = 240  # pixels that a history may be wide


def page(gathered: Gathered, sections: Sequence[Section], *, title: str) -> str:
    """The HTML of a report on these sections."""
    import jinja2

    here = files("umix.reports.page").joinpath("template")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: here.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "count": "{:,}".format, "bits": bits, "numbers": numbers, "cell": cell}
    # The library goes in last and as it is: a template must not read a million letters, and nobody's data is in it.
    specs = {f"chart-{n}-{m}": f.on_page() for n, s in enumerate(sections) for m, f in enumerate(s.figures)}
    html = environment.get_template("page.html.jinja").render(
        title=title,
        sections=sections,
        gathered=gathered,
        version=__version__,
        command=command,
        versions=versions([record for section in sections for record in section.records]),
        style=here.joinpath("style.css").read_text(encoding="utf-8"),
        script=here.joinpath("page.js").read_text(encoding="utf-8"),
        charts=script_json(specs),
        library=_LIBRARY,
    )
    return html.replace(_LIBRARY, _bundle(), 1)


_LIBRARY = "/* the charts' library */"


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; making it takes a second."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its snippet is optional, its stub says otherwise
    return bundle.replace("</script", "<\\/script")


def script_json(value: Any) -> str:
    r"""JSON that may stand inside a script element: no text in it can end the element or begin a comment.

    >>> script_json("</script><!--")
    '"\\u003c/script\\u003e\\u003c!--"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def percent(rate: float | None, digits: int = 1) -> str:
    r"""A rate in [0, 1] as ``84.3 %``; what is not known is a dash.

    >>> percent(0.8432), percent(None)
    ('84.3\xa0%', '–')
    """
    return "–" if rate is None or math.isnan(rate) else f"{100 * rate:.{digits}f}\u00a0%"


def cell(value: Any) -> str:
    """A number or text as a table shows it."""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def numbers(figure: Figure) -> tuple[Sequence[Mapping[str, Any]], int]:
    """The rows of a figure's table, and which part of them is shown: every so manieth."""
    every = max(1, -(-len(figure.rows) // _MOST_ROWS))
    return figure.rows[::every], every


def bits(history: str) -> dict[str, Any]:
    """The cells of a history as paths of a picture: where it was right, wrong and not visited, and how wide it is."""
    width = max(1, min(8, _BITS // max(1, len(history))))
    paths = {"1": "", "0": "", "-": ""}
    for place, bit in enumerate(history):
        paths[bit] += f"M{place * width} 0h{width - (width > 2)}v12h-{width - (width > 2)}z"
    return {"right": paths["1"], "wrong": paths["0"], "unseen": paths["-"], "width": width * len(history)}
