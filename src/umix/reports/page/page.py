"""The page: one HTML file that needs no other file and no network; the library of the charts is inside."""

import json
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from umix.bench.runs.record import RunRecord
from umix.reports.arrange import Gathered
from umix.reports.charts.figure import Figure
from umix.reports.page.section import Section
from umix.reports.page.threshold import ThresholdView
from umix.reports.sentences import command
from umix.reports.tables.text_table import p_value
from umix.version import __version__

if TYPE_CHECKING:
    import jinja2

_MOST_ROWS = 300  # of a figure's numbers; more are thinned out, which the page says
_BITS = 240  # pixels that a history may be wide
#: The scripts of the page, in their order.
SCRIPTS = ("page.js", "threshold.js")
#: The shapes of the charts as paths of a legend's symbols, around the origin.
SHAPE_PATHS = {
    "circle": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "square": "M-5-5h10v10h-10z",
    "triangle-up": "M0-6L6 5H-6z",
    "triangle-down": "M0 6L6-5H-6z",
    "triangle-right": "M6 0L-5 6V-6z",
    "triangle-left": "M-6 0L5 6V-6z",
    "diamond": "M0-6.5L5 0L0 6.5L-5 0z",
    "cross": "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
}


def page(gathered: Gathered, sections: Sequence[Section], *, title: str) -> str:
    """The HTML of a report on these sections."""
    specs = {f"chart-{n}-{m}": f.on_page() for n, s in enumerate(sections) for m, f in enumerate(s.figures)}
    html: str = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            title=title,
            sections=sections,
            gathered=gathered,
            version=__version__,
            command=command,
            versions=versions([record for section in sections for record in section.records]),
            style=template("style.css"),
            script="\n".join(template(name) for name in SCRIPTS),
            charts=script_json(specs),
            library=_LIBRARY,
        )
    )
    # The library is put in after rendering: it is a megabyte that the template engine need not read or escape.
    return html.replace(_LIBRARY, _charts_library(), 1)


def _charts_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its snippet is optional, its stub says otherwise
    return bundle.replace("</script", "<\\/script")


def versions(records: Sequence[RunRecord]) -> dict[str, list[str]]:
    """Every version that some record names, by program."""
    by_program: dict[str, list[str]] = {}
    for record in records:
        for name, version in record.versions.items():
            if version not in by_program.setdefault(name, []):
                by_program[name].append(version)
    return by_program


def threshold_html(view: ThresholdView, name: str = "threshold") -> str:
    """The slider of ``view`` as a figure with the id ``name``; ``threshold.js`` moves it, ``style.css`` styles it."""
    macro = _environment().get_template("threshold.html.jinja").module
    return str(macro.threshold(view, name))  # type: ignore[attr-defined]  # macros are attributes of the module


def template(name: str) -> str:
    """The text of a file beside the page's template."""
    return files("umix.reports.page").joinpath("template", name).read_text(encoding="utf-8")


def _environment() -> "jinja2.Environment":
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "count": "{:,}".format, "bits": bits, "numbers": numbers, "cell": cell}
    environment.filters |= {"shape_path": SHAPE_PATHS.__getitem__, "p_value": p_value}
    return environment


_LIBRARY = "/* the charts' library */"


def script_json(value: Any) -> str:
    r"""JSON that is safe inside a script element: no text in it can end the element or begin a comment.

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
    """The rows of a figure's table, and the step between them: 1 where all are listed."""
    every = max(1, -(-len(figure.rows) // _MOST_ROWS))
    return figure.rows[::every], every


def bits(history: str) -> dict[str, Any]:
    """The cells of a history as paths of a picture: where it was right, wrong and not visited, and how wide it is."""
    width = max(1, min(8, _BITS // max(1, len(history))))
    paths = {"1": "", "0": "", "-": ""}
    for place, bit in enumerate(history):
        paths[bit] += f"M{place * width} 0h{width - (width > 2)}v12h-{width - (width > 2)}z"
    return {"right": paths["1"], "wrong": paths["0"], "unseen": paths["-"], "width": width * len(history)}
