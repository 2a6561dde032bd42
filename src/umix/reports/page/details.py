"""What one run knows of its training examples, ready to be shown: figures, a table per group, examples, clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.core.words import counted
from umix.reports.charts.figure import Figure
from umix.reports.charts.palette import GROUP_COLOURS
from umix.reports.charts.uncertainty import share_rows, shares
from umix.reports.page.clusters import Cluster, feature_clusters
from umix.reports.page.example_view import Shown, Viewer
from umix.reports.page.training_table import source_of
from umix.reports.training_examples import WORDS, Hint, MinorityRanking, Training, Window, rank_minority

#: How many uncertain examples are shown: enough to look through, few enough for a page.
MOST = 200
_ALL = "all examples"
_FIRST = "umix"  # the method whose uncertainty is shown if several have measured one


@final
@dataclass(frozen=True)
class GroupFacts:
    """One group of the training examples in numbers; rates in [0, 1].

    ``contradicted`` and ``learned_late`` count examples by their ``Hint``; None where there are no hints.
    """

    name: str
    size: int
    uncertainty: float
    never_wrong: float
    always_wrong: float
    weight_share: float | None
    forgetting: float | None
    contradicted: int | None
    learned_late: int | None


@final
@dataclass(frozen=True)
class Example:
    """One training example; ``history`` has a letter per epoch of the first stage: 1 right, 0 wrong, - not visited.

    ``predicted`` is the class that the final net predicts after its last epoch if ``by_final``, else that of the last epoch of
    the first stage. ``hint`` says in words what the trajectory looks like.
    """

    index: int
    shown: Shown
    label: str
    predicted: str
    by_final: bool
    groups: tuple[str, ...]
    uncertainty: float
    weight: float | None
    forgetting: int | None
    history: str
    hint: str = WORDS[Hint.NONE]

    @property
    def told(self) -> str:
        """The history in words.

        >>> Example(0, Shown("a"), "b", "c", True, (), 0.5, None, None, "0101").told
        'wrong in 2 of 4 epochs: 1, 3'
        """
        wrong = [str(epoch) for epoch, bit in enumerate(self.history, start=1) if bit == "0"]
        seen = len(self.history) - self.history.count("-")
        return f"wrong in {len(wrong)} of {counted(seen, 'epoch')}" + (f": {', '.join(wrong[:40])}" if wrong else "")


@final
@dataclass(frozen=True, eq=False)
class Details:
    """The training examples of one run of the method ``label``.

    ``notes`` are sentences about the uncertainty: the window, what ``auto`` chose, and counts where a figure would show only two
    values. ``window`` is None where the first stage was not recorded.
    """

    label: str
    record: RunRecord
    n: int
    figures: Sequence[Figure]
    notes: Sequence[str]
    window: Window | None
    groups: Sequence[GroupFacts]
    total: GroupFacts
    minority: MinorityRanking | None
    examples: Sequence[Example]
    clusters: Sequence[tuple[Cluster, Sequence[Shown]]]
    by_columns: bool
    missing: str | None  # why rows or pictures cannot be shown


def uncertainty_order(runs: Mapping[str, Sequence[RunRecord]], preferred: str) -> list[str]:
    """The labels of ``runs`` in the order in which their uncertainty is worth showing: UMIX, then ``preferred``, then others.

    UMIX counts mistakes over epochs; JTT looks at one epoch, which says only right or wrong.
    """
    order = [preferred, *(label for label in runs if label != preferred)]
    return sorted(order, key=lambda label: runs[label][0].method != _FIRST)


def details(label: str, record: RunRecord, training: Training, colours: Mapping[str, str]) -> Details:
    """The details of ``record``; ``colours`` are those of its groups."""
    source = source_of(record, training.row)
    viewer = Viewer(source, row=training.row, file=training.file, closer=training.closer)
    names = record.groups if training.member is not None else [_ALL]
    everyone = np.ones((training.n, 1), dtype=bool)
    member = training.member if training.member is not None else everyone
    figures = []
    if not few_values(training):
        rows = share_rows(training.uncertainty, member, names)
        figures.append(
            shares(rows, {_ALL: GROUP_COLOURS[0], **colours}, of=training.of, window=str(training.window or ""))
        )
    clusters = [] if source.by_columns else feature_clusters(training, record.classes, record.groups)
    examples = most_uncertain(training, viewer, classes=record.classes, groups=record.groups)
    missing = source.missing
    if training.file is not None and examples and all(example.shown.picture is None for example in examples):
        missing = "The pictures are not shown: the image files are not there any more, or cannot be decoded."
    return Details(
        label=label,
        record=record,
        n=training.n,
        figures=figures,
        notes=uncertainty_notes(record, training),
        window=training.window,
        groups=group_facts(training, member, names),
        total=group_facts(training, everyone, [_ALL])[0],
        minority=rank_minority(training.uncertainty, training.member, record.groups),
        examples=examples,
        clusters=[(one, [viewer.show(index) for index in one.examples]) for one in clusters],
        by_columns=source.by_columns,
        missing=missing,
    )


def few_values(training: Training) -> bool:
    """Whether a window of one or two epochs leaves up to three values: the table by group has all that a chart would show."""
    return training.window is not None and training.window.length <= 2


def uncertainty_notes(record: RunRecord, training: Training) -> list[str]:
    """Sentences about what the uncertainty counts, and what ``auto`` settings were set to."""
    notes = []
    if training.correct is not None and training.window is not None:
        recorded = counted(len(training.correct), "recorded epoch")
        notes.append(f"The method used {training.window} of {recorded} of the first stage.")
    if training.window is not None and training.window.length == 1:
        wrong = int((training.uncertainty > 0).sum())
        notes.append(
            f"Wrong in that epoch: {counted(wrong, 'training example')}; right: {training.n - wrong:,}. With one epoch uncertainty "
            "is 0 or 1."
        )
    if training.weight is not None and training.effective_size is not None:
        notes.append(
            f"The weights together are worth {training.effective_size:,.0f} equally weighted examples of {training.n:,} "
            "(effective sample size)."
        )
    chosen = _set_by_auto(record)
    return [*notes, chosen] if chosen else notes


def _set_by_auto(record: RunRecord) -> str | None:
    """What was left to ``auto``, what it was set to, and why."""
    method = record.plan.get("method", {})
    chosen = [
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
        for name, given in method.items()
        if given == "auto" and (value := record.choices.get(name)) is not None
    ]
    if not chosen:
        return None
    reason = record.choices.get("reason")
    why = f" Why: {reason}." if reason else ""
    return f"Set by auto: {', '.join(chosen)}.{why}"


def group_facts(training: Training, member: np.ndarray, names: Sequence[str]) -> list[GroupFacts]:
    """The facts of every group that has examples."""
    u, w, events, hints = training.uncertainty, training.weight, training.forgetting, training.hints
    return [
        GroupFacts(
            name=name,
            size=int(inside.sum()),
            uncertainty=float(u[inside].mean()),
            never_wrong=float((u[inside] == 0).mean()),
            always_wrong=float((u[inside] == 1).mean()),
            weight_share=None if w is None else float(w[inside].sum() / w.sum()),
            forgetting=None if events is None else float(events[inside].mean()),
            contradicted=None if hints is None else int((hints[inside] == Hint.CONTRADICTED).sum()),
            learned_late=None if hints is None else int((hints[inside] == Hint.LEARNED_LATE).sum()),
        )
        for name, inside in zip(names, member.T, strict=True)
        if inside.any()
    ]


def most_uncertain(
    training: Training, viewer: Viewer, *, classes: Sequence[str], groups: Sequence[str], most: int = MOST
) -> list[Example]:
    """The ``most`` examples with the highest uncertainty; of equals those that were forgotten more often come first.

    Of equals, those whose inputs were kept come before others: there is more to show of them.
    """
    u, forgetting = training.uncertainty, training.forgetting
    events = np.zeros(training.n) if forgetting is None else forgetting
    looked_at = np.zeros(training.n, dtype=bool)
    if training.closer is not None and training.closer.x is not None:
        looked_at[training.closer.index] = True
    predictions = training.predictions
    order = np.lexsort((np.arange(training.n), -events, ~looked_at, -u))[:most]
    return [
        Example(
            index=index,
            shown=viewer.show(index),
            label=classes[int(training.label[index])],
            predicted=predictions.name(index, int(training.label[index]), classes),
            by_final=bool(predictions.by_final[index]),
            groups=_groups_of(training, index, groups),
            uncertainty=float(u[index]),
            weight=None if training.weight is None else float(training.weight[index]),
            forgetting=None if forgetting is None else int(forgetting[index]),
            history=_history(training, index),
            hint=WORDS[Hint.NONE if training.hints is None else Hint(int(training.hints[index]))],
        )
        for index in order.tolist()
    ]


def _groups_of(training: Training, index: int, names: Sequence[str]) -> tuple[str, ...]:
    if training.member is None:
        return ()
    return tuple(names[g] for g in np.flatnonzero(training.member[index]).tolist())


def _history(training: Training, index: int) -> str:
    if training.correct is None or training.visited is None:
        return ""
    bits = zip(training.correct[:, index].tolist(), training.visited[:, index].tolist(), strict=True)
    return "".join("-" if not seen else "1" if hit else "0" for hit, seen in bits)
