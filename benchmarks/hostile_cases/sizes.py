"""Numbers that are too large for memory or for a lifetime: in settings, flags and studies; and long cells of tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars

from hostile_cases.case import Case, Maker
from hostile_cases.document_mutations import HUGE, one_of, toml
from hostile_cases.settings_files import QUICK, defaults, settings_of, study_of
from umix.data.arrays import ArraySource
from umix.data.benchmarks.colored_digits import ColoredDigits
from umix.data.tables.source import TableSource
from umix.data.texts.source import TextSource
from umix.nets.registry import NETS

NUMBERS = (*HUGE, 0, -1, 1e-300, 5e-324, float("nan"), float("inf"))
#: Numbers at the bounds of what is accepted, and beyond what small data can use.
EDGES = {float: (1e12, 1e-12, 1e6, 1e-6, 999.0), int: (100, 40)}
#: Options of libraries of trees.
OPTIONS = (
    "n_jobs",
    "num_threads",
    "max_bins",
    "max_bin",
    "l2_regularization",
    "verbose",
    "min_data_in_bin",
    "subsample",
)
ON_ROWS = ("mlp", "tabular", "linear", "trees", "lightgbm")


def _numbers(rng: np.random.Generator) -> Any:
    """A number, or a list of them."""
    return one_of(rng, NUMBERS) if rng.integers(4) else [one_of(rng, NUMBERS) for _ in range(int(rng.integers(1, 4)))]


def setting_of_four_moons(folder: Path, rng: np.random.Generator) -> Case:
    """A number of any part of a run on four moons, given with ``--set``, in a preset or in a study."""
    method = str(rng.choice(QUICK))
    tables = settings_of(method)
    if rng.integers(3) == 0:
        name = str(rng.choice(ON_ROWS))
        method = method if NETS[name].by_gradients else "erm"
        tables = settings_of(method) | {"net": {"name": name, **defaults(NETS[name])}}
        tables["net"].pop("categories", None)
        if not NETS[name].by_gradients:
            tables["fit"] = {"epochs": 2}
            tables["net"]["options"] = {one_of(rng, OPTIONS): one_of(rng, NUMBERS)} if rng.integers(2) else {}
    numeric = [
        (part, name)
        for part, values in tables.items()
        for name, value in values.items()
        if not isinstance(value, str | bool | dict)
    ]
    part, name = numeric[int(rng.integers(len(numeric)))]
    usual = tables[part][name]
    value = _numbers(rng) if isinstance(usual, list) else one_of(rng, NUMBERS)
    if type(usual) in EDGES and rng.integers(2):
        value = one_of(rng, EDGES[type(usual)])
    what = f"{method}, {tables['net']['name']}, {part}.{name} = {str(value)[:40]}"
    how = int(rng.integers(3))
    if how == 0:
        (folder / "preset.toml").write_text(toml({"default": tables}))
        given = toml({"v": value}).partition(" = ")[2].strip()
        argv = ["run", "four_moons", method, "--preset", "preset.toml", "--set", f"{part}.{name}={given}", "-q"]
        return Case(f"--set {what}", argv)
    tables[part][name] = value
    if how == 1:
        (folder / "preset.toml").write_text(toml({"default": tables}))
        return Case(f"preset {what}", ["run", "four_moons", method, "--preset", "preset.toml", "-q"])
    study = study_of([method]) | {
        "settings": {key: part for key, part in tables.items() if key not in ("task", method)}
    }
    study["tasks"][0]["settings"] = tables["task"]
    study["methods"][0]["settings"] = {method: tables[method]}
    (folder / "study.toml").write_text(toml(study))
    return Case(f"study {what}", ["bench", "--file", "study.toml", "--plan"])


def _rows(n: int = 48) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    return {
        "a": a,
        "b": rng.choice(["x", "y"], n),
        "text": rng.choice(["one two", "three four"], n),
        "y": (a > 0).astype(int),
    }


def _image_folder(folder: Path) -> None:
    from PIL import Image

    for kind in ("cat", "dog"):
        (folder / "photos" / kind).mkdir(parents=True)
        for number in range(12):
            Image.new("RGB", (8, 8), (number * 9, 40, 90)).save(folder / "photos" / kind / f"{number}.png")


def setting_of_own_data(folder: Path, rng: np.random.Generator) -> Case:
    """A number of how a table, arrays, texts or images are read, or of the net that is trained on them."""
    kind = str(rng.choice(["table", "arrays", "text", "images", "digits"]))
    part, name = "net", "hidden"
    flags, task = ["--label", "y"], "people.csv"
    if kind in ("table", "text"):
        polars.DataFrame(_rows()).write_csv(folder / "people.csv")
        flags += ["--text", "text"] if kind == "text" else []
        source: Any = TextSource if kind == "text" else TableSource
    elif kind == "arrays":
        rows, task, source = _rows(), "people.npz", ArraySource
        np.savez(folder / task, x=np.stack([rows["a"]] * 3, axis=1), y=rows["y"])
    elif kind == "images":
        from umix.data.images.image_folder import ImageFolder

        _image_folder(folder)
        flags, task, source = ["--label-from", "folder"], "photos/", ImageFolder
    else:
        flags, task, source = [], "colored_digits", ColoredDigits
    fields = [
        field
        for field, value in (defaults(source) | {"tokens": 1, "size": 1}).items()
        if field in source.model_fields and isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if rng.integers(2):
        part, name = "task", str(rng.choice(fields))
    net = str(rng.choice(["mlp", "cnn"] if kind == "images" else ["mlp"] if kind == "digits" else ["mlp", "tabular"]))
    if part == "net":
        name = "channels" if net == "cnn" else "hidden"
    value = _numbers(rng) if part == "net" else one_of(rng, NUMBERS)
    given = toml({"v": value}).partition(" = ")[2].strip()
    net_flags = ["--net", net] if kind not in ("text",) else []
    argv = ["run", task, "erm", *flags, *net_flags, "--set", "fit.epochs=1", "--set", f"{part}.{name}={given}", "-q"]
    return Case(f"{kind}, {net}, {part}.{name} = {str(value)[:40]}", argv)


#: Several processes would each run this campaign again.
PROCESSES = (-1, 0, 10**6, 10**12, 10**30, "9" * 5000, "1e9", "nan")


def flag(folder: Path, rng: np.random.Generator) -> Case:
    """A number that is given with a flag."""
    number = str(one_of(rng, (*NUMBERS, "9" * 5000, "1e9", "0x10", "1_000_000", "٣")))
    run = ["run", "four_moons", "erm", "--set", "task.sizes=[24,8,8,24]", "--set", "task.eval_size=8"]
    run += ["--set", "fit.epochs=1"]
    bench = ["bench", "four_moons", "--methods", "erm,umix", "--set", "fit.epochs=1", "--set", "task.sizes=[24,8,8,24]"]
    tune = ["tune", "four_moons", "focal", *run[3:]]
    plan = [*bench, "--plan"]
    argv = one_of(
        rng,
        (
            *([*run, name, number] for name in ("--seed", "--min-group", "--budget")),
            *([*run, name, str(one_of(rng, PROCESSES))] for name in ("--devices", "--nodes")),
            *([*run, name, number] for name in ("--trials", "--time")),
            *(
                [*plan, "--seeds", seeds]
                for seeds in (number, f"0:{number}", f"{number}:0", f"0,{number}", f"1:{number},0")
            ),
            *([*plan, name, number] for name in ("--workers", "--min-group")),
            [*plan, "--workers", "1", "--threads", number],
            [*plan, "--workers", number, "--threads", number],
            [*bench, "--workers", str(one_of(rng, (10**6, 10**12, -1, 0)))],
            [*bench, "--seeds", "0", "--tune", str(one_of(rng, (10**9, 10**15, -1, 0)))],
            [*tune, "--trials", str(one_of(rng, (10**9, 10**15, -1, 0)))],
            [*tune, "--trials", "1", "--seeds", f"0:{number}"],
            [*tune, "--trials", "1", "--range", f"gamma=1:{number}"],
            [*tune, "--trials", "1", "--range", f"fit.epochs={number}:{one_of(rng, NUMBERS)}"],
            [*tune, "--trials", "1", "--range", f"fit.batch_size=2:{number}:log"],
            [*tune, "--trials", "1", "--choices", f"fit.batch_size={number},{one_of(rng, NUMBERS)}"],
        ),
    )
    return Case(f"{argv[0]} {' '.join(argv[-3:])[:60]}", [*argv, "-q"])


def table_cell(folder: Path, rng: np.random.Generator) -> Case:
    """A table with a cell or a name that is longer than parsers take."""
    rows = _rows()
    size = int(rng.choice([1000, 100_000, 131_072, 140_000, 3_000_000]))
    makers: tuple[Callable[[], tuple[str, str]], ...] = (
        lambda: (
            "people.csv",
            f"{'a' * size},y\n" + "".join(f"{a},{y}\n" for a, y in zip(rows["a"], rows["y"], strict=True)),
        ),
        lambda: ("people.csv", f'"{"a" * size}\n{"b" * size}",y\n1,0\n2,1\n'),
        lambda: ("people.csv", f"a,y\n{'x' * size},0\n" + "1,1\n2,0\n" * 20),
        lambda: ("people.csv", ",".join(f"c{n}" for n in range(size // 50)) + ",y\n" + "1,0\n" * 3),
        lambda: ("people.csv", '"' + "a" * size),
        lambda: ("people.csv", '"a,y\n' + "1,0\n" * size),
        lambda: ("people.tsv", "\t" * size + "y\n1\n"),
        lambda: ("people.jsonl", "".join(json.dumps({f"c{n}": n, "y": n % 2}) + "\n" for n in range(300))),
        lambda: ("people.jsonl", '{"a": 1, "y": 0}\n' * 20 + '{"a": "' + "x" * size + '", "y": 1}\n' * 3),
    )
    name, content = one_of(rng, makers)()
    (folder / name).write_text(content)
    argv = ["run", name, "erm", "--label", "y", "--set", "fit.epochs=1", "-q"]
    return Case(f"{argv[0]} {name} {content[:40]!r}, {len(content)} characters", argv)


MAKERS: tuple[Maker, ...] = (
    setting_of_four_moons,
    setting_of_own_data,
    flag,
    setting_of_four_moons,
    table_cell,
    setting_of_own_data,
)
