"""Held-out examples under the selected model: flips against the baseline, the highest losses, and why there are no slices."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest

from umix.bench.runs.record import RunRecord
from umix.data.rows.table_file import content_hash
from umix.reports.page.held_out import held_out
from umix.reports.predictions import Predictions


def four_of_each(prediction: list[int], confidence: list[float]) -> Predictions:
    """Two validation examples and four test examples with the labels 0, 0, 1, 1, the last of group b."""
    label = np.array([0, 1, 0, 0, 1, 1])
    return Predictions(
        label=label,
        prediction=np.array([0, 1, *prediction]),
        confidence=np.array([1.0, 1.0, *confidence]),
        probability=None,
        member=np.array([0, 1, 0, 0, 0, 1])[:, None] == np.arange(2),
        row=None,
        file=None,
        split=np.array(["val", "val", "test", "test", "test", "test"]),
    )


@pytest.fixture
def run(record: Callable[..., RunRecord]) -> RunRecord:
    return record(0, [5, 5], "umix", classes=["no", "yes"])


def test_flips_are_counted_by_group_and_the_most_confident_mistakes_come_first(run: RunRecord) -> None:
    model = four_of_each([0, 0, 0, 1], [0.9, 0.8, 0.7, 0.6])
    erm = four_of_each([1, 1, 1, 0], [0.6, 0.95, 0.9, 0.8])
    found = held_out("umix", run, model, ("erm", erm)).flips
    assert found is not None
    assert (found.total.size, found.total.fixed, found.total.broken) == (4, 3, 1)
    assert [(one.name, one.size, one.fixed, one.broken) for one in found.groups] == [("a", 3, 2, 1), ("b", 1, 1, 0)]
    assert [one.shown.name for one in found.fixed] == ["example 2", "example 4", "example 1"]
    assert [(one.label, one.predicted, one.baseline, one.groups) for one in found.broken] == [
        ("yes", "no", "yes", ("a",))
    ]


def test_without_groups_flips_are_counted_by_class(run: RunRecord) -> None:
    alone = RunRecord(**{**run.model_dump(), "groups": []})
    none = np.zeros((6, 0), dtype=bool)
    model = replace(four_of_each([0, 0, 1, 1], [1.0] * 4), member=none)
    erm = replace(four_of_each([0, 1, 1, 1], [1.0] * 4), member=none)
    found = held_out("umix", alone, model, ("erm", erm))
    assert found.flips is not None
    assert found.kind == "class"
    assert [(one.name, one.fixed) for one in found.flips.groups] == [("no", 1), ("yes", 0)]


def test_a_baseline_on_other_examples_is_not_compared_with(run: RunRecord) -> None:
    model = four_of_each([0, 0, 1, 1], [1.0] * 4)
    found = held_out("umix", run, model, ("erm", replace(model, row=np.arange(6))))
    assert found.flips is None
    assert found.baseline is None


def test_without_columns_the_wrong_examples_with_the_highest_loss_are_shown(run: RunRecord) -> None:
    found = held_out("umix", run, four_of_each([1, 0, 0, 0], [0.6, 0.99, 0.9, 0.7]))
    assert [one.shown.name for one in found.hardest] == ["example 3", "example 4", "example 1"]
    assert found.error == 0.75
    assert found.no_slices is None


def rows_of(split: np.ndarray, wrong: np.ndarray, member: np.ndarray) -> Predictions:
    """Rows 0, 1, … of a table, all of class 0, of which ``wrong`` are predicted as class 1."""
    n = len(wrong)
    return Predictions(
        label=np.zeros(n, dtype=int),
        prediction=wrong.astype(int),
        confidence=np.ones(n),
        probability=None,
        member=member,
        row=np.arange(n),
        file=None,
        split=split,
    )


def test_the_price_is_the_slice_whose_error_rises_most_against_the_baseline(tmp_path: Path, run: RunRecord) -> None:
    rng, n = np.random.default_rng(0), 4000
    age, path = rng.integers(18, 90, n), tmp_path / "t.csv"
    polars.DataFrame({"age": age, "noise": rng.normal(size=n), "y": 0}).write_csv(path)
    plan = {"task": {"path": "t.csv", "content": content_hash(path), "label": "y"}, "method": {"name": "umix"}}
    table = RunRecord(**{**run.model_dump(), "task": str(path), "plan": plan})
    split, old = np.repeat(["val", "test"], n // 2), age > 60
    before = rng.random(n) < 0.2
    after = np.where(old, rng.random(n) < 0.7, before & (rng.random(n) < 0.5))
    member = np.arange(n)[:, None] % 2 == np.arange(2)
    found = held_out("umix", table, rows_of(split, after, member), ("erm", rows_of(split, before, member))).price
    assert found is not None
    assert found.description == "age > 60.5"
    inside = old & (split == "test")
    assert (found.size, found.error, found.baseline_error) == (
        inside.sum(),
        after[inside].mean(),
        before[inside].mean(),
    )


def test_without_columns_the_price_is_the_group_whose_error_rises_most(run: RunRecord) -> None:
    rng, n = np.random.default_rng(0), 400
    split, member = np.repeat(["val", "test"], n // 2), np.arange(n)[:, None] % 2 == np.arange(2)
    before = rng.random(n) < 0.1
    after = before | (member[:, 1] & (rng.random(n) < 0.5))
    model, erm = (replace(rows_of(split, wrong, member), row=None) for wrong in (after, before))
    found = held_out("umix", run, model, ("erm", erm)).price
    assert found is not None
    assert (found.description, found.size) == ("b", 100)
    assert held_out("umix", run, erm, ("erm", model)).price is None  # nothing got worse
    assert held_out("umix", run, model).price is None  # nothing to compare with


def test_a_table_without_a_clear_slice_says_so_in_a_sentence(tmp_path: Path, run: RunRecord) -> None:
    path = tmp_path / "t.csv"
    polars.DataFrame({"x": range(6), "y": range(6)}).write_csv(path)
    plan = {"task": {"path": "t.csv", "content": content_hash(path), "label": "y"}, "method": {"name": "umix"}}
    made = RunRecord(**{**run.model_dump(), "task": str(path), "plan": plan})
    model = replace(four_of_each([1, 0, 1, 1], [1.0] * 4), row=np.arange(6))
    found = held_out("umix", made, model)
    assert found.no_slices is not None
    assert "No slice stands out" in found.no_slices
    assert found.hardest == []
    right = held_out("umix", made, replace(four_of_each([0, 0, 1, 1], [1.0] * 4), row=np.arange(6)))
    assert right.no_slices == "No test row is wrong."
