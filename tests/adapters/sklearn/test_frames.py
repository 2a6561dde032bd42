"""A frame with texts, dates or gaps is read as umix run reads a table; one of numbers alone is as good as an array."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from umix import UMIXClassifier, UserError
from umix.adapters.sklearn.inputs import is_table
from umix.data.rows.table_file import as_frame

pytestmark = pytest.mark.filterwarnings("ignore:The net predicted a single class", "ignore:The uncertainty is")

Made = Callable[..., UMIXClassifier]
People = tuple[pandas.DataFrame, np.ndarray]


@pytest.fixture(scope="module")
def fitted(people: People) -> UMIXClassifier:
    return UMIXClassifier("erm", epochs=6, lr=0.01, batch_size=32, net_options={"hidden": [8]}).fit(*people)


@pytest.mark.parametrize(
    ("frame", "table"),
    [
        (pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]}), False),
        (pandas.DataFrame({"a": pandas.array([1, 2], dtype="Int64"), "b": pandas.Series([1, 2.5], dtype=object)}), False),
        (polars.DataFrame({"a": [1, 2], "c": [True, False]}), False),
        (np.ones((2, 2)), False),
        (pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64")}), True),
        (pandas.DataFrame({"a": [1.0, float("nan")]}), True),
        (pandas.DataFrame({"a": pandas.Categorical([1, 2])}), True),
        (polars.DataFrame({"a": [1, None]}), True),
        (polars.DataFrame({"a": [1.0, float("nan")]}), True),
        (polars.DataFrame({"a": ["x", "y"]}), True),
    ],
)  # fmt: skip
def test_numbers_without_gaps_are_no_table_and_everything_else_in_a_frame_is(frame: Any, table: bool) -> None:
    assert is_table(frame) == table


def test_texts_categories_dates_and_gaps_are_learned_from(fitted: UMIXClassifier, people: People) -> None:
    frame, y = people
    assert fitted.feature_names_in_.tolist() == ["town", "kind", "age", "since"]
    assert fitted.n_features_in_ == 4
    assert fitted.scaler_ is None
    assert fitted.score(frame, y) > 0.85
    assert np.array_equal(fitted.predict_proba(as_frame(frame)), fitted.predict_proba(frame))
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(frame), fitted.predict_proba(frame))


def test_columns_must_have_the_names_and_order_of_fit(fitted: UMIXClassifier, people: People) -> None:
    frame, _ = people
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        fitted.predict(frame[["kind", "town", "age", "since"]])
    with pytest.raises(ValueError, match="yet now missing:\n- age"):
        fitted.predict(frame.drop(columns="age"))
    with pytest.raises(
        UserError, match=r"^X must be a frame with the columns of fit \(town, kind, age, …\).* ndarray\.$"
    ):
        fitted.predict(frame.to_numpy())


def test_a_value_that_was_never_seen_counts_as_none_and_is_said(fitted: UMIXClassifier, people: People) -> None:
    frame, _ = people
    new = frame.head(2).assign(town=["Trier", "Ulm"])
    with pytest.warns(UserWarning, match="'town' were never seen in training and count as none of its values: 'Trier'"):
        unseen = fitted.predict_proba(new)
    assert np.array_equal(unseen[1], fitted.predict_proba(frame.head(2).assign(town="Ulm"))[1])


def test_a_column_that_cannot_be_read_is_refused_with_the_way_to_leave_it_out(people: People) -> None:
    frame, y = people
    with pytest.raises(
        UserError, match=r"The input 'tags' must hold numbers, .*leave it out with X\.drop\(columns='tags'\)\.$"
    ):
        UMIXClassifier().fit(frame.assign(tags=[["a"]] * len(y)), y)


@pytest.mark.parametrize("names", [list("abcde"), range(5)], ids=["texts", "numbers"])
def test_a_gap_that_fit_did_not_see_is_the_mean_so_that_folds_without_gaps_can_be_cross_validated(
    names: Any, small: Made, rows: tuple[np.ndarray, ...]
) -> None:
    x, y, _ = rows
    frame = pandas.DataFrame(x, columns=names)
    model = small().fit(frame, y)
    mean, gap, text = frame.head(3).copy(), frame.head(3).copy(), frame.head(3).astype({names[0]: object})
    mean.iloc[0, 0] = model.scaler_.mean_[0]
    gap.iloc[0, 0] = np.nan
    text.iloc[0, 0] = "none"
    np.testing.assert_allclose(model.predict_proba(gap), model.predict_proba(mean), atol=1e-7)
    with pytest.warns(UserWarning, match=r"Values of '\w' that are no numbers count as missing: 1 of 3"):
        unreadable = model.predict_proba(text)
    np.testing.assert_allclose(unreadable, model.predict_proba(gap), atol=1e-12)
    with pytest.raises(ValueError, match="contains NaN"):
        small().fit(x, y).predict(gap.to_numpy())


def test_a_second_fit_forgets_how_the_first_read_its_inputs(
    small: Made, people: People, rows: tuple[np.ndarray, ...]
) -> None:
    x, y, _ = rows
    model = small("erm").fit(*people)
    model.fit(x, y)
    assert model.preprocessing_ is None
    assert np.array_equal(model.predict_proba(x), small("erm").fit(x, y).predict_proba(x))


def test_a_decimal_comma_is_read_as_a_number_in_fit_and_in_predict(small: Made, rows: tuple[np.ndarray, ...]) -> None:
    x, y, _ = rows
    frame = pandas.DataFrame(x, columns=list("abcde")).assign(kind=["u", "v"] * (len(y) // 2))
    comma = frame.assign(a=[str(value).replace(".", ",") for value in frame["a"]])
    expected, model = small("erm").fit(frame, y), small("erm").fit(comma, y)
    assert model.preprocessing_.kinds["a"] == "decimal_comma"
    for new in (comma, frame):
        assert np.array_equal(model.predict_proba(new), expected.predict_proba(frame))
