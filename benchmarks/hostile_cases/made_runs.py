"""Small runs that cases damage: finished ones, and ones that were stopped. Made once per process, then copied."""

import atexit
import contextlib
import functools
import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np

_ROWS = 100
_SETTINGS = {"fit.epochs": 3, "fit.batch_size": 32}


@final
@dataclass(frozen=True)
class Recipe:
    """A run of ``method`` on ``data``; with ``stop`` it is stopped in that stage after so many steps."""

    data: str
    method: str
    flags: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    stop: tuple[str, int] | None = None

    @property
    def words(self) -> list[str]:
        """The arguments of ``umix run`` that make it, go on with it, or find it finished."""
        flags = [word for name, value in self.flags.items() for word in (f"--{name}", value) if word]
        settings = {**_SETTINGS, **self.settings}
        if self.flags.get("net") == "trees":
            settings.pop("fit.batch_size")
        assigned = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return ["run", self.data, self.method, *flags, *assigned, "-q"]


_TABLE = {"label": "income", "groups": "sex,region", "id": "id"}
_FIRST = {"umix.eta": 3, "umix.pool": "example", "umix.start": 0, "umix.length": 2, "trajectory.epochs": 3}
_SMALL = {"net.hidden": "[8]"}
RECIPES: dict[str, Recipe] = {
    "table by umix": Recipe("people.csv", "umix", _TABLE, {**_SMALL, **_FIRST}),
    "table by best": Recipe("people.csv", "best", {**_TABLE, "net": "mlp"}, _SMALL),
    "table by erm with trees": Recipe("people.csv", "erm", {**_TABLE, "net": "trees"}),
    "table by umix with trees": Recipe(
        "people.csv", "umix", {**_TABLE, "net": "trees"}, {"umix.eta": 3, "umix.pool": "example"}
    ),
    "table with dates and texts": Recipe("shops.csv", "erm", {"label": "open", "groups": "town"}, _SMALL),
    "codes with texts by tabular": Recipe(
        "shops.csv", "erm", {"label": "open", "groups": "town", "net": "tabular"}, _SMALL
    ),
    "arrays": Recipe("arrays.npz", "erm", {"label": "y", "groups": "g", "x": "x"}),
    "images": Recipe("images", "erm", {"label-from": "folder"}, {"net.channels": "[4]"}),
    "texts": Recipe(
        "comments.csv", "umix", {"label": "toxic", "groups": "about", "text": "words"}, {**_SMALL, **_FIRST}
    ),
}
STOPPED: dict[str, Recipe] = {
    "umix stopped in the fit": Recipe("people.csv", "umix", _TABLE, {**_SMALL, **_FIRST}, stop=("fit", 5)),
    "umix stopped in the first stage": Recipe(
        "people.csv", "umix", _TABLE, {**_SMALL, **_FIRST}, stop=("trajectory", 5)
    ),
    "umix stopped in the race": Recipe("people.csv", "umix", _TABLE, _SMALL, stop=("race", 5)),
    "trees stopped in the folds": Recipe("people.csv", "umix", {**_TABLE, "net": "trees"}, stop=("trajectory", 3)),
    "dro stopped in the fit": Recipe(
        "people.csv", "group_dro", _TABLE, {**_SMALL, "fit.optimizer": "sgd"}, stop=("fit", 5)
    ),
    "dfr stopped": Recipe("people.csv", "dfr", _TABLE, _SMALL, stop=("reference", 5)),
    "images stopped in the fit": Recipe(
        "images", "erm", {"label-from": "folder"}, {"net.channels": "[4]"}, stop=("fit", 2)
    ),
}


class _Stopped(BaseException):
    pass


@final
class _Stopper:
    """Progress that stops the run in one stage after so many steps, as a kill would."""

    def __init__(self, stage: str, steps: int) -> None:
        self._stage, self._left, self._now = stage, steps, ""

    def start(self, stage: str, *, total: int, done: int) -> None:
        self._now = stage

    def advance(self, steps: int) -> None:
        if self._now == self._stage:
            self._left -= steps
            if self._left <= 0:
                raise _Stopped

    def finish(self) -> None: ...

    def note(self, message: str) -> None: ...


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="hostile-runs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _write_data(folder)
    return folder


@functools.cache
def _made(name: str) -> Path:
    """The folder with the ``runs`` of a recipe, which were made in it."""
    recipe = (RECIPES | STOPPED)[name]
    folder = _folder() / "made" / name.replace(" ", "-")
    folder.mkdir(parents=True)
    _link_data(folder)
    with _in(folder):
        if recipe.stop is None:
            _command(recipe.words)
        else:
            _stopped(recipe)
    return folder / "runs"


def copy_run(name: str, folder: Path) -> tuple[Recipe, Path]:
    """Copy the data and the runs of a recipe into ``folder``; the recipe, and the folder of the run, if it has one."""
    runs = _made(name)
    shutil.copytree(runs, folder / "runs")
    _link_data(folder)
    recipe = (RECIPES | STOPPED)[name]
    found = [path for path in (folder / "runs").iterdir() if f"-{recipe.method}-seed" in path.name]
    return recipe, found[0] if found else folder / "runs"


def _command(words: list[str]) -> None:
    from umix.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = main(words)
    if code:
        raise RuntimeError(f"umix {' '.join(words)}: {said.getvalue()}")


def _stopped(recipe: Recipe) -> None:
    """Make the run up to its stop: the command line's own run, with another progress."""
    import umix.commands.run as command
    from umix.terminal import Bars

    stopper = _Stopper(*(recipe.stop or ("", 0)))
    methods = {name: Bars.__dict__[name] for name in ("start", "advance", "finish")}
    try:
        Bars.start = lambda self, stage, *, total, done: stopper.start(stage, total=total, done=done)  # type: ignore[method-assign]
        Bars.advance = lambda self, steps: stopper.advance(steps)  # type: ignore[method-assign]
        Bars.finish = lambda self: None  # type: ignore[method-assign]
        with contextlib.suppress(_Stopped):
            _command(recipe.words)
            raise RuntimeError(f"{command.__name__} of {recipe} was not stopped.")
    finally:
        for name, method in methods.items():
            setattr(Bars, name, method)


@contextlib.contextmanager
def _in(folder: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


def _link_data(folder: Path) -> None:
    for name in ("people.csv", "shops.csv", "arrays.npz", "comments.csv", "images"):
        (folder / name).symlink_to(_folder() / name)


def _write_data(folder: Path) -> None:
    from PIL import Image

    rng = np.random.default_rng(0)
    y = rng.integers(2, size=_ROWS)
    group = np.where(rng.random(_ROWS) < 0.7, y, 1 - y)
    number = y + rng.normal(size=_ROWS)
    people = [f"{i},{number[i]:.3f},{'abc'[i % 3]},{'fm'[group[i]]},{'ns'[i % 2]},{y[i]}" for i in range(_ROWS)]
    (folder / "people.csv").write_text("\n".join(["id,age,job,sex,region,income", *people]) + "\n")
    shops = [
        f"{number[i]:.3f},2020-{1 + i % 12:02d}-{1 + i % 28:02d},shop number {i} {'near' if y[i] else 'far'},"
        f"{'xy'[group[i]]},{'yes' if y[i] else 'no'}"
        for i in range(2 * _ROWS)
        if i < _ROWS
    ]
    shops += [line.replace("number", "no.") for line in shops]
    (folder / "shops.csv").write_text("\n".join(["size,since,name,town,open", *shops]) + "\n")
    comments = [
        f"{'bad awful' if y[i] else 'good fine'} thing {i % 7} of {'one' if group[i] else 'two'},{'pq'[group[i]]},{y[i]}"
        for i in range(_ROWS)
    ]
    (folder / "comments.csv").write_text("\n".join(["words,about,toxic", *comments]) + "\n")
    x = np.stack([number, rng.normal(size=_ROWS), rng.normal(size=_ROWS)], axis=1).astype(np.float32)
    np.savez(folder / "arrays.npz", x=x, y=y, g=group)
    for i in range(_ROWS // 2):
        place = folder / "images" / ("dark", "light")[y[i]]
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 128, size=(8, 8, 3)) + 100 * y[i]
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"{i}.png")
