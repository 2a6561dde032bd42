"""What one run knows of its training examples, ready to be shown: figures, a table per group, examples, slices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.reports.charts.figure import Figure
from umix.reports.charts.uncertainty import densities, density_rows, weight_rows, weights
from umix.reports.minority import MinorityRanking, rank_minority
from umix.reports.page.clusters import feature_clusters
from umix.reports.page.example_view import Shown, Viewer
from umix.reports.page.slices import Slice, table_slices
from umix.reports.page.training_table import source_of
from umix.reports.page.uncertain_examples import Example, most_uncertain
from umix.reports.training_examples import Training

_ALL = "all examples"


@final
@dataclass(frozen=True)
class GroupFacts:
    """One group of the training examples in numbers; rates in [0, 1]."""

    name: str
    size: int
    uncertainty: float
    never_wrong: float
    always_wrong: float
    weight_share: float | None
    forgetting: float | None


@final
@dataclass(frozen=True, eq=False)
class Details:
    """The training examples of one run of the method ``label``."""

    label: str
    record: RunRecord
    n: int
    figures: Sequence[Figure]
    groups: Sequence[GroupFacts]
    minority: MinorityRanking | None
    examples: Sequence[Example]
    slices: Sequence[tuple[Slice, Sequence[Shown]]]
    by_table: bool
    missing: str | None  # why rows or pictures cannot be shown


def details(label: str, record: RunRecord, training: Training, colours: Mapping[str, str]) -> Details:
    """The details of ``record``; ``colours`` are those of its groups."""
    source = source_of(record, training)
    viewer = Viewer(training, source)
    names = record.groups if training.member is not None else [_ALL]
    member = training.member if training.member is not None else np.ones((training.n, 1), dtype=bool)
    figures = [
        densities(density_rows(training.uncertainty, member, names), {**colours, _ALL: "#0072B2"}, of=training.of)
    ]
    if training.weight is not None and training.effective_size is not None:
        figures.append(weights(weight_rows(training.weight), effective=training.effective_size, n=training.n))
    by_table = source.rows is not None and source.text is None
    if by_table:
        slices = table_slices(training, source, record.classes, str(record.plan["task"].get("label", "label")))
    else:
        slices = feature_clusters(training, record.classes, record.groups)
    examples = most_uncertain(training, viewer, classes=record.classes, groups=record.groups)
    missing = source.missing
    if training.file is not None and examples and all(example.shown.picture is None for example in examples):
        missing = "The pictures are not shown: the image files are not there any more, or cannot be decoded."
    return Details(
        label=label,
        record=record,
        n=training.n,
        figures=figures,
        groups=group_facts(training, member, names),
        minority=rank_minority(training.uncertainty, training.member, record.groups),
        examples=examples,
        slices=[(one, [] if by_table else [viewer.show(index) for index in one.examples]) for one in slices],
        by_table=by_table,
        missing=missing,
    )


def group_facts(training: Training, member: np.ndarray, names: Sequence[str]) -> list[GroupFacts]:
    """The facts of every group that has examples."""
    u, w, events = training.uncertainty, training.weight, training.forgetting
    return [
        GroupFacts(
            name=name,
            size=int(inside.sum()),
            uncertainty=float(u[inside].mean()),
            never_wrong=float((u[inside] == 0).mean()),
            always_wrong=float((u[inside] == 1).mean()),
            weight_share=None if w is None else float(w[inside].sum() / w.sum()),
            forgetting=None if events is None else float(events[inside].mean()),
        )
        for name, inside in zip(names, member.T, strict=True)
        if inside.any()
    ]
