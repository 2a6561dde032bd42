"""Tables on disk: what is read is the file that was named, and all of it, within what parsers take."""

import gzip
import os
import sys
import zipfile
from pathlib import Path

import polars
import pytest

from umix.data.rows import table_file
from umix.data.rows.table_file import column_names, read_table, write_table
from umix.errors import UmixWarning, UserError


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


def test_a_packed_table_is_read_like_the_plain_one_and_called_like_it(tmp_path: Path) -> None:
    content = b"x,y\n1,a\n" + b"2.5,b\n" * 3
    (tmp_path / "t.csv").write_bytes(content)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
    assert read_table(tmp_path / "t.csv.gz").equals(read_table(tmp_path / "t.csv"))
    assert column_names(tmp_path / "t.csv.gz") == ["x", "y"]
    assert table_file.table_title(tmp_path / "t.csv.gz") == "t"


@pytest.mark.parametrize("read", [read_table, column_names])
def test_a_packed_table_that_was_cut_is_refused_in_one_sentence(read: object, tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"x,y\n1,a\n")[:-9])
    with pytest.raises(UserError, match=r"t\.csv\.gz must be a whole csv\.gz table, but it cannot be read"):
        read(tmp_path / "t.csv.gz")  # type: ignore[operator]


@pytest.mark.parametrize("first", [b"", b"1,a\n" * 20_000], ids=["at once", "late"])
def test_latin_1_is_read_with_a_warning_that_says_so(tmp_path: Path, first: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(b"x,y\n" + first + "Müller,“é”\n".encode("cp1252"))
    with pytest.warns(UmixWarning, match=r"t\.csv is no text in UTF-8 and was read as Windows-1252 \(Latin-1\); if"):
        frame = read_table(tmp_path / "t.csv")
    assert frame.row(-1) == ("Müller", "“é”")


def test_names_of_columns_in_latin_1_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("größe,y\n1,a\n".encode("latin-1"))
    with pytest.warns(UmixWarning, match="Windows-1252"):
        assert column_names(tmp_path / "t.csv") == ["größe", "y"]
    with pytest.warns(UmixWarning, match="Windows-1252"):
        assert read_table(tmp_path / "t.csv").columns == ["größe", "y"]


def test_what_is_no_text_in_any_of_these_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("x,y\nü,a\n".encode("utf-16"))
    with pytest.raises(UserError, match=r"must be text in UTF-8, but it is not; save it again as UTF-8"):
        read_table(tmp_path / "t.csv")


def test_a_spreadsheet_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastexcel", None)  # as if it were not installed
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(UserError, match=r"fastexcel, which is not installed: pip install 'umix\[excel\]'"):
        read_table(tmp_path / "t.xlsx")


_SHEET = {
    "[Content_Types].xml": (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
    ),
    "_rels/.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r0" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
        '<sheets><sheet name="people" sheetId="1" r:id="r1"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>'
    ),
}


@pytest.mark.system
def test_the_first_sheet_of_a_spreadsheet_is_a_table(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    rows = [("x", "y"), (1, "a"), (2, "b")]
    cells = [
        "".join(f"<c><v>{v}</v></c>" if isinstance(v, int) else f'<c t="str"><v>{v}</v></c>' for v in row)
        for row in rows
    ]
    sheet = "".join(f"<row>{row}</row>" for row in cells)
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        for name, content in _SHEET.items():
            archive.writestr(name, content)
        archive.writestr(
            "xl/worksheets/sheet1.xml",
            '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
            f"<sheetData>{sheet}</sheetData></worksheet>",
        )
    assert read_table(tmp_path / "t.xlsx").rows() == [(1, "a"), (2, "b")]
    assert column_names(tmp_path / "t.xlsx") == ["x", "y"]
    (tmp_path / "broken.xlsx").write_bytes((tmp_path / "t.xlsx").read_bytes()[:60])
    with pytest.raises(UserError, match=r"broken\.xlsx must be a whole xlsx table, but it cannot be read"):
        read_table(tmp_path / "broken.xlsx")
