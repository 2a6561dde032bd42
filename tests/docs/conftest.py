"""What the blocks of the pages are run with: small files under the names that the pages use, and short fits."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from filelock import FileLock
from PIL import Image

from umix.bench.spec import presets

ROOT = Path(__file__).parents[2]
N_ROWS = 240


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with docs/, the generated pages in it, mkdocs.yml, and site/ as ``make docs`` builds it.

    A page of a method that is gone was there before. The workers of a session share the folder: one of them makes it.
    """
    shared = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp().parent if shared else tmp_path_factory.mktemp("base")
    folder = base / "project"
    with FileLock(base / "project.lock"):
        if not (folder / "built").exists():
            _build(folder)
    said = (folder / "built").read_text(encoding="utf-8")
    assert not said, said
    return folder


def _build(folder: Path) -> None:
    """Make the folder; ``built`` holds what the build complained about."""
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("methods", "__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "docs" / "reference" / "methods").mkdir()
    (folder / "docs" / "reference" / "methods" / "forgotten.md").write_text("# a method that is gone", encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "docs" / "generate", folder / "docs"], check=True)
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "built").write_text(build.stderr if build.returncode else "", encoding="utf-8")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages name: tables, arrays, images and texts of a few hundred rows."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    people = _people(rng)
    people.write_csv(folder / "people.csv")
    known = polars.Series(rng.random(N_ROWS) < 0.8)
    people.with_columns(sex=polars.when(known).then("sex")).write_csv(folder / "few.csv")
    stars = rng.choice(["no", "yes"], N_ROWS)
    texts = [f"a {'good' if star == 'yes' else 'bad'} film, number {number}" for number, star in enumerate(stars)]
    polars.DataFrame({"review": texts, "stars": stars}).write_parquet(folder / "reviews.parquet")
    polars.DataFrame({"review": texts[:20]}).write_csv(folder / "newreviews.csv")
    people.drop("income").head(20).write_csv(folder / "new.csv")
    people.tail(100).write_csv(folder / "labelled.csv")
    _arrays(folder, rng)
    _ward(np.random.default_rng(1)).write_csv(folder / "ward.csv")
    _photos(folder, rng)
    return folder


def _people(rng: np.random.Generator) -> polars.DataFrame:
    sex, race = rng.choice(["men", "women"], N_ROWS), rng.choice(["black", "white"], N_ROWS)
    height, age = (
        np.where(sex == "men", 182, 165) + rng.normal(0, 4, N_ROWS).round(),
        rng.normal(40, 10, N_ROWS).round(1),
    )
    rich = age + rng.normal(0, 5, N_ROWS) + 4 * (sex == "men") > 42
    income = np.where(rich, ">50K", "<=50K")
    return polars.DataFrame({"age": age, "height": height, "sex": sex, "race": race, "income": income})


def _ward(rng: np.random.Generator) -> polars.DataFrame:
    """Three visits of each patient."""
    patient, site = np.arange(N_ROWS) // 3, rng.choice(["north", "south"], N_ROWS, p=[0.7, 0.3])
    fever = rng.normal(37.5, 1, N_ROWS).round(1)
    ill = np.where(fever + rng.normal(0, 0.5, N_ROWS) + (site == "south") > 38, "yes", "no")
    when = [f"20{20 + row % 5}-0{1 + row % 9}-11" for row in range(N_ROWS)]
    return polars.DataFrame({"fever": fever, "site": site, "patient": patient, "when": when, "ill": ill})


def _arrays(folder: Path, rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((N_ROWS, 4)).astype(np.float32), rng.integers(0, 2, N_ROWS)
    x[:, 0] += 2 * y
    place, split = rng.choice(["land", "water"], N_ROWS), rng.choice(["train", "val", "test"], N_ROWS)
    np.savez(folder / "features.npz", x=x, y=y, place=place, split=split)
    np.save(folder / "features.npy", x)
    polars.DataFrame({"y": y}).write_csv(folder / "rows.csv")


def _photos(folder: Path, rng: np.random.Generator) -> None:
    rows = []
    for kind, shade in (("cat", 60), ("dog", 180)):
        (folder / "photos" / kind).mkdir(parents=True)
        for number in range(12):
            pixels = (shade + rng.integers(0, 60, (8, 8, 3))).astype(np.uint8)
            path = f"{kind}/{number}.png"
            Image.fromarray(pixels).save(folder / "photos" / path)
            rows.append({"path": path, "kind": kind, "place": "inside" if number % 3 else "outside"})
    polars.DataFrame(rows).write_csv(folder / "photos" / "metadata.csv")
    shutil.copytree(folder / "photos" / "cat", folder / "newphotos")


@pytest.fixture
def short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Presets train for 2 epochs; everything else is as users have it."""
    usual: Callable[[str], dict[str, presets.Tables]] = presets.presets_of

    def shortened(task: str) -> dict[str, presets.Tables]:
        return {name: {part: _short(values) for part, values in tables.items()} for name, tables in usual(task).items()}

    monkeypatch.setattr(presets, "presets_of", shortened)


def _short(values: dict[str, Any]) -> dict[str, Any]:
    most = {"epochs": 1, "length": 1, "identification_epochs": 1}
    return {
        name: min(value, most[name]) if name in most and isinstance(value, int) else value
        for name, value in values.items()
    }
