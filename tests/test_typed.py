"""The types of the public names, as mypy sees them in other people's code."""

from importlib.resources import files
from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api")
ROOT = Path(__file__).parents[1]
RIGHT = """
from pathlib import Path

import numpy as np
import polars
import torch

import umix

task: umix.Task = umix.load_task("four_moons")
result: umix.RunResult = umix.train(task, "umix", eta=3, seed=0, out=Path("runs"))
worst: float | None = result.summary().worst
weights: polars.DataFrame = result.weights()
study: umix.StudyResult = umix.run_study(tasks=[task], methods=["erm", "umix"], seeds=range(2))
page: Path = study.report("report.html")
model: umix.UMIXClassifier = umix.UMIXClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
probabilities: np.ndarray = model.predict_proba([[0.5]])
trajectory = umix.Trajectory(10)
trajectory.see(torch.arange(10), torch.zeros(10, 2), torch.zeros(10, dtype=torch.int64))
uncertainty: torch.Tensor = trajectory.uncertainty(start=0, length=1)
groups = umix.Groups.from_ids(torch.zeros(10, dtype=torch.int64), ["all"])
sizes: torch.Tensor = groups.sizes
"""
#: A line of wrong use, and what mypy says of it.
WRONG = {
    "umix.trian('four_moons')": 'Module has no attribute "trian"',
    "umix.train('four_moons', seed='0')": 'Argument "seed" to "train" has incompatible type "str"; expected "int"',
    "umix.train('four_moons').summary().worts": '"Summary" has no attribute "worts"',
    "umix.run_study(tasks=['four_moons'], methods=['erm'], seeds=3)": 'Argument "seeds" to "run_study" has incompatible type',
    "umix.UMIXClassifier(spam=1)": 'Unexpected keyword argument "spam" for "UMIXClassifier"',
    "umix.Trajectory('10')": 'Argument 1 to "Trajectory" has incompatible type "str"; expected "int"',
    "umix.Groups.from_ids([0, 1], ['a', 'b'])": 'Argument 1 to "from_ids" of "Groups" has incompatible type "list[int]"',
}


def test_the_package_says_that_it_has_types() -> None:
    assert files("umix").joinpath("py.typed").is_file()


@pytest.mark.system
def test_mypy_takes_right_use_of_the_public_names_and_finds_each_wrong_one(tmp_path: Path) -> None:
    scripts = {"right.py": RIGHT, "wrong.py": "import umix\n\n" + "\n".join(WRONG) + "\n"}
    for name, text in scripts.items():
        (tmp_path / name).write_text(text)
    # What ``make types`` has cached is read, which takes seconds instead of a minute.
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"), "--no-pretty"]
    out, err, _ = api.run([*options, *(str(tmp_path / name) for name in scripts)])
    assert not err
    faults = [line for line in out.splitlines() if "error:" in line]
    assert len(faults) == len(WRONG), out
    for fault, (number, said) in zip(faults, enumerate(WRONG.values(), start=3), strict=True):
        assert f"wrong.py:{number}:" in fault
        assert said in fault
