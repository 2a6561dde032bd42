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
from umix.exports.preprocessing import Ready
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


def test_dates_and_long_texts_are_named_and_the_model_takes_the_ready_matrix(record: RunRecord) -> None:
    dated = TableColumn("day", "date", parts=("days",), mean=(0.0,), deviation=(1.0,))
    module = preprocessing_of(TablePreprocessing((dated,), "y", None), record)
    assert isinstance(module, Ready)
    (said,) = module.left_out
    assert said.startswith("turning the columns into numbers, because 'day' holds dates or long texts")
    assert module.tensors[0].shape == ("n", *record.input_shape)
