"""Small runs whose models are exported."""

from pathlib import Path

import numpy as np
import polars
import pytest

from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec

FAST = {"epochs": 4, "lr": 0.01, "batch_size": 32}


@pytest.fixture(scope="session")
def people() -> polars.DataFrame:
    """Numbers with gaps, a column of large numbers, texts with and without gaps, and an input called as an output is."""
    n, rng = 300, np.random.default_rng(0)
    age, hours = rng.integers(17, 90, n).astype(float), rng.normal(40, 10, n)
    age[rng.random(n) < 0.1] = np.nan
    sex = rng.choice(["f", "m"], n)
    score = np.nan_to_num(age, nan=40) / 40 + hours / 40 + (sex == "m") * 0.5 + rng.normal(0, 0.3, n)
    return polars.DataFrame(
        {
            "age": polars.Series(age).fill_nan(None),
            "hours-per-week": hours,
            "zip": rng.integers(3_000_000, 3_000_400, n),
            "sex": sex,
            "label": rng.choice(["clerk", "nurse", "chef", "?", ""], n, p=[0.4, 0.3, 0.2, 0.05, 0.05]),
            "income": np.where(score > 2.6, "rich", "poor"),
        }
    )


@pytest.fixture(scope="session")
def table(people: polars.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.csv"
    people.write_csv(path)
    return path


@pytest.fixture(scope="session")
def record(table: Path, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A run on a table with groups, by a net on standardised numbers and 0/1 columns."""
    settings = {**FAST, "label": "income", "groups": "sex", "hidden": [8], "evaluation.min_group": 12}
    return execute(RunSpec(task=str(table), method="erm", settings=settings), out=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def coded(table: Path, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A run on the same table by a net on codes."""
    settings = {**FAST, "label": "income", "net": "tabular", "net.hidden": [8]}
    return execute(RunSpec(task=str(table), method="erm", settings=settings), out=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A run on an array, with three classes."""
    x = np.random.default_rng(0).normal(3, [1, 5, 100], size=(240, 3))
    folder = tmp_path_factory.mktemp("arrays")
    np.savez(folder / "sizes.npz", x=x, y=np.digitize(x[:, 0], [2.5, 3.5]))
    spec = RunSpec(task=str(folder / "sizes.npz"), method="erm", settings={**FAST, "label": "y"})
    return execute(spec, out=folder / "runs")
