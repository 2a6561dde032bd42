"""The modules do what the readers of tables do, value for value."""

from pathlib import Path

import numpy as np
import polars
import pytest
import torch

import umix
from umix.bench.predict import reader
from umix.bench.runs.record import RunRecord
from umix.data.tables.codes import TableCodes
from umix.data.tables.input_columns import InputColumn
from umix.data.tables.preprocessing import TablePreprocessing
from umix.exports.comparison import check_rows
from umix.exports.preprocessing import Ready
from umix.exports.preprocessing_of import preprocessing_of
from umix.exports.table_inputs import CodedTable, OneHotTable
from umix.exports.trained_model import TrainedModel


@pytest.mark.parametrize(("run", "kind"), [("record", OneHotTable), ("coded", CodedTable)])
def test_the_matrix_of_the_exported_model_is_that_of_predict_to_the_last_bit(
    run: str, kind: type, request: pytest.FixtureRequest
) -> None:
    known: RunRecord = request.getfixturevalue(run)
    module = preprocessing_of(reader(known), known)
    assert isinstance(module, kind)
    rows = check_rows(known, reader(known), TrainedModel.in_folder(known).net, module)
    assert rows.words == "256 rows of people.csv and 33 made-up ones"
    made = module(*rows.tensors)
    assert np.array_equal(made.numpy(), rows.inputs.x.numpy(), equal_nan=True)
    assert np.isnan(rows.tensors[0].numpy()).any()
    assert (rows.tensors[1] < 0).any()


@pytest.mark.parametrize("categories", ["one_hot", "codes"])
def test_numbers_with_a_decimal_comma_are_given_to_the_exported_model_as_numbers(
    record: RunRecord, people: polars.DataFrame, tmp_path: Path, categories: str
) -> None:
    comma = polars.col("age", "hours-per-week").cast(polars.String).str.replace(".", ",", literal=True)
    people.with_columns(comma).write_csv(tmp_path / "people.csv", separator=";")
    task = umix.task_from_table(tmp_path / "people.csv", label="income", categories=categories)
    known = record.model_copy(update={"task": str(tmp_path / "people.csv")})
    module = preprocessing_of(task.preprocessing, known)
    rows = check_rows(known, task.preprocessing, TrainedModel.in_folder(record).net, module)
    assert rows.words == "256 rows of people.csv and 33 made-up ones"
    assert np.array_equal(module(*rows.tensors).numpy(), rows.inputs.x.numpy(), equal_nan=True)
    assert rows.tensors[0][1, 0] == people["age"][1]


def test_missing_has_a_code_of_its_own_where_training_had_gaps(record: RunRecord) -> None:
    columns = {column.name: column for column in preprocessing_of(reader(record), record).columns}
    assert columns["label"].values == ("chef", "clerk", "nurse")
    assert (columns["label"].missing, columns["sex"].missing) == (3, -1)
    assert columns["age"].as_json() == {"name": "age", "kind": "number"}


def test_tables_of_only_numbers_or_only_texts_have_one_input() -> None:
    number = InputColumn("a", "number", "number", mean=(1.0,), deviation=(2.0,), marked=True)
    text = InputColumn("b", "text", "category", values=("x", "y", "z"))
    constant = InputColumn("c", "number", "constant")
    given = {number: torch.tensor([[3.0], [torch.nan]]), text: torch.tensor([[2], [-1]])}
    for one, x in given.items():
        module = OneHotTable([constant, one])
        assert [tensor.name for tensor in module.tensors] == ["numbers" if one is number else "codes"]
        new = polars.DataFrame({"a": [3.0, None], "b": ["z", "new"], "c": [0, 0]})
        expected = TablePreprocessing([constant, one], label="y", id=None, others=()).transform(new)
        assert module(x).tolist() == expected.tolist()


def test_dates_and_long_texts_are_named_and_the_model_takes_the_ready_matrix(record: RunRecord) -> None:
    dated = InputColumn("day", "moment", "skrub", mean=(0.0,), deviation=(1.0,))
    module = preprocessing_of(TablePreprocessing([dated], label="y", id=None, others=()), record)
    assert isinstance(module, Ready)
    (said,) = module.left_out
    assert said.startswith("turning the columns into numbers, because 'day' holds dates or long texts")
    assert module.tensors[0].shape == ("n", *record.input_shape)
    frame = polars.DataFrame({"when": ["2024-01-31", "2024-02-29"] * 4, "y": ["a", "b"] * 4})
    codes = TableCodes.fit(frame.select("when"), np.arange(8), label="y", id=None)
    assert "'when' holds dates" in preprocessing_of(codes, record).left_out[0]
