"""Which large packages a command imports: none that it does not need, because each takes a part of a second or more."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars
import pytest

#: Needed by no command here.
NEVER = ("torch._dynamo", "sympy", "optuna", "transformers", "lightning_fabric", "matplotlib", "ray", "mlflow", "skrub")
PAGE = ("altair", "jinja2", "vl_convert", "PIL")
SCIKIT = ("sklearn", "scipy", "pandas", "joblib", "skops")
FORBIDDEN = {
    "--help": (*NEVER, *PAGE, *SCIKIT, "torch", "polars", "numpy", "pydantic", "filelock"),
    "methods": (*NEVER, *PAGE, *SCIKIT, "polars"),
    "run people.csv erm --net mlp": (*NEVER, *PAGE, *SCIKIT),
    "run people.csv umix --net mlp": (*NEVER, *PAGE, *SCIKIT),
    "run people.csv": (*NEVER, *PAGE),  # trees are scikit-learn's
    "predict": (*NEVER, *PAGE, *SCIKIT),
    "table": (*NEVER, *PAGE, *SCIKIT, "torch", "polars"),
    "select": (*NEVER, *PAGE, *SCIKIT, "torch", "polars"),
    "report": (*NEVER, *SCIKIT, "torch", "vl_convert"),  # another process puts the charts' library together
}
PROGRAM = """
import atexit, json, sys
atexit.register(lambda: print("\\n" + json.dumps([name for name in json.loads(sys.argv[1]) if name in sys.modules])))
from umix.cli import main
sys.exit(main(sys.argv[2:]))
"""


def imported(names: tuple[str, ...], folder: Path, *arguments: str) -> list[str]:
    """Which of ``names`` the command ``umix ARGUMENTS`` has imported when it ends; it must succeed."""
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(names), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    found: list[str] = json.loads(told.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a run of it."""
    folder, rng, n = tmp_path_factory.mktemp("imports"), np.random.default_rng(0), 300
    age, sex = rng.integers(18, 80, n), rng.choice(["f", "m"], n)
    income = np.where(age + 20 * (sex == "m") + rng.normal(0, 10, n) > 60, "high", "low")
    polars.DataFrame({"age": age, "job": rng.choice(["a", "b", "c"], n), "sex": sex, "income": income}).write_csv(
        folder / "people.csv"
    )
    imported((), folder, *arguments_of("run people.csv erm --net mlp --seed 1", folder))
    return folder


def arguments_of(command: str, folder: Path) -> list[str]:
    words, quick = command.split(), ["--set", "fit.epochs=2"]
    if words[0] == "run":
        length = ["--set", "umix.length=2"] if "umix" in words else []
        return [*words, "--label", "income", "--groups", "sex", *quick, *length]
    if words[0] == "predict":
        return ["predict", str(next((folder / "runs").glob("people-erm-*"))), "people.csv", "-o", "out.csv"]
    return [*words, "runs"] if words[0] in ("table", "select", "report") else words


@pytest.mark.parametrize("command", FORBIDDEN)
def test_a_command_imports_nothing_that_it_does_not_need(command: str, folder: Path) -> None:
    assert imported(FORBIDDEN[command], folder, *arguments_of(command, folder)) == []
