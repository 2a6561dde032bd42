"""What commands print comes from umix and can be shown."""

import logging
import os
import sys
import warnings
from pathlib import Path

import numpy
import pytest
from PIL import Image

from umix.cli import main
from umix.commands.clean_output import clean_output
from umix.errors import UmixWarning

RUN = [
    "run",
    "four_moons",
    "erm",
    "--set=epochs=1",
    "--set=sizes=[40,8,8,40]",
    "--set=eval_size=10",
    "--set=hidden=[4]",
]


@pytest.fixture(autouse=True)
def _warnings_are_shown() -> object:
    """Warnings are shown and not raised, as for a person."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        yield


def test_a_warning_of_umix_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with clean_output():
        warnings.warn("Two [b]\nlines.", UmixWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: Two [b] lines.\n"


def test_a_warning_of_peoples_own_code_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with clean_output():
        warnings.warn("My net is old.", DeprecationWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: My net is old.\n"


def test_warnings_and_log_messages_of_libraries_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with clean_output():
        warnings.warn_explicit("overflow", RuntimeWarning, numpy.__file__, 1)
        warnings.warn_explicit("overflow", RuntimeWarning, str(Path(main.__code__.co_filename)), 1)
        log = logging.Logger("a library without handlers")
        log.warning("odd")
    assert capsys.readouterr().err == ""


def test_after_the_block_warnings_are_as_before() -> None:
    with clean_output():
        assert os.environ["PYTHONWARNINGS"] == "ignore"  # for the processes that a command starts
    assert "PYTHONWARNINGS" not in os.environ
    with pytest.warns(RuntimeWarning, match="overflow"):
        warnings.warn_explicit("overflow", RuntimeWarning, numpy.__file__, 1)


def test_who_asks_python_for_warnings_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "warnoptions", ["default"])
    with clean_output(), pytest.warns(RuntimeWarning, match="overflow"):
        warnings.warn_explicit("overflow", RuntimeWarning, numpy.__file__, 1)


def test_a_large_image_is_checked_without_pillows_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cat", "dog"):
        for number in range(5):
            path = tmp_path / "photos" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (12, 9)).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 60)
    assert main(["doctor", str(tmp_path / "photos"), "--label-from", "folder"]) == 0
    assert capsys.readouterr().err == ""


def test_names_that_are_no_text_are_escaped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--out", str(tmp_path)]) == 0
    output = tmp_path / os.fsdecode(b"caf\xe9.csv")
    assert main(["table", str(tmp_path), "-o", str(output)]) == 0
    assert r"caf\udce9.csv" in capfd.readouterr().err
    assert output.exists()


@pytest.mark.parametrize("command", [["doctor"], ["run"], ["predict", "runs"]], ids=["doctor", "run", "predict"])
def test_a_path_that_cannot_be_is_one_sentence(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "x" * 300 + ".csv"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("umix: ")
    assert said.count("\n") == 1


def test_a_folder_of_runs_whose_name_is_no_text_is_refused_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--out", str(tmp_path / os.fsdecode(b"caf\xe9"))]) == 2
    assert r"caf\udce9'; choose another folder." in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
