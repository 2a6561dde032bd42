"""What X, y and random_state may be: frames with texts, dates or gaps, sparse rows, labels of any kind, seeds and generators."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse

from umix import UMIXClassifier, UserError
from umix.adapters.sklearn.inputs import is_table, seed_of
from umix.data.rows.table_file import as_frame

pytestmark = pytest.mark.filterwarnings("ignore:The selected model predicts", "ignore:The first model got")

Made = Callable[..., UMIXClassifier]
People = tuple[pandas.DataFrame, np.ndarray]
X = np.random.default_rng(0).normal(size=(8, 2))


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
    with pytest.warns(
        UserWarning, match=r"'town' did not occur in training \('Trier'\): treated as none of its known values"
    ):
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


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_array])
def test_sparse_rows_are_fitted_and_predicted_as_dense_ones(kind: Callable[[np.ndarray], object], small: Made) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(5, 1, (200, 6)) * (rng.random((200, 6)) < 0.4)
    y, weight = (x[:, 0] + x[:, 1] > 3).astype(int), rng.integers(0, 3, 200).astype(float)
    dense = small().fit(x, y, sample_weight=weight)
    model = small().fit(kind(x), y, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(x), dense.predict_proba(x), atol=1e-6)
    np.testing.assert_array_equal(model.weights_, dense.weights_)
    assert np.array_equal(model.predict_proba(kind(x)), model.predict_proba(x))
    assert np.array_equal(dense.predict_proba(kind(x)), dense.predict_proba(x))


def test_a_sparse_matrix_that_no_memory_holds_when_it_is_dense_is_refused(small: Made) -> None:
    with pytest.raises(
        UserError, match=r"^A net takes dense float32 rows, and those of X take 4,000\.0 GB of memory, but there are "
    ):
        small().fit(sparse.csr_array((1000, 10**9)), [0, 1] * 500)


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b", "b"] * 2,
        ["a", float("nan"), "b", "b"] * 2,
        np.array([0, np.nan, 1, 1] * 2),
        np.array(["a", None, "b", "b"] * 2, dtype=object),
        pandas.Series([0, None, 1, 1] * 2, dtype="Int64"),
        pandas.Series(["a", None, "b", "b"] * 2),
        pandas.Series(pandas.Categorical(["a", None, "b", "b"] * 2)),
        polars.Series(["a", None, "b", "b"] * 2),
        polars.Series([0, None, 1, 1] * 2),
    ],
    ids=["None", "NaN among texts", "NaN", "objects", "NA", "pandas", "categories", "polars", "polars numbers"],
)
def test_a_missing_label_is_refused_with_its_row(y: Any) -> None:
    message = r"^y must have a label in every row, but it is missing in 2 of 8, the first of them row 1 \(counted from 0\); leave"
    with pytest.raises(UserError, match=message):
        UMIXClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            X[:, 0],
            r"^y must name a class in every row, .*\(Unknown label type: continuous\); cut a quantity into a few",
        ),
        (
            np.array(["a", 1] * 4, dtype=object),
            r"^y must name a class in every row, .*write labels of several types as texts\.$",
        ),
        (["a"] * 8, r"^The labels must have at least two classes, got 1 class in 8 rows that count\.$"),
        ([0, 1] * 3, r"^y must have a label for each of the 8 rows of X, got 6\.$"),
        (None, r"^UMIXClassifier requires y to be passed, but the target y is None; give a label for every row\.$"),
    ],
    ids=["quantity", "mixed types", "one class", "too few", "none"],
)
def test_labels_that_are_no_classes_are_refused_in_a_sentence(y: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        UMIXClassifier().fit(X, y)


def test_none_draws_from_the_global_generator() -> None:
    before = np.random.get_state()
    try:
        np.random.seed(3)
        first, second = seed_of(None), seed_of(None)
        np.random.seed(3)
        assert (seed_of(np.random), seed_of(None)) == (first, second)
    finally:
        np.random.set_state(before)
    assert first != second


def test_an_instance_gives_another_seed_in_every_fit(small: Made, rows: tuple[np.ndarray, ...]) -> None:
    x, y, _ = rows
    model = small("erm", random_state=np.random.RandomState(5))
    first, second = (model.fit(x, y).predict_proba(x) for _ in range(2))
    again = small("erm", random_state=np.random.RandomState(5)).fit(x, y).predict_proba(x)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
