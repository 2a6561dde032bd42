"""``umix theory``, called as people call it."""

import functools
import json
from pathlib import Path

import pytest

from umix.cli import main
from umix.commands import theory as command
from umix.core.streams import stream
from umix.theory.experiment import Design
from umix.theory.findings import Findings, find

TINY = {"sizes": (60, 120), "ranks": (2, 4), "dimension": 8, "seeds": 2}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment is a small one, and computed once."""
    monkeypatch.setattr(command, "_QUICK", TINY)
    monkeypatch.setattr("umix.theory.findings.find", lambda design, streams, **_: found(design))


@functools.cache
def found(design: Design) -> Findings:
    return find(design, lambda seed, purpose: stream(seed, "theory", purpose))


def test_tables_of_checks_lemmas_and_gaps_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "--quick", "--quiet", "--seeds", "3"]) == 0
    out = capsys.readouterr().out
    for expected in (
        "Statements that hold",
        "Readings that do not hold",
        "Lemma A.1",
        "Lemma A.2",
        "infinite",
        "Assumption 5.1",
        "Theorem 5.1",
    ):
        assert expected in out
    assert "22 of 22 checks came out as expected" in out


def test_json_holds_what_the_tables_show_and_where_the_figures_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["theory", "--quick", "--json", "--figures", str(tmp_path / "new"), "--seeds", "3"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["design"]["seeds"] == 3
    assert [(cell["rank"], cell["n"]) for cell in found["cells"]] == [(2, 60), (2, 120), (4, 60), (4, 120)]
    assert all(check["as_expected"] for check in found["checks"])
    assert {Path(path).suffix for path in found["figures"]} == {".svg"}
    assert all(Path(path).read_bytes().startswith(b"<svg") for path in found["figures"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alpha", "-1"], "Design.alpha must be a number in (0, inf), got -1"),
        (["--seeds", "1"], "Design.seeds must be a whole number in [2, 10000], got 1"),
        (["--format", "jpeg"], "jpeg"),
        (["--figure", "x"], "--figure"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_two(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["theory", "--quick", "--quiet", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("here")
    assert main(["theory", "--quick", "--figures", str(tmp_path / "file")]) == 2
    assert "Cannot write" in capsys.readouterr().err
