"""Folders of runs, finished or stopped, that are damaged before a command reads them."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hostile_cases.case import Case, Maker
from hostile_cases.damage import damage
from hostile_cases.made_runs import RECIPES, STOPPED, Recipe, copy_run

_COMPARING = (
    ["table", "runs"],
    ["table", "runs", "--groups"],
    ["table", "runs", "--metric", "brier"],
    ["table", "runs", "--select", "worst,average"],
    ["table", "runs", "-f", "json"],
    ["select", "runs"],
    ["select", "runs", "--json"],
)


#: Which commands read a file, by how its path in the run's folder begins; others may read it too, which is tried now and then.
_READ_BY = {
    "weights/": ("predict", "predict", "export"),
    "columns": ("predict", "predict", "export"),
    "codes": ("predict", "predict", "export"),
    "arrays": ("predict", "predict", "export"),
    "images": ("predict", "predict", "export"),
    "texts": ("predict", "predict", "export"),
    "decisions": ("predict", "compare", "report"),
    "examples": ("weights", "report"),
    "closer": ("report",),
    "training": ("report", "weights"),
    "trajectory": ("report",),
    "predictions": ("report", "compare"),
    "epochs": ("log",),
}
_ALL = ("predict", "export", "weights", "compare", "compare", "report", "again")


def _draw(rng: np.random.Generator, values: "Sequence[str]") -> str:
    return values[int(rng.integers(len(values)))]


def _damaged(folder: Path, rng: np.random.Generator) -> tuple[str, str]:
    """Damage one file below ``folder``; its path there, and how. Every kind of file is drawn as often as others, records more."""
    files = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name[0] != "." and ".locks" not in path.parts
    )
    kinds: dict[str, list[Path]] = {}
    for path in files:
        kinds.setdefault("weights" if path.parent.name == "weights" else path.name.partition("-")[0], []).append(path)
    if not kinds:
        return "", "nothing"
    kind = "record.json" if "record.json" in kinds and rng.random() < 0.3 else _draw(rng, sorted(kinds))
    path = kinds[kind][int(rng.integers(len(kinds[kind])))]
    return str(path.relative_to(folder)), damage(path, rng)


def _after(command: list[str], what: str, folder: Path, *outputs: str) -> Case:
    return Case(f"{' '.join(command[:2])} after {what}", command, outputs=tuple(folder / name for name in outputs))


def _command_on(run: Path, file: str, recipe: Recipe, folder: Path, rng: np.random.Generator, what: str) -> Case:
    """A command that reads a finished run, mostly one that reads the ``file`` of it that is damaged."""
    name = f"runs/{run.name}"
    of_file = next((commands for begin, commands in _READ_BY.items() if file.startswith(begin)), _ALL)
    kind = _draw(rng, _ALL if rng.random() < 0.1 else of_file)
    if kind == "predict":
        return _after(
            ["predict", name, recipe.data, "-o", "out.csv", "-q"], f"{recipe.method}, {what}", folder, "out.csv"
        )
    if kind == "export":
        output = _draw(rng, ["card.md", "card.md", "model.safetensors", "model.safetensors", "model.pt2", "model"])
        words = ["export", name, "-o", output, *(["--format", "card"] if output == "card.md" else [])]
        return _after(words, what, folder, output)
    if kind == "weights":
        return _after(["weights", name, "-o", "weights.csv"], what, folder, "weights.csv")
    if kind == "compare":
        return _after(_COMPARING[int(rng.integers(len(_COMPARING)))], what, folder)
    if kind == "log":
        return _after([*recipe.words, "--log", "tensorboard"], what, folder)
    if kind in ("again", "plan"):
        return _after(recipe.words if kind == "again" else recipe.plan, what, folder)
    return _after(["report", _draw(rng, [name, "runs"]), "-o", "report.html"], what, folder, "report.html")


def damaged_run(folder: Path, rng: np.random.Generator) -> Case:
    """A finished run, one file of which is damaged, and any command that reads it."""
    recipe, run = copy_run(_draw(rng, list(RECIPES)), folder)
    file, what = _damaged(run, rng)
    return _command_on(run, file, recipe, folder, rng, what)


def mixed_runs(folder: Path, rng: np.random.Generator) -> Case:
    """A finished run with a file of another run in place of its own, and any command that reads it."""
    name, other = rng.permutation(list(RECIPES))[:2].tolist()
    recipe, run = copy_run(name, folder)
    (folder / "other").mkdir()
    _, source = copy_run(other, folder / "other")
    taken = Path(_draw(rng, sorted(str(path.relative_to(source)) for path in source.rglob("*") if path.is_file())))
    (run / taken).parent.mkdir(exist_ok=True)
    shutil.copy(source / taken, run / taken)
    shutil.rmtree(folder / "other")
    return _command_on(run, str(taken), recipe, folder, rng, f"{taken} of {other}")


def damaged_stop(folder: Path, rng: np.random.Generator) -> Case:
    """A run that was stopped, one file of which or of its stages is damaged, and goes on."""
    recipe, _ = copy_run(_draw(rng, list(STOPPED)), folder)
    return _after(recipe.words, _damaged(folder / "runs", rng)[1], folder)


def lost_record(folder: Path, rng: np.random.Generator) -> Case:
    """A run whose record is gone, with a damaged file among those that stages and caches keep, is made again."""
    recipe, run = copy_run(_draw(rng, list(RECIPES)), folder)
    (run / "record.json").unlink()
    return _after(recipe.words, _damaged(folder / "runs", rng)[1], folder)


MAKERS: tuple[Maker, ...] = (damaged_run, damaged_run, damaged_run, mixed_runs, damaged_stop, damaged_stop, lost_record)
