"""Sparse rows give the net and the predictions of the same rows dense."""

from collections.abc import Callable

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from umix import UMIXClassifier, UserError

pytestmark = pytest.mark.filterwarnings("ignore:The net predicted a single class", "ignore:The uncertainty is")

Made = Callable[..., UMIXClassifier]


def test_the_usual_one_hot_columns_are_taken_as_they_come(small: Made) -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"town": rng.choice([f"town {i}" for i in range(40)], 300), "age": rng.normal(40, 9, 300)})
    y = (frame["town"].str[-1] < "5") ^ (frame["age"] > 60)
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]), (StandardScaler(), ["age"]))
    model = make_pipeline(encode, small("erm", epochs=8)).fit(frame, y)
    assert sparse.issparse(model[0].transform(frame))
    assert model.score(frame, y) > 0.85


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
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
        UserError, match=r"^X must fit into memory as dense float32, .* 1000 × 1000000000 values take 3725 GB"
    ):
        small().fit(sparse.csr_array((1000, 10**9)), [0, 1] * 500)
