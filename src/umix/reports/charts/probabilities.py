"""How good the predicted probabilities are in every group: ROC curves and calibration curves of test examples."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from umix.core.words import threshold_text
from umix.reports.charts.curves import group_lines, legend_names
from umix.reports.charts.figure import Figure, coloured, inline, picked, tip
from umix.reports.metrics import auroc, calibration, roc
from umix.reports.predictions import Predictions

_HEIGHT = 300


def roc_rows(test: Predictions, groups: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """The points of the ROC curve of every group, in percent; groups with examples of one class have none.

    ``test`` has two classes, and the second is the positive one. ``place`` counts the points of a curve from 0; the point that the
    run's own predictions make has the place -1.
    """
    rows: list[dict[str, Any]] = []
    scores = _scores(test)
    for name, inside in groups.items():
        positive, score = test.label[inside] == 1, scores[inside]
        points = list(zip(*roc(positive, score), strict=True))
        if not points:
            continue
        said = test.prediction[inside] == 1
        own = (said[~positive].mean(), said[positive].mean())
        area = round(auroc(positive, score), 4)
        rows += [
            {
                "group": name,
                "size": len(positive),
                "auroc": area,
                "false_positive": round(100 * float(x), 2),
                "true_positive": round(100 * float(y), 2),
                "place": place,
            }
            for place, (x, y) in enumerate([own, *points], start=-1)
        ]
    return rows


def roc_chart(
    rows: Sequence[Mapping[str, Any]], colours: Mapping[str, str], *, positive: str, threshold: float
) -> Figure:
    """The curves of these rows, with a dot where the run's ``threshold`` lies; ``positive`` is the name of the class."""
    areas = {row["group"]: row["auroc"] for row in rows}
    entries = _entries(colours, {name: f"AUROC {area:.3f}" for name, area in areas.items()})
    fields = ("false_positive", "true_positive")
    axes = _axes(*fields, ("false positive rate, percent", "true positive rate, percent"))
    tips = [
        tip("group", "group"),
        tip("auroc", "AUROC", ".3f"),
        tip("false_positive", "false positive rate, %", ".1f"),
        tip("true_positive", "true positive rate, %", ".1f"),
    ]
    points = [row for row in rows if row["place"] >= 0]
    lines, legend = group_lines(
        points, colours, entries, {"clip": True}, {**axes, "order": alt.Order("place:Q"), "tooltip": tips}
    )
    own = [{**row, "entry": entries[row["group"]]} for row in rows if row["place"] < 0]
    dots = (
        alt.Chart(inline(own))
        .mark_point(filled=True, size=90)
        .encode(
            **axes,
            color=coloured("entry", {entry.name: entry.colour for entry in legend}),
            opacity=picked("entry"),
            tooltip=tips,
        )
    )
    lowest = min(areas, key=areas.__getitem__)
    return Figure(
        name="roc",
        title="ROC curve of every group",
        description=(
            f"How many of {positive!r} are found (true positive rate) for how many false alarms (false positive rate), at every "
            f"threshold. Dots: the threshold of this run, {threshold_text(threshold)}."
            f" The lowest area under the curve is that of {lowest}, "
            f"{areas[lowest]:.3f}; 0.5 is chance."
        ),
        columns={
            "group": "group",
            "size": "n test",
            "auroc": "AUROC",
            "false_positive": "false positive rate, %",
            "true_positive": "true positive rate, %",
        },
        rows=points,
        chart=alt.layer(_diagonal(*fields, axes), *lines, dots),
        height=_HEIGHT,
        legend=legend,
    )


def calibration_rows(test: Predictions, groups: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Predicted probability and observed share in bins of equally many examples, by group, in percent.

    Of two classes it is the probability of the second. Of more it is that of the predicted class, and the share is how often the
    prediction is right.
    """
    rows: list[dict[str, Any]] = []
    true, scores = test.label == 1 if _two_classes(test) else ~test.wrong, _scores(test)
    for name, inside in groups.items():
        positive, score = true[inside], scores[inside]
        about = {
            "group": name,
            "size": len(positive),
            "gap": round(100 * abs(float(positive.mean() - score.mean())), 2),
        }
        rows += [
            {**about, "predicted": round(100 * float(x), 2), "observed": round(100 * float(y), 2)}
            for x, y in zip(*calibration(positive, score), strict=True)
        ]
    return rows


def calibration_chart(rows: Sequence[Mapping[str, Any]], colours: Mapping[str, str], *, positive: str | None) -> Figure:
    """The curves of these rows; ``positive`` is the second of two classes, None where there are more."""
    gaps = {row["group"]: row["gap"] for row in rows}
    sizes = {row["group"]: row["size"] for row in rows}
    entries = _entries(colours, {name: f"n = {size:,}" for name, size in sizes.items()})
    predicted = f"predicted probability of {positive!r}" if positive else "probability of the predicted class"
    observed = f"are {positive!r}" if positive else "are right"
    axes = _axes("predicted", "observed", ("predicted probability, percent", "observed share, percent"))
    tips = [
        tip("group", "group"),
        tip("size", "test examples", ",d"),
        tip("predicted", "predicted, %", ".1f"),
        tip("observed", f"{observed}, %", ".1f"),
    ]
    lines, legend = group_lines(
        rows, colours, entries, {"clip": True, "point": alt.OverlayMarkDef(size=40)}, {**axes, "tooltip": tips}
    )
    largest = max(gaps, key=gaps.__getitem__)
    return Figure(
        name="calibration",
        title="Calibration of every group",
        description=(
            f"The {predicted} against how many percent {observed}. On the dotted line both agree; below it the probability is too "
            "high. Each point is an equal part of the group's test examples, 30 or more. The mean probability is furthest off in "
            f"{largest}: {gaps[largest]:.1f} points."
        ),
        columns={"group": "group", "size": "n test", "predicted": "predicted, %", "observed": f"{observed}, %"},
        rows=rows,
        chart=alt.layer(_diagonal("predicted", "observed", axes), *lines),
        height=_HEIGHT,
        legend=legend,
    )


def _two_classes(test: Predictions) -> bool:
    return test.probability is not None and test.probability.shape[1] == 2


def _scores(test: Predictions) -> np.ndarray:
    """The probability of the second of two classes, else that of the prediction [n]."""
    score = test.probability[:, 1] if test.probability is not None and _two_classes(test) else test.confidence
    return np.asarray(score, dtype=np.float64)


def _entries(colours: Mapping[str, str], notes: Mapping[str, str]) -> dict[str, str]:
    """The entry in the legend of every group that has a note, with that note; grey groups share an entry."""
    names = legend_names({name: colours[name] for name in notes})
    return {name: f"{name} ({notes[name]})" if entry == name else entry for name, entry in names.items()}


def _axes(x: str, y: str, titles: tuple[str, str]) -> dict[str, Any]:
    """Both axes from 0 to 100."""
    scale = alt.Scale(domain=[0, 100], nice=False)
    return {"x": alt.X(f"{x}:Q", title=titles[0], scale=scale), "y": alt.Y(f"{y}:Q", title=titles[1], scale=scale)}


def _diagonal(x: str, y: str, axes: Mapping[str, Any]) -> Any:
    """The line of equal values."""
    ends = inline([{x: end, y: end} for end in (0, 100)])
    return alt.Chart(ends).mark_line(strokeWidth=1, strokeDash=[1, 3], color="currentColor", opacity=0.8).encode(**axes)
