"""Where the model fails: planted slices are found and described, noise is not."""

from dataclasses import replace

import numpy as np
import polars
import pytest

from umix.core.statistics import wilson
from umix.reports.page.clusters import feature_clusters
from umix.reports.page.slices import table_slices
from umix.reports.page.training_table import Source
from umix.reports.predictions import Predictions
from umix.reports.training_examples import Closer, Training


def training(u: np.ndarray, label: np.ndarray, **more: object) -> Training:
    empty = dict.fromkeys(("weight", "member", "correct", "visited", "row", "file", "closer"))
    return Training(label=label, uncertainty=u, **{**empty, **more})  # type: ignore[arg-type]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def predictions(wrong: np.ndarray, split: np.ndarray, member: np.ndarray | None = None) -> Predictions:
    """Held-out rows 0, 1, … of a table, of which ``wrong`` are misclassified."""
    n = len(wrong)
    return Predictions(
        label=np.zeros(n, dtype=np.int32),
        prediction=wrong.astype(np.int32),
        confidence=np.ones(n),
        probability=None,
        member=np.zeros((n, 0), dtype=bool) if member is None else member,
        row=np.arange(n),
        file=None,
        split=split,
    )


def people(rng: np.random.Generator, n: int) -> polars.DataFrame:
    return polars.DataFrame(
        {"sex": rng.choice(["f", "m"], n), "age": rng.integers(18, 90, n), "noise": rng.normal(size=n)}
    )


def test_a_planted_slice_is_found_on_validation_and_measured_on_test(rng: np.random.Generator) -> None:
    n = 4000
    table = people(rng, n)
    split = np.where(np.arange(n) < n // 2, "val", "test")
    bad = (table["sex"] == "f").to_numpy() & (table["age"] > 60).to_numpy()
    wrong = rng.random(n) < np.where(bad, np.where(split == "val", 0.9, 0.6), 0.1)
    before = rng.random(n) < np.where(bad, 0.8, 0.1)
    member = np.stack([~bad, bad], axis=1)
    source = Source(table, ("age", "noise"), groups=("sex",))
    found = table_slices(
        predictions(wrong, split, member), source, ["others", "old women"], predictions(before, split, member)
    )
    assert len(found) == 1
    inside = bad & (split == "test")
    one = found[0]
    assert set(one.description.split(" and ")) in ({"sex = f", "age > 60.5"}, {"sex ≠ m", "age > 60.5"})
    assert one.size == inside.sum()
    assert one.error == pytest.approx(wrong[inside].mean())
    assert one.interval == wilson(int(wrong[inside].sum()), int(inside.sum()))
    assert one.lift == pytest.approx(wrong[inside].mean() / wrong[(split == "test") & ~bad].mean())
    assert one.val_error == pytest.approx(wrong[bad & (split == "val")].mean())
    assert one.baseline_error == pytest.approx(before[inside].mean())
    assert (one.group, one.group_share) == ("old women", 1.0)
    assert one.group_columns == ("sex",)


def test_errors_at_random_have_no_slices(rng: np.random.Generator) -> None:
    table = people(rng, 2000)
    split = np.repeat(["val", "test"], 1000)
    source = Source(table, tuple(table.columns))
    assert table_slices(predictions(rng.random(2000) < 0.2, split), source, []) == []
    assert table_slices(predictions(np.zeros(2000, dtype=bool), split), source, []) == []


def test_a_slice_that_test_does_not_confirm_is_not_shown(rng: np.random.Generator) -> None:
    table = people(rng, 2000)
    split = np.repeat(["val", "test"], 1000)
    wrong = np.where(split == "val", (table["age"] > 60).to_numpy(), rng.random(2000) < 0.2)
    assert table_slices(predictions(wrong, split), Source(table, tuple(table.columns)), []) == []


def test_a_slice_with_few_test_rows_is_not_shown(rng: np.random.Generator) -> None:
    n = 2000
    split = np.repeat(["val", "test"], n // 2)
    old = np.concatenate([np.arange(1000) < 200, np.arange(1000) < 29])
    source = Source(polars.DataFrame({"age": np.where(old, 80, 30)}), ("age",))
    assert table_slices(predictions(old, split), source, []) == []
    old[1029] = True  # the thirtieth
    source = Source(polars.DataFrame({"age": np.where(old, 80, 30)}), ("age",))
    (one,) = table_slices(predictions(old, split), source, [])
    assert (one.size, one.error, one.lift, one.description) == (30, 1.0, None, "age = 80")


def test_the_label_never_describes_a_slice(rng: np.random.Generator) -> None:
    n = 1000
    y = rng.integers(0, 2, n)
    table = polars.DataFrame({"x": rng.normal(size=n), "income": y})
    found = table_slices(predictions(y == 1, np.repeat(["val", "test"], n // 2)), Source(table, ("x",)), [])
    assert all("income" not in one.description for one in found)


def test_missing_cells_may_describe_a_slice(rng: np.random.Generator) -> None:
    n = 1000
    missing = rng.random(n) < 0.3
    table = polars.DataFrame({"x": [None if gone else 1.5 + i for i, gone in enumerate(missing)]})
    (one,) = table_slices(predictions(missing, np.repeat(["val", "test"], n // 2)), Source(table, ("x",)), [])
    assert one.description == "x is missing"


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_rows_without_a_number_are_a_slice_of_their_own_and_not_among_the_small_or_large_ones(
    rng: np.random.Generator, nothing: float | None
) -> None:
    n = 4000
    missing, dose = rng.random(n) < 0.2, rng.integers(0, 800, n)
    wrong = rng.random(n) < np.where(missing, 0.4, np.where(dose <= 378, 0.3, 0.04))
    split = np.repeat(["val", "test"], n // 2)
    cells = [nothing if gone else float(value) for gone, value in zip(missing, dose, strict=True)]
    source = Source(polars.DataFrame({"dose": cells}, strict=False), ("dose",))
    first, second = table_slices(predictions(wrong, split), source, [])
    assert first.description == "dose is missing"
    inside = missing & (split == "test")
    assert (first.size, first.error) == (inside.sum(), wrong[inside].mean())
    limit = float(second.description.removeprefix("dose ≤ "))
    assert limit == pytest.approx(378, abs=20)
    inside = ~missing & (dose <= limit) & (split == "test")
    assert (second.size, second.error) == (inside.sum(), wrong[inside].mean())


@pytest.mark.parametrize("nothing", [None, "?", " "])
def test_rows_without_a_value_are_not_among_those_with_another_value(
    rng: np.random.Generator, nothing: str | None
) -> None:
    n = 4000
    city = rng.choice(["a", "b", ""], n)
    wrong = rng.random(n) < np.where(city == "a", 0.02, np.where(city == "b", 0.3, 0.4))
    table = polars.DataFrame({"city": [name or nothing for name in city]})
    found = table_slices(predictions(wrong, np.repeat(["val", "test"], n // 2)), Source(table, ("city",)), [])
    assert {one.description for one in found} in ({"city is missing", "city = b"}, {"city is missing", "city ≠ a"})
    assert {one.size for one in found} == {(city[n // 2 :] == "b").sum(), (city[n // 2 :] == "").sum()}


def test_few_missing_cells_belong_to_no_slice(rng: np.random.Generator) -> None:
    n = 4000
    missing, age = np.arange(n) % 400 == 0, rng.integers(18, 90, n)
    wrong = rng.random(n) < np.where((age > 30) | missing, 0.5, 0.05)
    cells = [None if gone else int(value) for gone, value in zip(missing, age, strict=True)]
    split = np.repeat(["val", "test"], n // 2)
    (one,) = table_slices(predictions(wrong, split), Source(polars.DataFrame({"age": cells}), ("age",)), [])
    assert one.description == "age > 30.5"
    assert one.size == (~missing & (age > 30) & (split == "test")).sum()


def test_clusters_are_those_of_the_features(rng: np.random.Generator) -> None:
    n = 120
    place = np.repeat([0, 1, 2], n // 3)
    features = rng.normal(size=(n, 10)) + 20 * place[:, None]
    closer = Closer(np.arange(n), features, place != 1, None)
    some = training(np.where(place == 1, 1.0, 0.5), place, closer=closer, member=place[:, None] == np.arange(3))
    slices = feature_clusters(some, ["a", "b", "c"], ["ga", "gb", "gc"])
    assert [one.size for one in slices] == [40, 40, 40]
    assert slices[0].description == "100% have the label b; 100% are of the group gb"
    assert slices[0].error == 1.0
    assert {place[index] for index in slices[0].examples} == {1}


def test_a_class_that_is_called_label_is_not_called_so_twice(rng: np.random.Generator) -> None:
    closer = Closer(np.arange(60), rng.normal(size=(60, 4)), np.ones(60, bool), None)
    found = feature_clusters(training(np.ones(60), np.ones(60, int), closer=closer), ["label 0", "label 1"], [])
    assert {one.description for one in found} == {"100% have label 1"}


def test_equal_features_have_no_clusters() -> None:
    closer = Closer(np.arange(50), np.zeros((50, 4)), np.ones(50, bool), None)
    assert feature_clusters(training(np.ones(50), np.zeros(50, int), closer=closer), ["a"], []) == []


def test_forgetting_counts_falls_from_right_to_wrong() -> None:
    correct = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    some = training(np.zeros(3), np.zeros(3, int), correct=correct, visited=np.ones_like(correct))
    assert some.forgetting is not None
    assert some.forgetting.tolist() == [2, 1, 0]
    unseen = replace(some, visited=np.array([[1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]], dtype=bool))
    assert unseen.forgetting is not None
    assert unseen.forgetting.tolist() == [1, 1, 0]
