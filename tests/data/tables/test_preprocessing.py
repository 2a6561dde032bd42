"""The preprocessing of tables: the numbers of skrub without skrub, saved without pickle, refused where it is not ours.

The oracle is umix 0.1, which gave every column to skrub's TableVectorizer: equal bit by bit.
"""

import datetime
import math
import pickle
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from umix.data.rows.column_kinds import cast, kind_of
from umix.data.tables import input_columns
from umix.data.tables.input_columns import InputColumn
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.tables.skrub_state import save_state, steady
from umix.data.tables.table_reader import Matrix
from umix.errors import UserError
from umix.run_folder import TABLE_BEFORE_0_2, TABLE_COLUMNS
from umix.run_folder import TABLE_VECTORIZER as FILE

GAPS = ("?", "NA", " ", "", "nan", "\u2003")
FEW = ("a", "b", " b", "B", "ä", "1", "may 5", "12", "2020", "None of them", "日本")


def of_umix_0_1(frame: polars.DataFrame) -> dict[str, Any]:
    """What umix 0.1 stored of the training rows ``frame``."""
    from skrub import StringEncoder, TableVectorizer

    kinds = {column.name: kind_of(column) for column in frame.iter_columns()}
    vectorizer = TableVectorizer(
        cardinality_threshold=100, high_cardinality=StringEncoder(random_state=0), drop_if_constant=True
    )
    with steady():
        table = vectorizer.fit_transform(cast(frame, kinds))
    x = without_infinities(table)
    one_hot = set(vectorizer.kind_to_columns_["low_cardinality"])
    origin = [vectorizer.output_to_input_[name] for name in table.columns]
    scaled = np.array([i for i, column in enumerate(origin) if column not in one_hot], dtype=np.int64)
    first = {origin[i]: int(i) for i in scaled[np.isnan(x[:, scaled]).any(axis=0)][::-1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        mean = np.nan_to_num(np.nanmean(x[:, scaled], axis=0, dtype=np.float64))
        deviation = np.nan_to_num(np.nanstd(x[:, scaled], axis=0, dtype=np.float64))
    return {
        "format": "umix table preprocessing 1",
        **{"label": "y", "id": "", "others": [], "kinds": kinds, "dropped": sorted(set(kinds) - set(origin))},
        **{"vectorizer": vectorizer, "scaled": scaled, "marked": np.array(sorted(first.values()), dtype=np.int64)},
        **{"mean": mean, "deviation": np.where(deviation > 0, deviation, 1.0)},
    }


def without_infinities(table: polars.DataFrame) -> Matrix:
    x: Matrix = table.to_numpy(order="fortran", writable=True).astype(np.float32, copy=False)
    x[np.isinf(x)] = np.nan
    return x


def matrix_of_umix_0_1(state: dict[str, Any], frame: polars.DataFrame) -> Matrix:
    with steady():
        x = without_infinities(state["vectorizer"].transform(cast(frame, state["kinds"])))
    marks = np.isnan(x[:, state["marked"]]).astype(np.float32)
    for place, mean, deviation in zip(state["scaled"], state["mean"], state["deviation"], strict=True):
        column = x[:, place]
        column -= mean
        column /= deviation
        np.clip(column, -10, 10, out=column)
        column[np.isnan(column)] = 0.0
    return np.concatenate([x, marks], axis=1)


def columns_of_one_kind(n: int) -> st.SearchStrategy[list[Any]]:
    """``n`` values of a kind that a column of a file or a frame may have."""
    whole = st.integers(0, 10**9)
    few = st.lists(st.sampled_from(FEW), min_size=1, max_size=4).map(st.sampled_from).flatmap(lambda one: one)
    values: tuple[st.SearchStrategy[Any], ...] = (
        st.one_of(st.none(), st.integers(-3, 3)),
        st.one_of(st.none(), st.floats(width=64)),
        st.one_of(st.none(), st.booleans()),
        st.sampled_from(FEW),
        st.one_of(st.none(), st.sampled_from(GAPS), st.sampled_from(FEW[:2])),
        st.one_of(
            st.sampled_from(GAPS), whole.map(str), st.floats(width=32).map(str), st.sampled_from(["+1", ".5", "1e400"])
        ),
        st.sampled_from(["10.11.12", "192.168.0.1", "12:30:45", "5 Jan 2020"]),
        st.sampled_from(["20200131", "20201231", "12345678"]),
        st.one_of(st.none(), st.dates(datetime.date(1950, 1, 1)), st.datetimes(datetime.datetime(1950, 1, 1))).map(
            as_text
        ),
        st.text(max_size=3),
        few,
    )
    return st.sampled_from(values).flatmap(lambda one: st.lists(one, min_size=n, max_size=n))


def as_text(moment: datetime.date | None) -> str | None:
    return None if moment is None else str(moment.isoformat()[:10])


@settings(max_examples=25)
@given(columns_of_one_kind(6), columns_of_one_kind(6), columns_of_one_kind(6))
@example(["2020", "2021", "NA", "1999", "2000", "2001"], ["2020-05"] * 5 + ["2020-06"], ["12:30", "1"] * 3)
@example(["5/3/2020", "25/3/2020", "?"] * 2, ["Jan 05 2020", "Feb 05 2020"] * 3, ["1", " 2", "3"] * 2)
@example([1, 2**60, None] * 2, [math.inf, 1.5, 1e300] * 2, ["f", "m", "?"] * 2)
def test_the_numbers_are_those_of_skrub_bit_by_bit(first: list[Any], second: list[Any], new: list[Any]) -> None:
    frame = polars.DataFrame({"first": first, "second": second, "two": [1, 2] * 3}, strict=False)
    fitted, x = TablePreprocessing.fit(frame, label="y", id=None)
    state = of_umix_0_1(frame)
    assert fitted.dropped == state["dropped"]
    rows = frame.with_columns(first=polars.Series(new, strict=False), second=frame["second"].reverse())
    assert np.array_equal(fitted.transform(rows), matrix_of_umix_0_1(state, rows))
    if not fitted.needs_skrub:  # a decomposition of texts rounds differently where it is fitted
        assert np.array_equal(x, matrix_of_umix_0_1(state, frame))


def odd(n: int = 240) -> polars.DataFrame:
    """Columns of all types that polars reads or people build."""
    rows, start = range(n), datetime.datetime(2020, 1, 1)
    texts = [["b", "a", "?", None, "c"][i % 5] for i in rows]
    return polars.DataFrame(
        {
            "long": [f"person {i} of {i % 7}" for i in rows],
            "category": polars.Series(texts, dtype=polars.Categorical),
            "enum": polars.Series(texts, dtype=polars.Enum(["c", "b", "?", "a", "d"])),
            "missing or not": [["x", None][i % 2] for i in rows],
            "99 values": [f"v{i % 99}" for i in rows],
            "100 values": [f"v{i % 100}" for i in rows],
            "date": [None if i % 9 == 0 else start + datetime.timedelta(hours=31 * i) for i in rows],
            "day": [f"{1 + i % 28}.{1 + i % 12}.2021" for i in rows],
            "duration": [datetime.timedelta(seconds=i % 50) for i in rows],
            "time": [datetime.time(i % 24) for i in rows],
            "decimal": polars.Series([None if i % 11 == 0 else i % 4 for i in rows], dtype=polars.Decimal(10, 2)),
            "single": polars.Series([i / 7 for i in rows], dtype=polars.Float32),
            "huge": polars.Series([i % 5 for i in rows], dtype=polars.Int128),
            "nothing": [None] * n,
            "gaps only": ["?", "NA"] * (n // 2),
            "same": [1.5] * n,
        }
    )


def test_all_types_of_columns_have_the_numbers_of_skrub_and_the_first_format_is_still_read(tmp_path: Path) -> None:
    frame = odd()
    fitted, x = TablePreprocessing.fit(frame, label="y", id=None)
    state = of_umix_0_1(frame)
    expected = matrix_of_umix_0_1(state, frame)
    assert np.array_equal(fitted.transform(frame), expected)
    assert x == pytest.approx(expected, abs=1e-4)
    assert fitted.needs_skrub == ("long", "100 values", "date", "day")
    assert fitted.dropped == ["gaps only", "nothing", "same"]
    save_state(tmp_path / TABLE_BEFORE_0_2, state)
    again = TablePreprocessing.load(tmp_path)
    assert again.input_columns == fitted.input_columns
    assert np.array_equal(again.transform(frame), expected)


def test_numbers_and_few_texts_are_values_that_an_export_can_read(tmp_path: Path) -> None:
    frame = polars.DataFrame(
        {"x": [1.0, 3.0, None, 5.0], "sex": list("fmfm"), "job": ["b", "a", "?", "b"], "k": [7] * 4}
    )
    fitted, x = TablePreprocessing.fit(frame, label="y", id=None)
    assert fitted.needs_skrub == ()
    assert fitted.input_columns == (
        InputColumn("x", "number", "number", mean=(3.0,), deviation=(math.sqrt(8 / 3),), marked=True),
        InputColumn("sex", "text", "category", values=("f", "m")),
        InputColumn("job", "text", "category", values=("a", "b"), gaps=True),
        InputColumn("k", "number", "constant"),
    )
    assert [one.indicators for one in fitted.input_columns] == [(), ("m",), ("a", "b", None), ()]
    assert x[:, 1:].tolist() == [[0, 0, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [1, 0, 1, 0, 0]]
    fitted.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [TABLE_COLUMNS]
    assert TablePreprocessing.load(tmp_path).input_columns == fitted.input_columns


def test_a_table_of_nothing_but_categories_has_nothing_but_0_and_1() -> None:
    _, x = TablePreprocessing.fit(polars.DataFrame({"sex": list("fmfm")}), label="y", id=None)
    assert x.tolist() == [[0], [1], [0], [1]]
    assert x.strides == (4, 4)  # as a hash of its bytes needs it


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


def test_columns_of_types_that_cannot_be_what_they_were_are_missing(
    frame: polars.DataFrame, fitted: TablePreprocessing
) -> None:
    other = frame.head(3).with_columns(
        few=polars.Series([datetime.timedelta(1)] * 3),
        pair=polars.Series([datetime.timedelta(1)] * 3),
        date=polars.Series([datetime.time(12)] * 3),
    )
    assert np.isfinite(fitted.transform(other)).all()
    assert fitted.unreadable(other) == {"few": 3, "pair": 3, "date": 3}


def test_missing_columns_are_named_and_constant_ones_are_not_missed(
    frame: polars.DataFrame, fitted: TablePreprocessing
) -> None:
    assert np.array_equal(fitted.transform(frame.drop("same")), fitted.transform(frame))
    with pytest.raises(UserError, match="but 'number', 'few' are missing"):
        fitted.transform(frame.drop("number", "few"))


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"format": 1}', b'{"format": "umix table columns 1", "columns": [{"name": "x"}]}']
)
def test_a_file_of_columns_that_umix_did_not_write_is_refused(
    fitted: TablePreprocessing, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / TABLE_COLUMNS).write_bytes(content)
    with pytest.raises(UserError, match=r"columns\.json must") as caught:
        TablePreprocessing.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_very_long_text_among_dates_is_not_parsed_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_columns, "_are_dates", lambda column: pytest.fail("parsing takes time by the square"))
    column = polars.Series("day", ["2024-01-01", "2024-02-29", "9" * 10_000])
    assert input_columns.fit_column(column).kind == "category"


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
