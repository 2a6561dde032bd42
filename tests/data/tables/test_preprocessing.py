"""The preprocessing of tables: one column of numbers for each column, categories by their place, NaN where it is missing."""

import datetime
import math
from pathlib import Path

import numpy as np
import polars
import pytest
import torch

from umix import task_from_table
from umix.data.registry import READERS
from umix.data.rows.column_kinds import FEW_VALUES
from umix.data.tables.preprocessing import TablePreprocessing
from umix.errors import UserError
from umix.run_folder import TABLE_COLUMNS

NAN = math.nan


def fitted(**columns: object) -> TablePreprocessing:
    frame = polars.DataFrame(columns)
    return TablePreprocessing.fit(frame, np.arange(len(frame)), label="y", id="key")


def numbers(codes: TablePreprocessing, **columns: object) -> list[list[float]]:
    """The matrix of new rows, column by column."""
    return codes.transform(polars.DataFrame(columns)).T.tolist()


def same(found: list[float], expected: list[float]) -> bool:
    return np.array_equal(np.array(found), np.array(expected), equal_nan=True)


def people(n: int = 120) -> polars.DataFrame:
    start = datetime.date(2020, 1, 1)
    return polars.DataFrame(
        {
            "age": [18 + i % 70 for i in range(n)],
            "height": [None if i % 10 == 0 else 150.5 + i % 40 for i in range(n)],
            "member": [i % 3 == 0 for i in range(n)],
            "job": [["clerk", "smith", None, "?", "Bäcker"][i % 5] for i in range(n)],
            "since": [start + datetime.timedelta(days=7 * (i % 90)) for i in range(n)],
            "sex": [["f", "m"][i % 2] for i in range(n)],
            "y": [["no", "no", "yes"][i % 3] for i in range(n)],
        }
    )


def test_numbers_are_as_they_are_and_gaps_and_infinities_are_nan() -> None:
    codes = fitted(x=[1.5, -3e6, None, NAN, math.inf], whole=[1, 2, 3, 4, None])
    x, whole = numbers(codes, x=[1.5, -3e6, None, NAN, -math.inf, 1e300], whole=[7, 8, 9, None, 0, 2**24])
    assert same(x, [1.5, -3e6, NAN, NAN, NAN, NAN])
    assert same(whole, [7, 8, 9, NAN, 0, 2**24])
    assert codes.categories == (0, 0)


def test_a_category_is_its_place_among_the_sorted_training_values() -> None:
    codes = fitted(job=["smith", "clerk", "?", "Äpfel", "", None, "NA", " \t"])
    (job,) = numbers(codes, job=["clerk", "smith", "Äpfel", "?", "", None, "  ", "none", "baker"])
    assert codes.values == {"job": ("clerk", "smith", "Äpfel")}
    assert same(job, [0, 1, 2, NAN, NAN, NAN, NAN, NAN, NAN])
    assert codes.categories == (3,)


@pytest.mark.parametrize("kind", [polars.String, polars.Categorical, polars.Enum(["b", "a", "?", "c"])])
def test_all_types_of_texts_give_the_same_codes(kind: polars.DataType) -> None:
    texts = polars.Series(["b", "a", "?", None, "b", "c"], dtype=kind)
    codes = fitted(t=texts)
    assert same(numbers(codes, t=texts)[0], [1, 0, NAN, NAN, 1, 2])
    assert same(numbers(codes, t=texts.cast(polars.String))[0], [1, 0, NAN, NAN, 1, 2])


def test_the_codes_do_not_depend_on_the_order_of_rows() -> None:
    texts = [f"v{i % 7}" for i in range(50)]
    assert fitted(t=texts).values == fitted(t=texts[::-1]).values


def test_values_that_look_alike_after_stripping_stay_apart() -> None:
    codes = fitted(t=["a", " a", "a ", "b"])
    assert same(numbers(codes, t=[" a", "a ", "a", "b", "b "])[0], [0, 2, 1, 3, NAN])


def test_booleans_are_0_and_1_however_a_file_writes_them(tmp_path: Path) -> None:
    reader = fitted(t=[True, False, None])
    assert same(numbers(reader, t=[False, True, None])[0], [0, 1, NAN])
    assert reader.categories == (0,)
    (tmp_path / "new.csv").write_text("key,t\n1,True\n2,false\n")
    (block,) = reader.blocks(tmp_path / "new.csv")
    assert block.x.tolist() == [[1], [0]]
    assert block.notes == ()


@pytest.mark.parametrize(
    "texts",
    [
        ["2/29/2024", "12/31/2024", "?"],
        ["29.02.2024", "31.12.2024", ""],
        ["29 Feb 2024", "31 Dec 2024", "NA"],
        ["02/29/2024 00:00", "12/31/2024 00:00", None],
    ],
    ids=["month first", "points", "names", "with a time"],
)
def test_dates_in_the_usual_ways_to_write_them_are_dates(texts: list[str]) -> None:
    reader = fitted(t=texts)
    days = [(datetime.date(2024, month, day) - datetime.date(1970, 1, 1)).days for month, day in ((2, 29), (12, 31))]
    assert same(numbers(reader, t=texts)[0], [*days, NAN])
    assert same(numbers(reader, t=[datetime.date(1970, 1, 3)])[0], [2])
    assert [str(note) for note in reader.inputs(polars.DataFrame({"key": [1], "t": ["soon"]})).notes] == [
        "1 value of 't' could not be read as dates ('soon'): treated as missing."
    ]


def test_texts_that_are_all_numbers_or_all_dates_are_read_as_these() -> None:
    codes = fitted(
        digits=["1", " 2.5", "?", ""], day=["2024-02-29", "2024-03-01", None, "NA"], mixed=["1", "b", "2", "3"]
    )
    assert codes.kinds == {"digits": "number", "day": "moment", "mixed": "text"}
    new = {"digits": ["7", "?", "x"], "day": ["1970-01-03", "", "never"], "mixed": ["1", "2", "4"]}
    digits, day, *_, mixed = numbers(codes, **new)
    assert same(digits, [7, NAN, NAN])
    assert same(day, [2, NAN, NAN])
    assert same(mixed, [0, 1, NAN])
    notes = codes.inputs(polars.DataFrame({"key": [1, 2, 3], **new})).notes
    assert [(note.text.split("'")[1], note.count) for note in notes] == [("digits", 1), ("day", 1), ("mixed", 1)]


def test_a_date_is_days_and_those_of_month_weekday_and_hour_that_differ() -> None:
    first = datetime.datetime(1970, 1, 5)
    weeks = [first + datetime.timedelta(days=7 * i) for i in range(20)]
    assert fitted(t=weeks).transform(polars.DataFrame({"t": weeks[:6]})).tolist()[5] == [39, 2]
    hours = [first + datetime.timedelta(hours=6 * i) for i in range(20)]
    assert fitted(t=hours).transform(polars.DataFrame({"t": hours})).tolist()[5] == [5.25, 2, 6]
    zoned = polars.Series(hours).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    assert np.array_equal(fitted(t=zoned).transform(zoned.alias("t").to_frame())[:, 0], np.arange(20) / 4 + 4)


def test_times_and_durations_are_seconds() -> None:
    codes = fitted(at=[datetime.time(0, 1), datetime.time(1)], took=[datetime.timedelta(minutes=2), None])
    assert numbers(codes, at=[datetime.time(0, 2)], took=[datetime.timedelta(hours=1)]) == [[120], [3600]]


@pytest.mark.parametrize(
    "column",
    [
        ["a", "a", "a"],
        [1, 1, 1],
        [True, True, True],
        [None, None, None],
        ["?", "", None],
        [NAN, math.inf, None],
        [datetime.date(2020, 1, 1)] * 3,
    ],
    ids=str,
)
def test_constant_and_empty_columns_are_left_out(column: list[object]) -> None:
    codes = fitted(odd=polars.Series(column, strict=False), x=[1, 2, 3])
    assert codes.dropped == ["odd"]
    assert numbers(codes, x=[5]) == [[5]]
    assert numbers(codes, odd=["anything"], x=[5]) == [[5]]
    assert codes.categories == (0,)


@pytest.mark.parametrize("column", [["a", None], [1, None], [True, None], [datetime.date(2020, 1, 1), None]], ids=str)
def test_one_value_and_gaps_are_two_kinds_of_rows(column: list[object]) -> None:
    made = numbers(fitted(t=column), t=column)
    assert len(made) == 1
    assert math.isnan(made[0][1])
    assert not math.isnan(made[0][0])


def test_a_table_of_constants_is_refused() -> None:
    with pytest.raises(UserError, match="The inputs a, b must differ between training rows"):
        fitted(a=[1, 1], b=["x", "x"])


def test_one_hundred_values_are_a_category_and_one_more_are_thirty_numbers(tmp_path: Path) -> None:
    few = [f"person number {i % FEW_VALUES}" for i in range(300)]
    many = [f"person number {i % (FEW_VALUES + 1)}" for i in range(300)]
    codes = fitted(few=few, many=["?", *many[1:]])
    assert codes.categories == (FEW_VALUES, *[0] * 30)
    new = polars.DataFrame({"few": few[:4], "many": [many[5], "someone else", None, "?"]})
    x = codes.transform(new)
    assert np.isfinite(x).all()
    assert np.array_equal(x[2, 1:], x[3, 1:])
    codes.save(tmp_path)
    assert np.array_equal(TablePreprocessing.load(tmp_path).transform(new), x)


def test_it_comes_back_from_plain_json_with_the_same_numbers_and_the_registry_finds_it(tmp_path: Path) -> None:
    frame = people().drop("y")
    codes = TablePreprocessing.fit(frame, np.arange(60), label="y", id="key", others=["dropped"])
    codes.save(tmp_path)
    again = READERS["table"].load(tmp_path)
    assert isinstance(again, TablePreprocessing)
    assert np.array_equal(again.transform(frame), codes.transform(frame), equal_nan=True)
    assert (again.label, again.id, again.others) == ("y", "key", ("dropped",))
    assert (again.categories, again.columns, again.dropped) == (codes.categories, codes.columns, codes.dropped)
    assert [path.name for path in tmp_path.iterdir()] == [TABLE_COLUMNS]
    assert "Bäcker" in (tmp_path / TABLE_COLUMNS).read_text(encoding="utf-8")


def test_odd_values_of_new_rows_are_noted() -> None:
    codes = fitted(x=[1, 2, 3], place=["sea", "land", "sea"], when=[datetime.date(2020, 1, i) for i in (1, 2, 3)])
    new = polars.DataFrame(
        {"x": ["tall", "2", "?"], "place": ["moon", "", "sea"], "when": ["no", None, "2020-01-01"], "c": 0}
    )
    made = codes.inputs(new)
    assert made.x[:, 0].isnan().tolist() == [True, False, True]
    assert tuple(map(str, made.notes)) == (
        "Ignored columns that the model was not trained with: c.",
        "2 values of 'x' could not be read as numbers ('?', 'tall'): treated as missing.",
        "1 value of 'when' could not be read as dates ('no'): treated as missing.",
        "1 value of 'place' did not occur in training ('moon'): treated as none of its known values.",
        "The table has no id column 'key': predictions are in the order of its rows.",
    )


def test_new_columns_without_any_value_are_missing_and_columns_left_out_are_not_noted() -> None:
    day = [datetime.date(2020, 1, i) for i in (1, 2, 3)]
    codes = fitted(x=[1, 2, 3], place=["sea", "land", "sea"], when=day, same=["a", "a", "a"])
    made = codes.inputs(polars.DataFrame({"key": [1], "x": [None], "place": [None], "when": [None], "same": ["b"]}))
    assert made.x.isnan().all()
    assert made.notes == ()


def test_numbers_that_are_categories_are_compared_as_numbers_are_written() -> None:
    frame = polars.DataFrame({"t": [1.0, 2.5, -0.0, 0.0, NAN, None]})
    codes = TablePreprocessing.fit(frame, np.arange(6), label="y", id=None, as_categories=["t"])
    assert same(numbers(codes, t=[1, 0, 3])[0], [codes.values["t"].index("1"), codes.values["t"].index("0"), NAN])
    assert same(numbers(codes, t=[1.0, 2.5])[0], [codes.values["t"].index(value) for value in ("1", "2.5")])


def test_durations_in_the_place_of_texts_are_values_that_training_did_not_have() -> None:
    codes = fitted(x=[1, 2], place=["sea", "land"])
    new = polars.DataFrame({"key": [1], "x": [1], "place": [datetime.timedelta(hours=1)]})
    assert codes.inputs(new).x.isnan().tolist() == [[False, True]]


def test_ids_are_copied_and_one_row_is_enough() -> None:
    codes = fitted(x=[1, 2], place=["sea", "land"])
    made = codes.inputs(polars.DataFrame({"key": ["k7"], "x": [4], "place": ["land"]}))
    assert made.x.tolist() == [[4, 0]]
    assert made.ids["key"].to_list() == ["k7"]
    assert made.notes == ()


def test_missing_columns_and_empty_tables_are_refused() -> None:
    codes = fitted(x=[1, 2], place=["sea", "land"])
    with pytest.raises(UserError, match="but 'place' is missing"):
        codes.transform(polars.DataFrame({"x": [1]}))
    with pytest.raises(UserError, match="must have rows, but it is empty"):
        codes.transform(polars.DataFrame({"x": [], "place": []}))


def test_new_rows_keep_their_columns() -> None:
    frame = polars.DataFrame({"x": [1, 2], "place": ["sea", "land"]})
    fitted(x=[1, 2], place=["sea", "land"]).transform(frame)
    assert frame.columns == ["x", "place"]


def test_a_task_has_one_column_for_each_input_and_says_which_are_categories() -> None:
    frame = people()
    task = task_from_table(frame, label="y", groups="sex", drop="since")
    assert task.categories == (0, 0, 0, 3, 2)
    for split in task.splits.values():
        rows = frame[split.origin]
        assert split.x.dtype == torch.float32
        assert same(split.x[:, 0].tolist(), rows["age"].to_list())
        assert same(split.x[:, 1].tolist(), rows["height"].cast(polars.Float64).fill_null(NAN).to_list())
        assert same(split.x[:, 4].tolist(), [["f", "m"].index(sex) for sex in rows["sex"]])
    assert frame.columns == people().columns


def test_values_that_only_held_out_rows_have_are_missing() -> None:
    split = ["train"] * 40 + ["val"] * 20 + ["test"] * 20
    place = [["sea", "land"][i % 2] for i in range(60)] + ["moon", "sea"] * 10
    frame = polars.DataFrame({"place": place, "y": [i % 3 == 0 for i in range(80)], "split": split})
    task = task_from_table(frame, label="y", split="split")
    assert task.categories == (2,)
    assert task.splits["test"].x[:, 0].isnan().sum() == 10


def test_a_file_gives_the_task_of_its_frame(tmp_path: Path) -> None:
    frame = people().with_columns(day=polars.lit("2020-01-0") + (polars.int_range(120) % 9 + 1).cast(polars.String))
    frame.write_csv(tmp_path / "table.csv")
    frame.write_parquet(tmp_path / "table.parquet")
    options = {"label": "y", "groups": "sex"}
    expected = task_from_table(frame, **options).fingerprint
    assert task_from_table(tmp_path / "table.parquet", **options).fingerprint == expected
    assert task_from_table(tmp_path / "table.csv", **options).fingerprint == expected


def test_a_file_whose_later_rows_do_not_fit_the_first_is_read(tmp_path: Path) -> None:
    rows = ["1,a,no", "2,b,yes"] * 6000 + [f"three,c{i},no" for i in range(200)]
    (tmp_path / "late.csv").write_text("x,t,y\n" + "\n".join(rows) + "\n")
    task = task_from_table(tmp_path / "late.csv", label="y")
    assert task.categories[0] == 3
    assert task.preprocessing.kinds == {"x": "text", "t": "text"}
    assert len(task.categories) > 2  # t has many values


def test_pandas_categories_are_categories_whatever_they_hold() -> None:
    pandas = pytest.importorskip("pandas")
    n = 60
    frame = pandas.DataFrame(
        {
            "word": pandas.Categorical([["p", "q", None][i % 3] for i in range(n)]),
            "digit": pandas.Categorical([str(i % 4) for i in range(n)]),
            "code": pandas.Categorical([[30, 4, 500, None][i % 4] for i in range(n)]),
            "flag": [i % 2 == 0 for i in range(n)],
            "number": [i / 4 for i in range(n)],
            "y": [i % 3 == 0 for i in range(n)],
        }
    )
    task = task_from_table(frame, label="y")
    assert task.categories == (2, 4, 3, 0, 0)
    assert task.preprocessing.values["code"] == ("30", "4", "500")
    split = task.splits["test"]
    assert same(split.x[:, 2].tolist(), [[0, 1, 2, NAN][i % 4] for i in split.origin])
    new = task.preprocessing.inputs(frame.head(4).astype({"code": float}))
    assert same(new.x[:, 2].tolist(), [0, 1, 2, NAN])
    assert new.notes == ()


def test_the_number_of_categories_is_part_of_a_tasks_fingerprint() -> None:
    from dataclasses import replace

    task = task_from_table(people(), label="y")
    assert replace(task, categories=(0,) * len(task.categories)).fingerprint != task.fingerprint
    with pytest.raises(ValueError, match=r"Task\.categories must have a number for each of \d+ inputs"):
        replace(task, categories=(0,))
