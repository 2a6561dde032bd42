"""Small folders in exactly the layouts of the published archives: real images, tables as they are found in the wild."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

BOM = "\ufeff"
Folder = Callable[..., Path]


def write_image(path: Path, rng: np.random.Generator, *, width: int, height: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    small = Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8))
    small.resize((width, height), Image.Resampling.BICUBIC).save(path)


def cells(per_cell: int) -> list[tuple[int, int, int]]:
    """Split, label and attribute of every image: the first group of train has one image more than the others."""
    rows = [(s, y, a) for s in range(3) for y in range(2) for a in range(2) for _ in range(per_cell)]
    return [*rows, (0, 0, 0)]


@pytest.fixture
def waterbirds(tmp_path: Path) -> Folder:
    def make(name: str = "waterbirds_v1.0", per_cell: int = 2, **changes: str) -> Path:
        """The archive's parent; ``changes`` replaces texts in the table."""
        rng, folder = np.random.default_rng(0), tmp_path / name
        lines = [f'{BOM}img_id,"img_filename",y,split,place,place_filename']
        for i, (split, y, place) in enumerate(cells(per_cell)):
            file = f"{i:03d}.Some, Bird/Bird_{i:04d}.jpg"
            write_image(folder / file, rng, width=40 + i, height=30)
            lines.append(f'{i + 1},"{file}",{y},{split},{place},/f/forest/{i:08d}.jpg')
        text = "\r\n".join(lines) + "\r\n"
        for old, new in changes.values():
            text = text.replace(old, new)
        (folder / "metadata.csv").write_bytes(text.encode())
        return tmp_path

    return make


@pytest.fixture
def celeba(tmp_path: Path) -> Folder:
    traits = ["5_o_Clock_Shadow", "Blond_Hair", "Eyeglasses", "Male", "Young"]

    def make(kind: str = "csv", per_cell: int = 2, nested: bool = False) -> Path:
        rng, folder = np.random.default_rng(0), tmp_path / "celebA_v1.0"
        images = folder / "img_align_celeba" / ("img_align_celeba" if nested else "")
        rows = []
        for i, (split, blond, male) in enumerate(cells(per_cell)):
            name = f"{i + 1:06d}.jpg"
            write_image(images / name, rng, width=178, height=218)
            rows.append((name, [1, 2 * blond - 1, -1, 2 * male - 1, 1], split))
        if kind == "csv":
            table = [",".join(["image_id", *traits])] + [f"{n},{','.join(map(str, v))}" for n, v, _ in rows]
            parts = ["image_id,partition"] + [f"{n},{s}" for n, _, s in reversed(rows)]
        else:
            table = [str(len(rows)), " ".join(traits) + " "]
            table += [f"{n} {' '.join(f'{v:2d}' for v in values)}" for n, values, _ in rows]
            parts = [f"{n} {s}" for n, _, s in rows]
        for stem, lines in (("list_attr_celeba", table), ("list_eval_partition", parts)):
            (folder / f"{stem}.{kind}").write_bytes(("\r\n".join(lines) + "\r\n").encode())
        return tmp_path

    return make


@pytest.fixture
def camelyon17(tmp_path: Path) -> Folder:
    def make(per_cell: int = 2) -> Path:
        rng, folder = np.random.default_rng(0), tmp_path / "camelyon17_v1.0"
        lines = [",patient,node,x_coord,y_coord,tumor,slide,center,split"]
        where = [(center, split) for center in range(5) for split in (0, 1)]
        rows = [(center, split, tumor) for center, split in where for tumor in (0, 1) for _ in range(per_cell)]
        for i, (center, split, tumor) in enumerate(rows):
            patient, node, x, y = f"{4 + 20 * center:03d}", center % 5, 3328 + 32 * i, 21792
            spot = f"patient_{patient}_node_{node}"
            write_image(folder / f"patches/{spot}/patch_{spot}_x_{x}_y_{y}.png", rng, width=96, height=96)
            lines.append(f"{i},{patient},{node},{x},{y},{tumor},{center * 10},{center},{split}")
        (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path

    return make


@pytest.fixture
def train_presets(tmp_path: Path) -> Callable[..., None]:
    """Plans every method that a preset of the task has settings for, and trains one epoch of UMIX with a tiny net."""

    def train(task: str, root: Path, preset: str) -> None:
        from umix.bench.runs.execute import execute
        from umix.bench.runs.paths import RunPaths
        from umix.bench.spec.presets import presets_of
        from umix.bench.spec.run_spec import RunSpec
        from umix.methods.registry import METHODS

        methods = ["erm", *(part for part in presets_of(task)[preset] if part in METHODS)]
        for method in methods:
            short = {"epochs": 1, "net": "cnn", "channels": [2], "size": 16, "task.allow_subset": True, "lr": 1e-3}
            if method == "umix":
                short |= {"start": 0, "length": 1, "trajectory.epochs": 1}
            if method == "jtt":
                short |= {"identification_epochs": 1}
            spec = RunSpec(task=task, method=method, settings=short, preset=preset)
            if method != "umix":
                continue
            record = execute(spec, paths=RunPaths(tmp_path / "runs", root=root))
            assert record.counts["test"].hits.shape[0] == 1
            assert record.input_shape == [3, 16, 16]

    return train
