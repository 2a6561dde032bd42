"""The module does what the reader of tables does, value for value."""

import numpy as np
import polars
import pytest
import torch

from umix.bench.predict import reader
from umix.bench.runs.record import RunRecord
from umix.data.tables.columns import TableColumn
from umix.data.tables.preprocessing import TablePreprocessing
from umix.exports.comparison import check_rows
from umix.exports.preprocessing import NO_DATE, Ready
from umix.exports.preprocessing_of import preprocessing_of
from umix.exports.table_inputs import TableInputs
from umix.exports.trained_model import TrainedModel


@pytest.mark.parametrize("run", ["record", "coded"])
def test_the_matrix_of_the_exported_model_is_that_of_predict_to_the_last_bit(
    run: str, request: pytest.FixtureRequest
) -> None:
    known: RunRecord = request.getfixturevalue(run)
    module = preprocessing_of(reader(known), known)
    assert isinstance(module, TableInputs)
    rows = check_rows(known, reader(known), TrainedModel.in_folder(known).net, module)
    made = module(*rows.tensors)
    assert np.array_equal(made.numpy(), rows.inputs.x.numpy(), equal_nan=True)
    assert np.isnan(rows.tensors[0].numpy()).any()
    assert (rows.tensors[1] < 0).any()


def test_columns_are_named_with_their_values(record: RunRecord) -> None:
    columns = {column.name: column for column in preprocessing_of(reader(record), record).columns}
    assert columns["label"].as_json() == {"name": "label", "kind": "category", "values": ["chef", "clerk", "nurse"]}
    assert columns["age"].as_json() == {"name": "age", "kind": "number"}


@pytest.mark.parametrize("hot", [True, False])
def test_tables_of_only_numbers_or_only_texts_have_one_input(hot: bool) -> None:
    number = TableColumn("a", "number", gaps=True, mean=(1.0,), deviation=(2.0,))
    text = TableColumn("b", "category", values=("x", "y", "z"))
    constant = TableColumn("c", "number", width=0)
    given = {number: torch.tensor([[3.0], [torch.nan]]), text: torch.tensor([[2], [-1]])}
    for one, x in given.items():
        columns = TablePreprocessing((constant, one), "y", None, one_hot=hot)
        module = TableInputs(columns)
        assert [tensor.name for tensor in module.tensors] == ["numbers" if one is number else "codes"]
        new = polars.DataFrame({"a": [3.0, None], "b": ["z", "new"], "c": [0, 0]})
        assert np.array_equal(module(x).numpy(), columns.transform(new), equal_nan=True)


@pytest.mark.parametrize("hot", [True, False])
def test_dates_are_read_from_seconds_between_other_columns(hot: bool) -> None:
    whole = ("days", "month", "weekday", "hour")
    statistics = {"mean": (18000.0, 6.0, 4.0, 12.0), "deviation": (500.0, 3.0, 2.0, 6.0)}
    columns = (
        TableColumn("day", "date", width=4, parts=whole, gaps=True, **statistics),
        TableColumn("b", "category", values=("x", "y", "z")),
        TableColumn("month", "date", parts=("month",), mean=(6.0,), deviation=(3.0,)),
        TableColumn("a", "number", mean=(1.0,), deviation=(2.0,)),
    )
    reader = TablePreprocessing(columns, "y", None, one_hot=hot)
    rng, n = np.random.default_rng(0), 500
    seconds = rng.integers(-62135596800, 32503680000, size=(2, n))  # of the years 1 to 3000
    day, month = (polars.Series(part * 1_000_000).cast(polars.Datetime("us")) for part in seconds)
    day = day.scatter([0, 7], None)
    frame = polars.DataFrame(
        {"a": rng.normal(size=n), "b": rng.choice(["x", "z", "new"], n), "day": day, "month": month}
    )
    seconds[0, [0, 7]] = NO_DATE
    codes = [("x", "y", "z").index(text) if text != "new" else -1 for text in frame["b"]]
    numbers = frame.select(polars.col("a").cast(polars.Float32)).to_torch()
    module = TableInputs(reader)
    assert [tensor.name for tensor in module.tensors] == ["numbers", "codes", "dates"]
    made = module(numbers, torch.tensor(codes)[:, None], torch.from_numpy(seconds.T.copy()))
    assert np.array_equal(made.numpy(), reader.transform(frame), equal_nan=True)


def test_long_texts_are_named_and_the_model_takes_the_ready_matrix(record: RunRecord) -> None:
    note = TableColumn("note", "text", width=30, mean=(0.0,) * 30, deviation=(1.0,) * 30)
    module = preprocessing_of(TablePreprocessing((note,), "y", None), record)
    assert isinstance(module, Ready)
    (said,) = module.left_out
    assert said.startswith("turning the columns into numbers, because 'note' holds long texts")
    assert module.tensors[0].shape == ("n", *record.input_shape)
