"""TOML from people: every way to be unreadable ends in one sentence."""

from pathlib import Path

import pytest

from umix.commands.flags import parse_settings
from umix.errors import UserError
from umix.toml_text import parse_value, read_toml


def test_a_value_of_several_lines_is_a_text_and_sets_nothing_else() -> None:
    assert parse_value("1\nb = 2") == "1\nb = 2"
    assert parse_settings(("a=1\n[net]\nname='own:make'",)) == {"a": "1\n[net]\nname='own:make'"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a = \xff", "utf-8"),
        (b"a = 1\na = 2\n", "Cannot overwrite"),
    ],
    ids=["not UTF-8", "a key twice"],
)
def test_a_file_that_cannot_be_read_is_said_with_its_name(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"The study .*study\.toml must be TOML, .*{reason}"):
        read_toml(path, what="study")


def test_a_folder_or_nothing_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no study at"):
        read_toml(tmp_path / "nowhere.toml", what="study")
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        read_toml(tmp_path, what="study")
