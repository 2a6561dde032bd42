"""Which rows train, choose and test: each exactly once, no value in two splits, groups spread as evenly as that allows."""

from collections import Counter
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import umix
from umix.core.streams import stream
from umix.data.rows.division import value_folds
from umix.errors import UserError

N = 240
FRAME = polars.DataFrame(
    {
        "age": np.arange(N) % 37,
        "sex": ["f", "m", "m"] * (N // 3),
        "y": ["no", "no", "yes", "no"] * (N // 4),
        "patient": [f"p{row // 4}" for row in range(N)],
        "when": [f"20{10 + row * 7 % 10}-0{1 + row % 9}-01" for row in range(N)],
    }
)


def rows_of(**options: Any) -> dict[str, np.ndarray]:
    """The rows of each split of the table, which the order of ``age`` and the origin of rows tell."""
    task = umix.task_from_table(FRAME, label="y", groups="sex", **options)
    return {name: np.asarray(split.origin) for name, split in task.splits.items()}


def test_every_row_is_tested_exactly_once() -> None:
    folds = [rows_of(folds=5, fold=fold) for fold in range(1, 6)]
    assert sorted(row for fold in folds for row in fold["test"]) == list(range(N))
    for fold in folds:
        assert sorted(np.concatenate(list(fold.values()))) == list(range(N))  # the other rows train and choose
        assert len(fold["test"]) == len(fold["val"]) == N // 5


def test_every_fold_has_its_share_of_every_group() -> None:
    group = (FRAME["sex"] + FRAME["y"]).to_numpy()
    sizes = Counter(group.tolist())
    for fold in range(1, 6):
        counts = Counter(group[rows_of(folds=5, fold=fold)["test"]].tolist())
        assert all(abs(counts[name] - size / 5) <= 1 for name, size in sizes.items())


def test_another_data_seed_gives_other_folds() -> None:
    first = rows_of(folds=5, fold=1)["test"].tolist()
    assert first == rows_of(folds=5, fold=1)["test"].tolist()
    assert first != rows_of(folds=5, fold=1, data_seed=1)["test"].tolist()


@pytest.mark.parametrize("options", [{}, {"folds": 4, "fold": 2}], ids=["split", "fold"])
def test_no_patient_is_in_two_splits(options: dict[str, int]) -> None:
    rows = rows_of(split_by="patient", **options)
    patients = [set(FRAME["patient"].gather(split)) for split in rows.values()]
    assert sum(map(len, patients)) == FRAME["patient"].n_unique()
    test_share = 0.25 if options else 0.2
    assert abs(len(rows["test"]) - test_share * N) <= 4
    assert abs(len(rows["val"]) - 0.2 * N) <= 8


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rows_with_one_value_are_in_one_fold_and_every_row_is_in_one(data: st.DataObject) -> None:
    folds = data.draw(st.integers(2, 6))
    n = data.draw(st.integers(2 * folds, 200))
    value = np.array(data.draw(st.lists(st.integers(0, 3 * folds), min_size=n, max_size=n)) + list(range(folds)))
    stratum = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(value), max_size=len(value))))
    fold = value_folds(stratum, value, folds, stream(0, "test", "folds"))
    assert set(fold.tolist()) <= set(range(folds))
    assert all(len(set(fold[value == one].tolist())) == 1 for one in set(value.tolist()))


def test_values_of_the_same_groups_are_spread_as_evenly_as_single_rows() -> None:
    rng = np.random.default_rng(0)
    value = np.repeat(np.arange(3000), 2)
    stratum = rng.choice(3, size=6000, p=[0.8, 0.15, 0.05])
    fold = value_folds(stratum, value, 5, stream(0, "test", "folds"))
    for group in range(3):
        counts = np.bincount(fold[stratum == group], minlength=5)
        assert counts.max() - counts.min() <= 2


def test_large_values_are_stratified_as_well_as_scikit_learn_does_it() -> None:
    """A rare group lives with a few values: each fold should get one of them."""
    value = np.repeat(np.arange(25), 20)
    stratum = np.where(np.isin(value, [0, 1, 2, 3, 4]) & (np.arange(500) % 2 == 0), 1, 0)
    fold = value_folds(stratum, value, 5, stream(3, "test", "folds"))
    assert np.bincount(fold[stratum == 1], minlength=5).tolist() == [10] * 5
    assert np.bincount(fold, minlength=5).tolist() == [100] * 5


def test_the_oldest_rows_train_and_the_newest_test() -> None:
    rows = rows_of(split_by_date="when")
    when = {name: FRAME["when"].gather(split) for name, split in rows.items()}
    assert when["train"].max() < when["val"].min() <= when["val"].max() < when["test"].min()  # texts in ISO order sort
    assert [round(len(split) / N, 1) for split in rows.values()] == [0.6, 0.2, 0.2]


def test_numbers_and_dates_divide_as_their_texts_do() -> None:
    by_text = rows_of(split_by_date="when")
    for column in (FRAME["when"].str.to_date(), FRAME["when"].str.replace_all("-", "").cast(polars.Int64)):
        task = umix.task_from_table(FRAME.with_columns(when=column), label="y", groups="sex", split_by_date="when")
        assert {name: split.origin.tolist() for name, split in task.splits.items()} == {
            name: rows.tolist() for name, rows in by_text.items()
        }


def test_columns_that_divide_rows_are_no_inputs() -> None:
    plain = umix.task_from_table(FRAME.drop("patient", "when"), label="y")
    divided = umix.task_from_table(FRAME.drop("when"), label="y", split_by="patient")
    assert len(plain.categories) == len(divided.categories)


def test_what_names_a_row_may_also_divide_rows() -> None:
    patients = [set(FRAME["patient"].gather(rows)) for rows in rows_of(split_by="patient", id="patient").values()]
    assert sum(map(len, patients)) == FRAME["patient"].n_unique()


def test_arrays_are_divided_by_values_of_an_array() -> None:
    task = umix.task_from_arrays(np.random.default_rng(0).normal(size=(N, 2)), FRAME["y"], split_by=FRAME["patient"])
    patients = [set(FRAME["patient"].gather(split.origin)) for split in task.splits.values()]
    assert sum(map(len, patients)) == FRAME["patient"].n_unique()


BLANK = FRAME.with_columns(
    patient=polars.when(polars.col("age") == 5).then(None).otherwise("patient"),
    when=polars.when(polars.col("age") == 5).then(polars.lit("")).otherwise("when"),
    few=polars.col("sex"),
)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"split_by": "patient"}, r"'patient' of split_by= must have a value in every row, but it is blank in 7 of 240; fill"),
        ({"split_by_date": "when"}, r"'when' of split_by_date= must have a date or a number in every row, .* got ''"),
        ({"split_by_date": "sex"}, r"must have one role"),
        ({"split_by_date": "few"}, r"'few' of split_by_date= must have a date or a number in every row, .* got 'f'"),
        ({"split_by": "few"}, r"'few' of split_by= must have a value for each of 3 splits, but it has only 2"),
        ({"split_by": "few", "folds": 5, "fold": 1}, r"must have a value for each of 5 folds, but it has only 2"),
        ({"split_by": "town"}, "town"),
        ({"folds": 5}, r"fold= must be the number of one of the folds=, got fold=None and folds=5"),
        ({"folds": 5, "fold": 6}, r"got fold=6 and folds=5"),
        ({"fold": 1}, r"fold= must be the number of one of the folds=, got fold=1 and folds=None"),
        ({"folds": 1, "fold": 1}, r"folds"),
        ({"folds": 241, "fold": 1}, r"folds= must be at most the number of rows, 240, got 241"),
        ({"split": "when", "split_by": "patient"}, r"divided in one way, got split= and split_by=; leave one out"),
        ({"split_by_date": "when", "folds": 5, "fold": 1}, r"got split_by_date= and folds="),
    ],
)  # fmt: skip
def test_what_cannot_be_divided_so_is_refused_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as error:
        umix.task_from_table(BLANK, label="y", groups="sex", **options)
    assert "\n" not in str(error.value)
