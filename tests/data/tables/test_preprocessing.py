"""The preprocessing of tables: saved without pickle, refused where it is not ours."""

import datetime
import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import polars
import pytest

from umix.data.tables.preprocessing import TablePreprocessing
from umix.errors import UserError
from umix.run_folder import TABLE_INPUTS as FILE


@pytest.fixture(scope="module")
def frame() -> polars.DataFrame:
    rows = range(300)
    return polars.DataFrame(
        {
            "number": [None if i % 7 == 0 else i / 3 for i in rows],
            "flag": [i % 2 == 0 for i in rows],
            "few": [["a", "b", "c"][i % 3] for i in rows],
            "pair": [["yes", "no"][i % 2] for i in rows],
            "many": [f"person {i} of {i % 7}" for i in rows],
            "date": [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=31 * i) for i in rows],
            "day": [f"2021-0{1 + i % 9}-1{i % 9}" for i in rows],
            "same": ["x"] * 300,
        }
    )


@pytest.fixture(scope="module")
def fitted(frame: polars.DataFrame) -> TablePreprocessing:
    return TablePreprocessing.fit(frame, label="y", id=None)[0]


def test_it_comes_back_from_its_file_with_the_same_numbers(
    frame: polars.DataFrame, fitted: TablePreprocessing, tmp_path: Path
) -> None:
    fitted.save(tmp_path)
    again = TablePreprocessing.load(tmp_path)
    assert np.array_equal(again.transform(frame), fitted.transform(frame))
    assert (again.label, again.id, again.columns, again.dropped) == ("y", None, frame.columns, ["same"])


def test_training_rows_get_the_same_numbers_when_they_are_seen_again(frame: polars.DataFrame) -> None:
    fitted, x = TablePreprocessing.fit(frame, label="y", id=None)
    assert fitted.transform(frame) == pytest.approx(x, abs=1e-4)  # the texts' decomposition rounds differently


def test_unseen_texts_and_unreadable_values_are_finite_gaps(
    frame: polars.DataFrame, fitted: TablePreprocessing
) -> None:
    new = frame.head(2).with_columns(
        few=polars.lit("unseen"),
        pair=polars.lit("maybe"),
        many=polars.lit(None, dtype=polars.String),
        number=polars.lit("tall"),
        date=polars.lit("never"),
        day=polars.lit("someday"),
    )
    assert np.isfinite(fitted.transform(new)).all()
    assert fitted.unreadable(new) == {"number": 2, "date": 2}


def test_columns_of_another_type_are_read_as_in_training(frame: polars.DataFrame, fitted: TablePreprocessing) -> None:
    texts = frame.with_columns(polars.col("number", "date").cast(polars.String))
    assert np.array_equal(fitted.transform(texts), fitted.transform(frame))


def test_missing_columns_are_named_and_constant_ones_are_not_missed(
    frame: polars.DataFrame, fitted: TablePreprocessing
) -> None:
    assert np.array_equal(fitted.transform(frame.drop("same")), fitted.transform(frame))
    with pytest.raises(UserError, match="but 'number', 'few' are missing"):
        fitted.transform(frame.drop("number", "few"))


@pytest.mark.parametrize("content", ["pickle", "truncated", "foreign type", "foreign content"])
def test_a_file_that_umix_did_not_write_is_refused(fitted: TablePreprocessing, tmp_path: Path, content: str) -> None:
    import skops.io

    fitted.save(tmp_path)
    path = tmp_path / FILE
    path.write_bytes(
        {
            "pickle": pickle.dumps({"a": 1}),
            "truncated": path.read_bytes()[:1000],
            "foreign type": skops.io.dumps({"format": Path("secret")}),
            "foreign content": skops.io.dumps(OrderedDict(a=1)),
        }[content]
    )
    with pytest.raises(UserError, match="must") as caught:
        TablePreprocessing.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_run_without_one_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must hold a run on a table"):
        TablePreprocessing.load(tmp_path)
