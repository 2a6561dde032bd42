"""Errors name settings; the command line shows the flags that set them."""

import ast
import re
from pathlib import Path

import pytest

import umix
from umix.cli import app, main
from umix.commands.flags import _OTHER, _SAME, as_flag
from umix.errors import Setting, UserError

SOURCE = Path(umix.__file__).parent
#: Commands speak of their own flags. Two files write whole command lines for people to copy; in LaTeX ``--`` is a dash.
MAY_NAME_FLAGS = {
    "commands",
    "reports/sentences.py",
    "bench/search/optuna_study.py",
    "reports/tables/text_table.py",
}
#: A flag in a text, or its beginning in the first part of an f-string.
FLAG = re.compile(r"--[a-z]|(^|[^-])--$")


def literals(path: Path) -> list[str]:
    """All texts in a file's code; docstrings are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node.value for node in texts if id(node) not in docstrings]


def test_no_message_outside_of_the_commands_names_a_flag() -> None:
    naming = {}
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if place not in MAY_NAME_FLAGS and place.partition("/")[0] not in MAY_NAME_FLAGS:
            naming[place] = [text for text in literals(path) if FLAG.search(text)]
    assert {place: texts for place, texts in naming.items() if texts} == {}


def test_every_flag_that_an_error_may_show_exists() -> None:
    commands = [app[name] for name in app if not name.startswith("-")]
    flags = {
        flag for command in commands for argument in command.assemble_argument_collection() for flag in argument.names
    }
    shown = {as_flag(Setting(name)) for name in (*_OTHER, *_SAME)}
    assert shown - flags == set()


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (Setting("label"), "--label"),
        (Setting("drop", "city"), "--drop city"),
        (Setting("allow_subset", "True"), "--allow-subset"),
        (Setting("path_column"), "--path"),
        (Setting("net.weights", "FILE"), "--set net.weights=FILE"),
    ],
    ids=str,
)
def test_a_setting_is_shown_as_its_flag_or_with_set(setting: Setting, text: str) -> None:
    assert as_flag(setting) == text


def test_the_command_line_and_python_say_the_same_in_their_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,income\n1,low\n2,high\n")
    with pytest.raises(UserError, match=r"^people\.csv needs label= with the column .* it has age, income\.$"):
        umix.RunSpec(task=str(path), method="erm")
    assert main(["run", str(path), "erm"]) == 2
    assert "people.csv needs --label with the column" in capsys.readouterr().err
