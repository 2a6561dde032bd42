"""Methods that infer groups need none: they train on a table of three classes without groups."""

from pathlib import Path

import numpy as np
import pytest

from umix.bench.runs.execute import execute
from umix.bench.spec.run_spec import RunSpec
from umix.store import read_tensors

N = 150


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    y = rng.choice(3, N, p=[0.6, 0.3, 0.1])
    x = rng.standard_normal((N, 2)) + 1.5 * np.stack([np.cos(2 * y), np.sin(2 * y)], axis=1)
    path = tmp_path_factory.mktemp("table") / "people.csv"
    lines = [f"{a:.3f},{b:.3f},class {c}" for (a, b), c in zip(x, y, strict=True)]
    path.write_text("\n".join(["first,second,kind", *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    ("method", "then"),
    [
        ("eiil", "umix"),
        ("george", "group_dro"),
        ("george", "umix"),
        ("xrm", "group_dro"),
        ("xrm", "umix"),
        ("spare", None),
        ("cnc", None),
    ],
)
def test_a_table_of_three_classes_without_groups_is_trained_on(
    table: Path, tmp_path: Path, method: str, then: str | None
) -> None:
    settings = {"task.label": "kind", "fit.epochs": 2, "fit.lr": 0.01, "net.hidden": [8]}
    settings |= {} if then is None else {f"{method}.then": then}
    record = execute(RunSpec(task=str(table), method=method, settings=settings), out=tmp_path)
    kept, _ = read_tensors(record.directory / "examples.safetensors", kind="examples")
    assert not record.groups
    assert ("weight" in kept) == (then == "umix" or method == "spare")
    assert len(kept["environment"].unique()) > 1
    assert record.summary().average is not None
