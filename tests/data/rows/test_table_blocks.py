"""Tables in blocks: whole rows only, types as of the first rows, texts as they are written."""

import gzip
import io
import zipfile
from pathlib import Path

import polars
import pytest

from umix.data.rows import table_blocks as module
from umix.data.rows.table_blocks import table_blocks
from umix.data.rows.table_file import read_table
from umix.errors import UmixWarning, UserError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BYTES", 64)
    monkeypatch.setattr(module, "_ROWS", 7)


def read(text: str, **options: object) -> list[polars.DataFrame]:
    return list(table_blocks(io.BytesIO(text.encode()), **options))


def test_quoted_line_ends_and_separators_never_divide_a_row() -> None:
    texts = ["a", 'say ""so""', "two\nlines", "a,b", "ä" * 30, "", "\n"]
    rows = [(i, texts[i * i % 11 % 7]) for i in range(200)]
    text = "n,t\n" + "".join(f'{n},"{t}"\n' for n, t in rows)
    blocks = read(text, texts=["t"])
    assert len(blocks) > 20
    assert [n for block in blocks for n in block["n"]] == list(range(200))
    assert [t or "" for block in blocks for t in block["t"]] == [t.replace('""', '"') for _, t in rows]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_line_ends_separators_and_a_byte_order_mark_are_recognised(end: str, separator: str) -> None:
    lines = [separator.join(row) for row in (["a b", '"say ""so"""'], *([str(i), f"{i}.5"] for i in range(40)))]
    whole = polars.concat(read("\ufeff" + (end or "\n").join(lines) + end))
    assert whole.columns == ["a b", 'say "so"']
    assert whole.rows() == [(i, i + 0.5) for i in range(40)]


def test_texts_stay_as_they_are_written_and_copied_numbers_too() -> None:
    text = "zip,id,key\n" + "".join(f"0{i},{i},0{i}\n" for i in range(40))
    blocks = read(text, texts=["zip"], copied="id")
    assert blocks[0].dtypes == [polars.String, polars.Int64, polars.Int64]
    assert [value for block in blocks for value in block["zip"]] == [f"0{i}" for i in range(40)]
    assert [value for block in read(text, copied="key") for value in block["key"]] == [f"0{i}" for i in range(40)]


def test_a_later_value_of_another_type_changes_the_type_of_its_block_only() -> None:
    text = "n\n" + "".join(f"{i}\n" for i in range(100)) + "1.5\nx\n"
    blocks = read(text)
    assert blocks[0]["n"].dtype == polars.Int64
    assert [str(value) for block in blocks for value in block["n"]] == [*map(str, range(100)), "1.5", "x"]


def test_files_and_frames_come_in_blocks_too(tmp_path: Path) -> None:
    frame = polars.DataFrame({"a": range(50), "b": [f"v{i}" for i in range(50)]})
    frame.write_csv(tmp_path / "a.csv")
    frame.write_csv(tmp_path / "a.tsv", separator="\t")
    frame.write_parquet(tmp_path / "a.parquet")
    for table in (
        tmp_path / "a.csv",
        str(tmp_path / "a.tsv"),
        tmp_path / "a.parquet",
        frame,
        io.StringIO(frame.write_csv()),
    ):
        blocks = list(table_blocks(table))
        assert len(blocks) > 3
        assert polars.concat(blocks).equals(frame)
    assert [len(block) for block in table_blocks(frame.head(0))] == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The open file must have a row of column names and rows below it, but it is empty."),
        ("a,a\n1,2\n", "The columns of the open file must have different names, but 'a' is there twice; rename one."),
        (
            "a,b\n1,2\n1,2,3\n",
            "Every row of the open file must have 2 values, but row 2 below the header has 3; look for",
        ),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        read(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_utf_16_and_a_forgotten_quote_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="must be text in UTF-8"):
        list(table_blocks(io.BytesIO("a\nü\n".encode("utf-16"))))
    monkeypatch.setattr(module, "_LONGEST", 500)
    with pytest.raises(UserError, match="but one is longer than"):
        read('a,b\n1,"x\n' + 400 * "1,2\n")


def test_blocks_in_latin_1_are_read_with_a_warning() -> None:
    with pytest.warns(
        UmixWarning, match=r"^The open file is no text in UTF-8 and was read as Windows-1252 \(Latin-1\)"
    ):
        (block,) = table_blocks(io.BytesIO("näme\nMüller\n".encode("latin-1")))
    assert block.to_dict(as_series=False) == {"näme": ["Müller"]}


@pytest.mark.parametrize("ending", [".csv.gz", ".tsv.gz"])
def test_a_packed_table_has_the_blocks_of_the_plain_one(ending: str, tmp_path: Path) -> None:
    text = "a,b\n1,x\n2,y\n" if ending == ".csv.gz" else "a\tb\n1\tx\n2\ty\n"
    (tmp_path / f"t{ending}").write_bytes(gzip.compress(text.encode()))
    (block,) = table_blocks(tmp_path / f"t{ending}")
    assert block.to_dict(as_series=False) == {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize("kind", ["gzip", "zip archive or a spreadsheet", "Parquet"])
def test_files_that_are_no_text_are_called_what_they_are(kind: str, tmp_path: Path) -> None:
    written = io.BytesIO()
    if kind == "gzip":
        written.write(gzip.compress(b"a,b\n1,2\n"))
    elif kind == "Parquet":
        polars.DataFrame({"a": [1]}).write_parquet(written)
    else:
        with zipfile.ZipFile(written, "w") as archive:
            archive.writestr("a.csv", "a,b\n1,2\n")
    with pytest.raises(UserError, match=rf"^The open file must be a table in plain text, but it is .*{kind}.*; "):
        list(table_blocks(io.BytesIO(written.getvalue())))
    (tmp_path / "a.csv").write_bytes(written.getvalue())
    with pytest.raises(UserError, match=rf"a\.csv must be a table in plain text, but it is .*{kind}"):
        read_table(tmp_path / "a.csv")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    class Directory(io.BytesIO):
        name = "<stdin>"

        def read(self, size: int | None = -1) -> bytes:
            raise IsADirectoryError(21, "Is a directory")

    with pytest.raises(UserError, match=r"^Standard input must be a whole csv table, but it cannot be read"):
        list(table_blocks(Directory()))
    with pytest.raises(UserError, match="There is no file"):
        list(table_blocks(tmp_path / "absent.csv"))


def test_a_header_alone_is_a_block_without_rows() -> None:
    for text in ("a,b\n", "a,b"):
        (block,) = read(text)
        assert block.columns == ["a", "b"]
        assert not len(block)
