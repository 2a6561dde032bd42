"""What starts at once because it looks before it imports: torch, polars and scikit-learn take seconds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from umix.cli import main

PROGRAM = """
import json, sys
from umix.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr)
"""
SLOW = {"torch", "polars", "sklearn", "scipy", "pandas", "altair", "optuna"}
RUN = ["run", "people.csv", "erm", "--label=income", "--groups=sex", "--net=mlp", "--set=epochs=1"]


def imported_by(*command: str) -> tuple[int, set[str]]:
    """The exit code of a command in a process of its own, and which slow packages it has imported."""
    process = subprocess.run([sys.executable, "-c", PROGRAM, *command], capture_output=True, text=True, check=True)
    code, modules = json.loads(process.stderr.splitlines()[-1])
    return code, SLOW.intersection(modules)


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{k % 7},{'FM'[k % 2]},{'no' if k % 3 else 'yes'}" for k in range(120)]
    table = tmp_path / "people.csv"
    table.write_text("\n".join(["age,sex,income", *rows]))
    return table


@pytest.mark.system
@pytest.mark.parametrize(
    ("command", "code"),
    [(["--help"], 0), (["run", "--help"], 0), (["doctor", "missing.csv"], 2), (["run", "missing.csv"], 2)],
    ids=["help", "help of run", "doctor", "run"],
)
def test_help_and_files_that_are_missing_need_no_slow_package(people: Path, command: list[str], code: int) -> None:
    assert imported_by(*command) == (code, set())


@pytest.mark.system
def test_the_same_command_again_needs_no_slow_package(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RUN) == 0
    capsys.readouterr()
    for form in ([], ["--json"], ["--select=average"]):
        assert imported_by(*RUN, *form) == (0, set())


@pytest.mark.system
def test_a_run_that_is_not_there_is_refused_before_slow_packages_are_imported(people: Path) -> None:
    assert imported_by("predict", "runs/people", "people.csv") == (2, set())
    assert imported_by("weights", "runs/people") == (2, set())
