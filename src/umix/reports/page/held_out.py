"""What the selected model does with held-out examples: where it fails, and what changed against the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.core.statistics import FEW_EXAMPLES, wilson
from umix.reports.page.example_view import Shown, Viewer
from umix.reports.page.group_words import group_words
from umix.reports.page.slices import Slice, broken_slices, table_slices
from umix.reports.page.training_table import Source, source_of
from umix.reports.predictions import Predictions

#: How many examples are shown of each kind.
MOST = 20


@final
@dataclass(frozen=True)
class HeldOutExample:
    """A test example, its label, and the predicted classes; ``confidence`` is the probability of the model's prediction."""

    shown: Shown
    label: str
    predicted: str
    confidence: float
    baseline: str | None  # the class that the baseline predicts
    groups: tuple[str, ...]


@final
@dataclass(frozen=True)
class FlipCount:
    """How many of the ``size`` test examples of a group only the model gets right (``fixed``) or only the baseline (``broken``)."""

    name: str
    size: int
    fixed: int
    broken: int


@final
@dataclass(frozen=True, eq=False)
class Flips:
    """Test examples on which the model and the baseline of the same seed differ in being right."""

    baseline: str
    total: FlipCount
    groups: Sequence[FlipCount]
    fixed: Sequence[HeldOutExample]
    broken: Sequence[HeldOutExample]


@final
@dataclass(frozen=True)
class Price:
    """The part of the test examples that pays for the gain: the errors of the model and of the baseline there, in [0, 1]."""

    description: str
    size: int
    error: float
    baseline_error: float


@final
@dataclass(frozen=True, eq=False)
class HeldOut:
    """The held-out examples of one run of the method ``label`` at the epoch that ``rule`` selects."""

    label: str
    record: RunRecord
    rule: str
    kind: str  # group or class: what flips are counted by
    n_val: int
    n_test: int
    n_wrong: int  # of the test examples
    by_columns: bool
    slices: Sequence[Slice]
    no_slices: str | None  # why there are none
    baseline: str | None
    hardest: Sequence[HeldOutExample]
    flips: Flips | None
    price: Price | None
    missing: str | None  # why rows cannot be shown

    @property
    def error(self) -> float | None:
        """Share of the test examples that are wrong; None where there are none."""
        return self.n_wrong / self.n_test if self.n_test else None


def held_out(
    label: str, record: RunRecord, predictions: Predictions, baseline: tuple[str, Predictions] | None = None
) -> HeldOut:
    """What ``predictions`` of ``record`` say; ``baseline`` is the name of another run with the same seed and its predictions.

    A baseline that is about other examples is not compared with.
    """
    if baseline is not None and not predictions.same_examples(baseline[1]):
        baseline = None
    source = source_of(record, predictions.row)
    test = predictions.of("test")
    against = None if baseline is None else baseline[1].of("test")
    view = _View(record, test, against, Viewer(source, row=test.row, file=test.file))
    slices = table_slices(predictions, source, record.groups, None if baseline is None else baseline[1])
    n_val = int((predictions.split == "val").sum())
    return HeldOut(
        label=label,
        record=record,
        rule=record.rule(),
        kind="group" if record.groups else "class",
        n_val=n_val,
        n_test=test.n,
        n_wrong=int(test.wrong.sum()),
        by_columns=source.by_columns,
        slices=slices,
        no_slices=_why_none(slices, test, by_columns=source.by_columns),
        baseline=None if baseline is None else baseline[0],
        hardest=[] if source.by_columns else view.examples(_first(test.wrong, test.loss)),
        flips=None if baseline is None or against is None else _flips(baseline[0], against, view),
        price=None if baseline is None else _price(record, predictions, baseline[1], source),
        missing=source.missing,
    )


@final
@dataclass(frozen=True, eq=False)
class _View:
    """Test examples of a run with everything that is needed to show them."""

    record: RunRecord
    test: Predictions
    baseline: Predictions | None
    viewer: Viewer

    def examples(self, index: Sequence[int]) -> list[HeldOutExample]:
        classes, names = self.record.classes, self.record.groups
        return [
            HeldOutExample(
                shown=self.viewer.show(i),
                label=classes[self.test.label[i]],
                predicted=classes[self.test.prediction[i]],
                confidence=float(self.test.confidence[i]),
                baseline=None if self.baseline is None else classes[self.baseline.prediction[i]],
                groups=tuple(names[g] for g in np.flatnonzero(self.test.member[i]).tolist()),
            )
            for i in index
        ]


def _flips(name: str, baseline: Predictions, view: _View) -> Flips:
    test, record = view.test, view.record
    fixed, broken = baseline.wrong & ~test.wrong, test.wrong & ~baseline.wrong
    names = record.groups or record.classes
    member = test.member if record.groups else test.label[:, None] == np.arange(len(record.classes))

    def count(name: str, inside: np.ndarray) -> FlipCount:
        return FlipCount(name, int(inside.sum()), int((fixed & inside).sum()), int((broken & inside).sum()))

    return Flips(
        baseline=name,
        total=count("all test examples", np.ones(test.n, dtype=bool)),
        groups=[count(name, inside) for name, inside in zip(names, member.T, strict=True) if inside.any()],
        fixed=view.examples(_first(fixed, baseline.confidence)),
        broken=view.examples(_first(broken, test.confidence)),
    )


def _price(record: RunRecord, model: Predictions, baseline: Predictions, source: Source) -> Price | None:
    """The slice of a table, group or class whose error rises most against ``baseline``; None where none clearly rises."""
    broken, fixed = model.wrong & ~baseline.wrong, baseline.wrong & ~model.wrong
    names = record.groups or record.classes
    member = model.member if record.groups else model.label[:, None] == np.arange(len(names))
    parts = {group_words(record, name): inside for name, inside in zip(names, member.T, strict=True)}
    parts |= broken_slices(model, source, broken)
    val, test = model.split == "val", model.split == "test"

    def rise(inside: np.ndarray) -> float:
        return float((model.wrong[inside].mean() - baseline.wrong[inside].mean()) if inside.any() else 0)

    clear = [name for name, inside in parts.items() if _pays(broken[inside & test], fixed[inside & test])]
    if not clear:
        return None
    name = max(clear, key=lambda name: rise(parts[name] & val))  # chosen on validation, measured on test
    here = parts[name] & test
    return Price(name, int(here.sum()), float(model.wrong[here].mean()), float(baseline.wrong[here].mean()))


def _pays(broken: np.ndarray, fixed: np.ndarray) -> bool:
    """Whether more of these examples are broken than fixed, by the interval of the share among those that changed."""
    changed = int(broken.sum() + fixed.sum())
    return len(broken) >= FEW_EXAMPLES and changed > 0 and wilson(int(broken.sum()), changed).low > 0.5


def _first(chosen: np.ndarray, by: np.ndarray) -> list[int]:
    """The indices of up to ``MOST`` chosen examples, the highest ``by`` first."""
    index = np.flatnonzero(chosen)
    return index[np.argsort(-by[index], kind="stable")[:MOST]].tolist()  # type: ignore[no-any-return]


def _why_none(slices: Sequence[Slice], test: Predictions, *, by_columns: bool) -> str | None:
    if slices or not by_columns:
        return None
    if not test.wrong.any():
        return "No test row is wrong."
    return (
        f"No slice stands out: no part of the columns with at least {FEW_EXAMPLES} test rows has an error whose 95 % interval "
        "lies above the error of all test rows."
    )
