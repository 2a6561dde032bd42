from pathlib import Path

import pytest

from umix.errors import UserError
from umix.exports.described import MARK
from umix.exports.written_files import whole_folder, write_all


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


def test_the_folder_before_stays_where_the_new_one_cannot_take_its_place(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.mkdir()
    (path / "it").write_text(f"first {MARK}")
    with pytest.raises(FileNotFoundError), whole_folder(path, marked="it"):
        pass  # nothing was made
    assert (path / "it").read_text() == f"first {MARK}"


def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="it holds something else"), whole_folder(tmp_path, marked="it"):
        pass
    with pytest.raises(UserError, match="it is a file"), whole_folder(tmp_path / "notes.txt", marked="it"):
        pass
