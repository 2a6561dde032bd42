"""Tables of one's own: from a file or a frame to a task."""

import datetime
from pathlib import Path

import numpy as np
import polars
import pytest
import torch

from umix import task_from_table
from umix.data.registry import READERS
from umix.data.tables.preprocessing import one_hot
from umix.data.tables.source import TableSource
from umix.errors import UserError

N = 120


def people(n: int = N, **columns: object) -> polars.DataFrame:
    """A table with every kind of column; age decides the label most of the time."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, n)
    start = datetime.date(2020, 1, 1)
    return polars.DataFrame(
        {
            "age": age,
            "height": [None if i % 10 == 0 else 150.0 + i % 40 for i in range(n)],
            "member": [i % 3 == 0 for i in range(n)],
            "job": [["clerk", "smith", None, "?"][i % 4] for i in range(n)],
            "since": [start + datetime.timedelta(days=7 * (i % 90)) for i in range(n)],
            "sex": [["f", "m"][i % 2] for i in range(n)],
            "race": [["a", "b", "c"][i % 3] for i in range(n)],
            "income": ["high" if a > 50 else "low" for a in age],
            **columns,
        }
    )


def written(frame: polars.DataFrame, path: Path) -> Path:
    match path.suffix:
        case ".csv":
            frame.write_csv(path)
        case ".tsv":
            frame.write_csv(path, separator="\t")
        case ".parquet":
            frame.write_parquet(path)
        case ".jsonl" | ".ndjson":
            frame.write_ndjson(path)
        case _:
            frame.write_ipc(path)
    return path


@pytest.mark.parametrize("suffix", ["tsv", "parquet", "jsonl", "ndjson", "arrow", "feather"])
def test_every_format_gives_the_task_of_the_csv(tmp_path: Path, suffix: str) -> None:
    frame = people(60).drop("job").with_columns(polars.col("since").cast(polars.String))
    csv, other = written(frame, tmp_path / "people.csv"), written(frame, tmp_path / f"people.{suffix}")
    options = {"label": "income", "groups": "sex", "drop": "since"}
    assert task_from_table(other, **options).fingerprint == task_from_table(csv, **options).fingerprint


def test_polars_and_pandas_frames_give_the_same_task() -> None:
    pandas = pytest.importorskip("pandas")
    frame = people(60)
    columns = {name: frame[name].to_list() for name in frame.columns}
    columns["since"] = pandas.to_datetime(columns["since"])
    ours = task_from_table(frame, label="income", groups=["sex"])
    theirs = task_from_table(pandas.DataFrame(columns), label="income", groups=["sex"])
    assert theirs.fingerprint == ours.fingerprint


def test_pandas_columns_of_mixed_nullable_and_zoned_types_are_inputs() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "mixed": [["a", 1, None][i % 3] for i in range(60)],
            "whole": pandas.array([None if i % 5 == 0 else i for i in range(60)], dtype="Int64"),
            "when": pandas.date_range("2020-01-01", periods=60, tz="Europe/Berlin"),
            "took": pandas.to_timedelta(range(60), unit="h"),
            "kind": pandas.Categorical(["p", "q"] * 30),
            "y": [True, False, False] * 20,
        }
    )
    task = task_from_table(frame, label="y", groups="kind")
    assert task.classes == ("false", "true")
    assert task.groups == ("y=false, p", "y=false, q", "y=true, p", "y=true, q")
    assert task.preprocessing.types == {
        "mixed": "category",
        "whole": "number",
        "when": "date",
        "took": "number",
        "kind": "category",
    }


def test_inputs_of_nets_are_finite_standardised_float32_without_the_label() -> None:
    task = one_hot(task_from_table(people(), label="income", groups=["sex", "race"], drop=["member"]))
    x = task.splits["train"].x
    assert x.dtype == torch.float32
    assert torch.isfinite(x).all()
    assert task.preprocessing.columns == ["age", "height", "job", "since", "sex", "race"]
    assert float(x[:, 0].mean()) == pytest.approx(0, abs=1e-5)
    assert float(x[:, 0].std(correction=0)) == pytest.approx(1, abs=1e-5)


def test_what_was_learned_is_learned_from_training_rows_alone() -> None:
    split = ["train"] * 80 + ["val"] * 20 + ["test"] * 20
    frame = people(split=split)
    strange = frame.with_columns(age=polars.when(polars.col("split") == "test").then(10**6).otherwise("age"))
    options = {"label": "income", "split": "split"}
    first, second = (one_hot(task_from_table(table, **options)) for table in (frame, strange))
    assert torch.equal(first.splits["train"].x, second.splits["train"].x)
    assert float(second.splits["test"].x.max()) == 10  # cut at ten deviations


def test_groups_are_label_and_every_combination_that_occurs() -> None:
    frame = people().filter(~((polars.col("sex") == "f") & (polars.col("race") == "b")))
    task = task_from_table(frame, label="income", groups=["sex", "race"])
    assert task.groups[:5] == ("high, f, a", "high, f, c", "high, m, a", "high, m, b", "high, m, c")
    assert len(task.groups) == 10
    for split in task.splits.values():
        assert split.groups.disjoint
        assert torch.equal(split.group, split.y * 5 + split.attribute)


def test_a_blank_group_is_not_known_and_numbers_carry_their_columns_name() -> None:
    frame = people(old=[[0, 1, None][i % 3] for i in range(N)])
    task = task_from_table(frame, label="income", groups="old")
    assert task.groups == ("high, old=0", "high, old=1", "low, old=0", "low, old=1")
    blank = sum(int((~split.member.any(dim=1)).sum()) for split in task.splits.values())
    assert blank == sum(value is None for value in frame["old"])
    assert sum(len(split) for split in task.splits.values()) == N
    assert any(note.startswith(f"{blank} rows have no group (blank in old): used in training") for note in task.notes)
    with pytest.raises(UserError, match="must be known here, but it is not for"):
        task.splits["train"].group  # noqa: B018 — raises


def test_a_blank_can_be_a_group_of_its_own() -> None:
    frame = people(old=[[0, 1, None][i % 3] for i in range(N)])
    task = task_from_table(frame, label="income", groups="old", blanks="group")
    assert task.groups[:3] == ("high, old=0", "high, old=1", "high, old=missing")


def test_a_group_column_that_is_blank_everywhere_is_refused() -> None:
    with pytest.raises(UserError, match="must be known in some row, but old is blank in all"):
        task_from_table(people(old=[None] * N), label="income", groups="old")


def test_no_group_columns_make_no_groups() -> None:
    task = task_from_table(people(), label="income")
    assert task.groups == ()
    assert task.splits["val"].member.shape == (len(task.splits["val"]), 0)
    with pytest.raises(UserError, match="needs groups, but the task has none"):
        task.splits["train"].group  # noqa: B018


def test_the_random_split_keeps_every_groups_share_and_depends_on_its_seed() -> None:
    options = {"label": "income", "groups": "sex"}
    task = task_from_table(people(1000), **options)
    sizes = {name: split.groups.sizes for name, split in task.splits.items()}
    assert {name: int(size.sum()) for name, size in sizes.items()} == pytest.approx(
        {"train": 600, "val": 200, "test": 200}, abs=4
    )
    assert torch.allclose(sizes["val"] / sizes["train"], torch.tensor(1 / 3), atol=0.02)
    assert task_from_table(people(1000), **options, data_seed=1).fingerprint != task.fingerprint
    assert task_from_table(people(1000), **options).fingerprint == task.fingerprint


@pytest.mark.parametrize("codes", [("train", "val", "test"), ("Train", "dev", "TEST"), (0, 1, 2), (0.0, 1.0, 2.0)])
def test_a_split_column_is_kept(codes: tuple[object, ...]) -> None:
    rows = [codes[0]] * 70 + [codes[1]] * 30 + [codes[2]] * 20
    task = task_from_table(people(where=rows), label="income", split="where")
    assert [len(task.splits[name]) for name in ("train", "val", "test")] == [70, 30, 20]
    assert "where" not in task.preprocessing.columns


def test_without_val_a_part_of_train_is_taken_and_said_so() -> None:
    task = task_from_table(people(where=["train"] * 100 + ["test"] * 20), label="income", split="where")
    assert [len(task.splits[name]) for name in ("train", "val", "test")] == [80, 20, 20]
    assert any("names no val: 20% of train was taken" in note for note in task.notes)


def test_a_weight_column_counts_training_rows_and_is_no_input() -> None:
    frame = people(split=["train"] * 80 + ["val"] * 20 + ["test"] * 20).with_columns(
        count=polars.Series([None if i >= 80 else i % 4 for i in range(N)])
    )
    task = task_from_table(frame, label="income", split="split", weight="count")
    assert task.splits["train"].weight.tolist() == pytest.approx([i % 4 / 1.5 for i in range(80)])
    assert task.splits["val"].weight is None
    assert "count" not in task.preprocessing.columns
    assert "Training rows count by 'count'; all rates count every row once." in task.notes
    plain = task_from_table(frame.drop("count"), label="income", split="split")
    assert plain.splits["train"].x.shape == task.splits["train"].x.shape
    assert plain.fingerprint != task.fingerprint


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            [-1.0] + [1.0] * (N - 1),
            r"at least 0 in every training row, got -1.0 in row 0 \(counted from 0\); 1 of 80 are",
        ),
        ([1.0, None, float("inf")] + [1.0] * (N - 3), r"got None in row 1 \(counted from 0\); 2 of 80 are"),
        ([0] * N, "must be above 0 in some training row, but it is 0 in all"),
        (["much"] * N, "must be a number in every training row, got String"),
    ],
    ids=["negative", "missing", "zero", "text"],
)
def test_weights_that_count_nothing_are_refused(weight: list[object], message: str) -> None:
    frame = people(w=polars.Series(weight, strict=False), split=["train"] * 80 + ["val"] * 20 + ["test"] * 20)
    with pytest.raises(UserError, match=message):
        task_from_table(frame, label="income", split="split", weight="w")


def test_a_file_that_must_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people().write_csv(tmp_path / "people.csv")

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", forbidden)
    with pytest.raises(
        UserError, match=r"people\.csv must be a file that can be read, but it cannot: Permission denied\.$"
    ):
        TableSource(path=tmp_path / "people.csv", label="income").check_files()


def test_constant_columns_are_left_out_and_said_so() -> None:
    frame = people(country=["x"] * N, nothing=polars.Series([None] * N, dtype=polars.Int64))
    task = task_from_table(frame, label="income")
    assert "Constant in training and left out: country, nothing." in task.notes
    assert task.splits["train"].x.shape == task_from_table(people(), label="income").splits["train"].x.shape


def test_notes_name_identifiers_and_groups_too_small_to_judge() -> None:
    task = task_from_table(people(number=range(N)), label="income", groups=["sex", "race"])
    assert any("'number' is different in every row" in note for note in task.notes)
    assert any("12 of 12 groups have fewer than 30 rows in val or test" in note for note in task.notes)


def test_texts_of_many_values_numbers_as_texts_and_odd_types_are_inputs() -> None:
    frame = people(
        300,
        name=[f"person {i} of {i % 7}" for i in range(300)],
        digits=["?" if i % 9 == 0 else str(i) for i in range(300)],
        hour=[datetime.time(i % 24) for i in range(300)],
        took=[datetime.timedelta(minutes=i) for i in range(300)],
        price=polars.Series([i / 4 for i in range(300)]).cast(polars.Decimal(10, 2)),
        kind=polars.Series([["p", "q"][i % 2] for i in range(300)], dtype=polars.Categorical),
    )
    task = task_from_table(frame.drop("age", "height"), label="income")
    assert task.splits["train"].x.shape[1] > 30
    assert all(torch.isfinite(split.x).all() for split in one_hot(task).splits.values())


def test_three_thousand_classes_need_no_matrix_of_examples_by_classes() -> None:
    label = [f"class {i // 3}" for i in range(9000)]
    task = task_from_table(polars.DataFrame({"x": range(9000), "y": label}), label="y")
    assert task.n_classes == 3000
    assert len(torch.unique(task.splits["train"].y)) == 3000


def test_the_files_content_decides_the_source_and_its_folder_does_not(tmp_path: Path) -> None:
    first = written(people(), tmp_path / "people.csv")
    (tmp_path / "elsewhere").mkdir()
    second = written(people(), tmp_path / "elsewhere" / "people.csv")
    options = {"label": "income"}
    before = TableSource(path=first, **options).as_json()
    assert before == TableSource(path=second, **options).as_json()
    written(people(121), first)
    assert TableSource(path=first, **options).content != before["content"]


def test_semicolons_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = people(60).drop("since").write_csv(separator=";").replace("\n", "\r\n")
    (tmp_path / "people.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    task = task_from_table(tmp_path / "people.csv", label="income", groups="sex")
    assert task.preprocessing.columns == ["age", "height", "member", "job", "sex", "race"]
    assert task.groups == ("high, f", "high, m", "low, f", "low, m")


def test_a_column_that_changes_its_type_late_is_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "late.csv").write_text("x,y\n" + "1,a\n2,b\n" * 6000 + "three,a\n" * 3)
    assert task_from_table(tmp_path / "late.csv", label="y").preprocessing.columns == ["x"]


BAD_FRAMES = {
    "unknown label": (people(), {"label": "incom"}, "Unknown label column of table 'incom'; did you mean 'income'?"),
    "unknown group": (people(), {"label": "income", "groups": "sexe"}, "did you mean 'sex'?"),
    "unknown drop": (people(), {"label": "income", "drop": "agee"}, "did you mean 'age'?"),
    "two roles": (people(), {"label": "income", "groups": "income"}, "'income' must have one role"),
    "one class": (people(income=["low"] * N), {"label": "income"}, "must have at least two classes"),
    "quantity": (people(income=[i / 7 for i in range(N)]), {"label": "income"}, "like a quantity"),
    "many numbers": (people(1000, income=[i % 101 for i in range(1000)]), {"label": "income"}, "101 distinct values"),
    "names": (people(income=[f"n{i}" for i in range(N)]), {"label": "income"}, "like a quantity"),
    "missing labels": (people(income=["low", "high", None, "?"] * 30), {"label": "income"}, "is missing in 60 of 120"),
    "empty": (people().head(0), {"label": "income"}, "must have rows, but it is empty"),
    "no inputs": (people().select("income"), {"label": "income"}, "but none is left"),
    "all constant": (people().select("income", x=1), {"label": "income"}, "but all are constant"),
    "odd split": (
        people(s=["train"] * 119 + ["tset"]),
        {"label": "income", "split": "s"},
        "but 1 of 120 do not; the first says 'tset'",
    ),
    "no test": (people(s=["train", "val"] * 60), {"label": "income", "split": "s"}, "but test has none"),
    "class not in train": (
        people(s=["test"] + ["train"] * 119, income=["odd"] + ["a", "b", "c"] * 39 + ["a", "b"]),
        {"label": "income", "split": "s"},
        "The split train must have every class, but it has no row of 'odd'",
    ),
    "nameless": (people().rename({"age": " "}), {"label": "income"}, "must have a name, but column 1 has none"),
    "group twice": (people(), {"label": "income", "groups": "sex,sex"}, "must be named once, got 'sex' twice"),
    "dropped label": (people(), {"label": "income", "drop": "income"}, "'income' must have one role"),
    "lists": (people(x=[[1, 2]] * N), {"label": "income"}, "'x' must hold numbers, texts or dates"),
    "many groups": (people(1200, g=range(1200)), {"label": "income", "groups": "g"}, "must make at most 1000 groups"),
    "many values beside a blank": (
        people(1200, g=[None, "a"] * 600, h=[f"h{i // 2 * (1 - i % 2)}" for i in range(1200)]),
        {"label": "income", "groups": "g,h"},
        "must make at most 1000 groups, got 2 classes × 600 values of g, h",
    ),
    "share": (people(), {"label": "income", "val_share": 0.9}, "task.val_share must be a number in (0, 0.5)"),
    "tiny": (people(3), {"label": "sex"}, "must have rows, but it is empty; the table is too small"),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_a_table_that_cannot_be_a_task_is_refused_in_one_sentence(case: str) -> None:
    frame, options, sentence = BAD_FRAMES[case]
    with pytest.raises(UserError) as caught:
        task_from_table(frame, **options)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


BAD_FILES = {
    "twice.csv": (b"x,y,x\n1,a,2\n", "'x' is there twice"),
    "empty.csv": (b"", "but it is empty"),
    "header.csv": (b"x,y\n", "must have rows, but it is empty"),
    "ragged.csv": (b"x,y\n1,a\n2,b,c,d\n", "must have 2 values, but row 2 below the header has 4"),
    "broken.parquet": (b"PAR1 not", "must be a whole parquet table"),
    "broken.jsonl": (b'{"x": 1, "y": ', "must be a whole jsonl table"),
    "broken.arrow": (b"ARROW", "must be a whole arrow table"),
    "sheet.ods": (b"PK", "A table must end in one of .csv"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_cannot_be_read_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    content, sentence = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        task_from_table(tmp_path / name, label="y")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_something_else_than_a_table_is_refused() -> None:
    with pytest.raises(UserError, match="must be a path, a polars or a pandas frame, got list"):
        task_from_table([1, 2], label="y")
    with pytest.raises(UserError, match=r"There is no file nowhere\.csv"):
        task_from_table("nowhere.csv", label="y")


def test_a_quoted_column_name_is_what_csv_says_it_is(tmp_path: Path) -> None:
    path = tmp_path / "quoted.csv"
    rows = "\n".join(f"{k},{'a' if k % 2 else 'b'},{'no' if k % 4 < 2 else 'yes'}" for k in range(60))
    path.write_text('x,"ci,ty ""x""",y\n' + rows)
    task = task_from_table(path, label="y", groups=['ci,ty "x"'])
    assert task.groups == ("no, a", "no, b", "yes, a", "yes, b")


FOLDS = polars.DataFrame(
    {
        "age": range(24),
        "sex": ["f", "m"] * 12,
        "rich": ["no", "no", "yes", "yes"] * 5 + ["odd", "", "odd", ""],
        "fold": ["A"] * 8 + ["b"] * 4 + ["C"] * 8 + ["d"] * 4,
    }
)


def test_split_values_say_which_value_is_which_split_and_other_rows_are_left_out_and_said():
    task = task_from_table(FOLDS, label="rich", groups="sex", split="fold", split_values="train=a, train=b, test=c")
    assert task.classes == ("no", "yes")  # what only rows that are left out say is no class
    assert sum(len(task.splits[name]) for name in ("train", "val")) == 12
    assert task.splits["test"].origin.tolist() == list(range(12, 20))
    assert [task.classes[y] for y in task.splits["test"].y] == ["no", "no", "yes", "yes"] * 2
    assert task.splits["test"].groups.sizes.tolist() == [2, 2, 2, 2]
    assert any("4 rows left out, whose 'fold' is none of a, b, c." in note for note in task.notes)


def test_split_values_of_all_rows_change_nothing_but_the_names():
    named = FOLDS[:20].with_columns(fold=polars.Series(["train"] * 8 + ["val"] * 4 + ["test"] * 8))
    plain = task_from_table(named, label="rich", groups="sex", split="fold")
    said = task_from_table(FOLDS[:20], label="rich", groups="sex", split="fold", split_values="train=A,val=b,test=C")
    assert said.fingerprint == plain.fingerprint


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"split": "fold"}, "say which value is which split with split_values=train=A,val=B,test=C"),
        ({"split_values": "train=a,test=b"}, "^split_values= must go with split=, which is not given"),
        ({"split": "fold", "split_values": "train=a,val=b"}, r"^split_values= must name a value for test, got"),
        ({"split": "fold", "split_values": "train=a,test=a"}, "each once"),
        ({"split": "fold", "split_values": "train=a,dev=b,test=c"}, "must name values of the split column"),
        ({"split": "fold", "split_values": "a"}, "must name values of the split column"),
        ({"split": "fold", "split_values": "train=a,test=q"}, r"but test \(q\) has none"),
    ],
)
def test_split_values_that_cannot_be_used_are_one_sentence(options, sentence):
    with pytest.raises(UserError, match=sentence):
        task_from_table(FOLDS, label="rich", **options)


def with_comma(frame: polars.DataFrame, *names: str) -> polars.DataFrame:
    """The columns ``names`` as texts with a decimal comma."""
    return frame.with_columns(polars.col(*names).cast(polars.String).str.replace(".", ",", literal=True))


def measured(n: int = N) -> polars.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(90, 10, n).round(1)
    y = np.where(x + rng.normal(0, 3, n) > 90, "high", "low")
    load = [None if i % 7 == 0 else v for i, v in enumerate(rng.normal(1000, 600, n).round(2).tolist())]
    return polars.DataFrame({"x": x, "load": load, "weight": rng.random(n).round(3), "y": y})


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl", "arrow"])
def test_a_decimal_comma_gives_the_task_of_a_decimal_point(tmp_path: Path, suffix: str) -> None:
    options = {"label": "y", "weight": "weight"}
    expected = task_from_table(measured(), **options)
    path = written(with_comma(measured(), "x", "load", "weight"), tmp_path / f"a.{suffix}")
    task = task_from_table(path, **options)
    assert task.fingerprint == expected.fingerprint
    assert task.notes == expected.notes  # nothing is taken for an identifier
    task.preprocessing.save(tmp_path)
    reader = READERS["table"].load(tmp_path)
    assert np.array_equal(reader.inputs(path).x, expected.preprocessing.inputs(measured()).x, equal_nan=True)


def test_thousands_semicolons_quotes_gaps_and_a_byte_order_mark_beside_decimal_commas(tmp_path: Path) -> None:
    rows = "".join(
        f'"{i % 9}.00{i % 7},5";{["NA", "", "?", "1,25", " 2,5"][i % 5]};{"ab"[i % 2]}\r\n' for i in range(60)
    )
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + f"load;x;y\r\n{rows}".encode())
    task = task_from_table(tmp_path / "a.csv", label="y")
    row = task.splits["train"].origin[0]
    assert task.preprocessing.kinds == {"load": "decimal_comma", "x": "decimal_comma"}
    assert task.splits["train"].x[0, 0] == row % 9 * 1000 + row % 7 + 0.5
    assert task.preprocessing.inputs(tmp_path / "a.csv").notes == ()


def test_new_rows_are_read_with_the_comma_of_training(tmp_path: Path) -> None:
    reader = task_from_table(with_comma(measured(), "x"), label="y", drop="load").preprocessing
    (tmp_path / "new.csv").write_text('x;weight\n"1.234,5";1\n7;1\n1.234;1\n89.8;1\nNA;1\n')
    (block,) = reader.blocks(tmp_path / "new.csv")
    numbers = polars.DataFrame({"x": [1234.5, 7.0, None, None, None], "weight": [1] * 5})
    assert np.array_equal(block.x, reader.inputs(numbers).x, equal_nan=True)
    (note,) = block.notes  # a point in place of the comma is not read as something else
    assert str(note) == "2 values of 'x' could not be read as numbers ('1.234', '89.8'): treated as missing."


def test_blanks_around_numbers_do_not_make_them_texts(tmp_path: Path) -> None:
    header, _, rows = measured().select("y", "load", "weight", "x").write_csv().partition("\n")
    (tmp_path / "a.csv").write_text(f"{header}\n{rows.replace(',', ', ')}")
    task = task_from_table(tmp_path / "a.csv", label="y", weight="weight")
    assert (
        task.fingerprint
        == task_from_table(measured().select("load", "x", "weight", "y"), label="y", weight="weight").fingerprint
    )
