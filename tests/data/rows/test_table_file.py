"""Tables on disk: what is read is the file that was named, and all of it, within what parsers take."""

import os
from pathlib import Path

import polars
import pytest

from umix.data.rows import table_file
from umix.data.rows.table_file import column_names, read_table, write_table
from umix.errors import UserError


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "arrow"])
@pytest.mark.parametrize("name", ["a[1]", "a*", "a?", "[!b]"])
def test_a_name_is_no_pattern(tmp_path: Path, name: str, suffix: str) -> None:
    for stem in ("a1", "ab", name):
        write_table(polars.DataFrame({"name": [stem]}), tmp_path / f"{stem}.{suffix}")
    path = tmp_path / f"{name}.{suffix}"
    assert read_table(path)["name"].to_list() == [name]
    assert column_names(path) == ["name"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
@pytest.mark.parametrize("kind", ["pipe", "link to nothing", "circle", "folder"])
def test_only_a_file_is_opened(tmp_path: Path, kind: str, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    make = {
        "pipe": lambda: os.mkfifo(path),
        "link to nothing": lambda: path.symlink_to("nowhere"),
        "circle": lambda: path.symlink_to(path.name),
        "folder": path.mkdir,
    }
    make[kind]()
    with pytest.raises(UserError, match=r"^There is no file .*/t\."):
        table_file.check_file(path)


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "a\0b.csv"])
def test_a_name_that_no_file_can_have_is_no_file(name: str) -> None:
    with pytest.raises(UserError, match=r"^There is no file "):
        read_table(Path(name))


BAD = {
    "utf-16 without a mark": ("x,y\n1,2\n".encode("utf-16-le"), "must be text in UTF-8, but it is not"),
    "a row too long": (b"x,y\n1,a\n2,b\n3,c,d\n", "must have 2 values, but row 3 below the header has 3;"),
    "a quote never closed": (b'x,y\n1,a\n2,"b\n3,c\n', "cannot be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_text_table_that_is_not_whole_is_refused(tmp_path: Path, case: str) -> None:
    content, sentence = BAD[case]
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_table(tmp_path / "t.csv")
    assert sentence in str(caught.value)


def test_a_panic_of_polars_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(source: str) -> polars.DataFrame:
        raise polars.exceptions.PanicException("called unwrap")

    (tmp_path / "t.arrow").write_bytes(b"ARROW1")
    monkeypatch.setattr(polars, "read_ipc", panic)
    with pytest.raises(UserError, match=r"t\.arrow must be a whole arrow table, but it cannot be read \(called unwrap"):
        read_table(tmp_path / "t.arrow")


@pytest.mark.parametrize("last", [b'2,"b\nb",3', b'2,"b,b",3', b"2,b,3"], ids=["line", "comma", "plain"])
@pytest.mark.parametrize("many", [1, 9_000], ids=["short", "long"])
def test_the_last_row_needs_no_line_end(tmp_path: Path, last: bytes, many: int) -> None:
    (tmp_path / "t.csv").write_bytes(b"x,y,z\n" + b'1,"a, a\na",2\n' * many + last)
    assert len(read_table(tmp_path / "t.csv")) == many + 1


@pytest.mark.parametrize(
    "content",
    ["a" * 140_000 + ",y\n1,2\n", '"' + "a" * 140_000, '"a,b\n' + "1,2\n" * 40_000],
    ids=["a long name", "an open quote", "an open quote before rows"],
)
def test_a_name_longer_than_128_kib_is_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "people.csv").write_text(content)
    for read in (column_names, read_table):
        with pytest.raises(
            UserError, match=r"people\.csv must be a table, but one of its rows cannot be read .* quote"
        ):
            read(tmp_path / "people.csv")
