"""A run on a small table: ``x`` decides the label, ``noise`` and ``colour`` do not; ``place`` and ``sex`` are groups."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest

from umix import RunResult, load_result
from umix.bench.runs.execute import execute
from umix.bench.spec.run_spec import RunSpec

SETTINGS = {"epochs": 8, "hidden": [8], "batch_size": 50, "lr": 0.02, "label": "y", "id": "key"}


@pytest.fixture(scope="session")
def rows() -> Callable[..., polars.DataFrame]:
    def make(n: int, seed: int = 50) -> polars.DataFrame:
        rng = np.random.default_rng(seed)
        x, wrong = rng.normal(size=n), rng.random(n) < 0.15
        return polars.DataFrame(
            {
                "key": [f"row {i}" for i in range(n)],
                "x": x,
                "noise": rng.normal(size=n),
                "colour": rng.choice(["red", "green", "blue"], n),
                "place": rng.choice(["land", "water"], n),
                "sex": rng.choice(["Female", "Male"], n),
                "y": np.where((x > 0) ^ wrong, "yes", "no"),
            }
        )

    return make


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory, rows: Callable[..., polars.DataFrame]) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.csv"
    rows(900).write_csv(path)
    return path


@pytest.fixture(scope="session")
def result(table: Path, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    settings = {**SETTINGS, "groups": "place,sex", "drop": "place,sex"}
    return load_result(
        execute(
            RunSpec(task=str(table), method="erm", settings=settings), out=tmp_path_factory.mktemp("runs")
        ).directory
    )


@pytest.fixture(scope="session")
def new(rows: Callable[..., polars.DataFrame]) -> polars.DataFrame:
    return rows(600, 1)
