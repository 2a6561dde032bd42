"""TOML from people: every way to be unreadable ends in one sentence."""

from pathlib import Path

import pytest

from umix.cli import main
from umix.commands.flags import parse_settings
from umix.errors import UserError
from umix.toml_text import parse_toml, parse_value, read_toml


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = " + 1000 * "[" + 1000 * "]", "at most 32 deep"),
        ("a = " + 100_000 * "[", "at most 32 deep"),
        ("a = " + 100 * "[" + 100 * "]", "at most 32 deep"),
        (".".join(100 * "a") + " = 1", "at most 32 deep"),
        (" . ".join(100_000 * "a") + " = 1", "at most 32 deep"),
        ("[" + ".".join(100_000 * "a") + "]", "at most 32 deep"),
        ("a = " + 5000 * "9", "within 64 bits"),
        ("a = [9223372036854775808]", "within 64 bits"),
        ("a = 1979-05-27", "a date or a time"),
    ],
    ids=[
        "1,000 levels",
        "levels without an end",
        "100 levels",
        "a key of 100 parts",
        "a key of 100,000 parts",
        "a table of 100,000 parts",
        "5,000 digits",
        "2**63",
        "a date",
    ],
)
def test_what_no_setting_can_be_is_a_value_error_with_a_short_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        parse_toml(text)
    assert len(str(caught.value)) < 100


def test_many_numbers_with_dots_are_no_key_of_many_parts() -> None:
    assert len(parse_toml("a = [" + "0.5, " * 2000 + "]")["a"]) == 2000


def test_a_value_of_several_lines_is_a_text_and_sets_nothing_else() -> None:
    assert parse_value("1\nb = 2") == "1\nb = 2"
    assert parse_settings(("a=1\n[net]\nname='own:make'",)) == {"a": "1\n[net]\nname='own:make'"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a = \xff", "utf-8"),
        (b"# " + 2**20 * b"x", "smaller than 1 MB"),
        (b"a = 1\na = 2\n", "Cannot overwrite"),
    ],
    ids=["not UTF-8", "a large file", "a key twice"],
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


def test_a_number_of_5000_digits_on_the_command_line_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "four_moons", "erm", "--set", f"net.hidden={5000 * '9'}"]) == 2
    assert capsys.readouterr().err == (
        "umix: --set net.hidden must be given a value that can be read, but a whole number must lie within 64 bits.\n"
    )
