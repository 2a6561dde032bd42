"""Every example runs as it is, in a folder of its own."""

from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: Warnings are errors, but for one of Lightning's own code.
PROGRAM = """
import os, runpy, warnings
os.chdir(folder)
os.environ["OMP_NUM_THREADS"] = "1"
warnings.simplefilter("error")
warnings.simplefilter("ignore", FutureWarning)
runpy.run_path(example, run_name="__main__")
"""


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_an_example_runs_as_it_is(file: Path, tmp_path: Path, start_program: Callable[..., BaseProcess]) -> None:
    said = tmp_path / "said"
    process = start_program(PROGRAM, output=said, example=str(file), folder=str(tmp_path))
    process.join()
    assert process.exitcode == 0, said.with_suffix(".err").read_text()
