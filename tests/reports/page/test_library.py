"""The script of the charts: made once by another process, then read from the folder of caches."""

from importlib.metadata import version
from pathlib import Path

import pytest

from umix.reports.page import library
from umix.reports.page.library import charts_library

pytestmark = pytest.mark.system

HEAD = f"// vl-convert {version('vl-convert-python')}\n"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script is a short one here."""
    monkeypatch.setattr(library, "_PROGRAM", "print('a = \"</script>\"', end='')")
    monkeypatch.setattr(library, "_made_here", lambda: "made here")


def script(caches: Path) -> str:
    with charts_library(caches) as made:
        return made()


def test_the_script_is_made_by_another_process_and_cannot_end_its_element(tmp_path: Path) -> None:
    assert script(tmp_path) == 'a = "<\\/script>"'
    assert (tmp_path / "umix" / "charts.js").read_text() == HEAD + 'a = "<\\/script>"'


def test_a_script_that_is_kept_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path)
    monkeypatch.setattr(library, "_PROGRAM", "raise SystemExit(1)")
    assert script(tmp_path) == 'a = "<\\/script>"'


@pytest.mark.parametrize("content", [b"// vl-convert 0.0.0\nold", b"", b"\xff"], ids=["version", "empty", "no text"])
def test_a_script_of_another_version_or_a_broken_one_is_made_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "umix").mkdir()
    (tmp_path / "umix" / "charts.js").write_bytes(content)
    assert script(tmp_path) == 'a = "<\\/script>"'
    assert (tmp_path / "umix" / "charts.js").read_text().startswith(HEAD)


def test_where_the_process_fails_the_script_is_made_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_PROGRAM", "raise SystemExit(1)")
    assert script(tmp_path) == "made here"
    monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    assert script(tmp_path / "other") == "made here"


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "umix").write_text("a file")
    assert script(tmp_path) == 'a = "<\\/script>"'


def test_the_process_does_not_outlive_a_page_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_PROGRAM", "import signal; signal.pause()")
    with pytest.raises(ZeroDivisionError), charts_library(tmp_path):
        raise ZeroDivisionError


def test_a_module_in_the_users_folder_is_not_taken_for_that_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hostile.py").write_text("print('hostile')")
    monkeypatch.setattr(library, "_PROGRAM", "import hostile")
    assert script(tmp_path) == "made here"
