from pathlib import Path

import pytest

from umix.errors import UserError
from umix.exports.exported import MARK, format_of, whole_folder, write_all


@pytest.mark.parametrize(
    ("output", "format"),
    [("a.onnx", "onnx"), ("A.PT2", "pt2"), ("a.safetensors", "state_dict"), ("README.md", "card"), ("a", "state_dict")],
)
def test_the_suffix_decides_the_format(output: str, format: str) -> None:
    assert format_of(Path(output)) == format
    assert format_of(Path(output), format) == format


def test_an_existing_folder_is_a_folder_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "model.v2").mkdir()
    assert format_of(tmp_path / "model.v2") == "state_dict"
    assert format_of(tmp_path / "model.v2", "mlflow") == "mlflow"


def test_unknown_suffixes_and_formats_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"must end in \.onnx, \.pt2, \.safetensors or \.md, or be a folder .* got 'a\.h5'"
    ):
        format_of(Path("a.h5"))
    with pytest.raises(UserError, match=r"must end in \.onnx for the format onnx, got 'a\.pt2'"):
        format_of(Path("a.pt2"), "onnx")
    with pytest.raises(UserError, match=r"must be a folder without a suffix for the format mlflow, got 'a\.onnx'"):
        format_of(Path("a.onnx"), "mlflow")
    with pytest.raises(UserError, match=r"Unknown format of an exported model 'onxx'; did you mean 'onnx'"):
        format_of(Path("a.onnx"), "onxx")


def test_a_file_that_was_exported_before_is_replaced_and_any_other_is_not(tmp_path: Path) -> None:
    ours, other = tmp_path / "ours.md", tmp_path / "other.md"
    ours.write_text(f"first {MARK}")
    other.write_text("mine")
    with pytest.raises(
        UserError, match=r"other\.md must be a new file or one that was exported before, but it is another"
    ):
        write_all({ours: b"second", other: b"second"})
    assert (ours.read_text(), other.read_text()) == (f"first {MARK}", "mine")
    write_all({ours: b"second", tmp_path / "new" / "file": b"third"})
    assert (ours.read_bytes(), (tmp_path / "new" / "file").read_bytes()) == (b"second", b"third")


def test_an_empty_file_and_a_folder_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(UserError, match="it is another file"):
        write_all({tmp_path / "empty": b""})
    with pytest.raises(UserError, match="it is a folder"):
        write_all({tmp_path: b""})


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "model"

    def interrupted() -> None:
        with whole_folder(path, marked="it") as folder:
            folder.mkdir()
            (folder / "it").write_text(MARK)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    for content in ("first", "second"):  # the second takes the place of the first
        with whole_folder(path, marked="it") as folder:
            folder.mkdir()
            (folder / "it").write_text(f"{content} {MARK}")
        assert (path / "it").read_text() == f"{content} {MARK}"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="it holds something else"), whole_folder(tmp_path, marked="it"):
        pass
    with pytest.raises(UserError, match="it is a file"), whole_folder(tmp_path / "notes.txt", marked="it"):
        pass
