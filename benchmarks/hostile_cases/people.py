"""A small valid table, the commands that read it, and a run that was trained on it."""

import atexit
import contextlib
import io
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars

from hostile_cases.case import Case
from hostile_cases.mutations import pick
from umix.cli import main

#: The columns with a role, and the flag that gives it to them.
ROLES = {"y": "--label", "g": "--groups", "h": "--groups", "split": "--split", "id": "--id", "w": "--weight"}
INPUTS = ("age", "city", "day")
QUICK = ("--set", "fit.epochs=1")
Columns = dict[str, list[Any]]


def people(rng: np.random.Generator, n: int | None = None) -> Columns:
    """A table that can be trained on, with a column for every role."""
    n = int(rng.integers(20, 81)) if n is None else n
    turn = np.arange(n)
    return {
        "id": [f"r{row}" for row in range(n)],
        "age": np.round(rng.normal(40, 12, n), 2).tolist(),
        "city": [("bern", "rome", "oslo")[i] for i in rng.integers(0, 3, n)],
        "day": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in turn],
        "g": [("a", "b")[i] for i in rng.integers(0, 2, n)],
        "h": rng.integers(0, 2, n).tolist(),
        "split": [("train", "train", "val", "test")[i // 2 % 4] for i in turn],
        "w": np.round(rng.uniform(0.5, 2, n), 3).tolist(),
        "y": [("no", "yes")[i] for i in turn % 2],
    }


def roles(rng: np.random.Generator) -> list[str]:
    """Flags that give some of the columns their roles, the label always."""
    groups = pick(rng, ([], [], ["g"], ["g", "h"], ["h"]))
    words = ["--label", "y", *(("--groups", ",".join(groups)) if groups else ())]
    for flag, name in (("--split", "split"), ("--id", "id"), ("--weight", "w")):
        if rng.random() < 0.4:
            words += [flag, name]
    return words


def reads(path: str, rng: np.random.Generator, flags: list[str]) -> list[str]:
    """A command that reads the data at ``path`` as a run does."""
    kind = rng.random()
    if kind < 0.4:
        return ["doctor", path, *flags, *(["--json"] if rng.random() < 0.2 else [])]
    if kind < 0.9:
        return ["run", path, "erm", *flags, *QUICK, *(["--json"] if rng.random() < 0.2 else [])]
    if kind < 0.96:
        return ["run", path, "umix", *flags, *QUICK, "--set", "trajectory.epochs=1", "--set", "umix.length=1"]
    return ["run", path, "erm", "--net", "trees", *flags, *QUICK]


def some_run(rng: np.random.Generator) -> Path:
    """A finished run on the table: mostly of a net on all columns, else of trees, or of the words of a text."""
    kind = rng.random()
    return table_run() if kind < 0.7 else trees_run() if kind < 0.85 else text_run()


@cache
def trees_run() -> Path:
    """The same as ``table_run`` with trees, which take categories as codes."""
    content = polars.DataFrame(people(np.random.default_rng(0), 60)).write_csv()
    return trained("people.csv", content, id="id", split="split", net="trees")


@cache
def text_run() -> Path:
    """The same as ``table_run`` with a column of texts as the only input."""
    columns = people(np.random.default_rng(0), 60)
    return trained("people.csv", polars.DataFrame(columns).write_csv(), id="id", split="split", text="city")


@cache
def table_run() -> Path:
    """A finished run on the table, made once in every process."""
    return trained(
        "people.csv", polars.DataFrame(people(np.random.default_rng(0), 60)).write_csv(), id="id", split="split"
    )


def trained(name: str, content: str | bytes, **flags: str) -> Path:
    """The folder of a finished run on a file with this ``content``, which is removed when the process ends."""
    scratch = Path(tempfile.mkdtemp(prefix="hostile-run-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    path = scratch / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    words = [word for flag, value in {"label": "y", **flags}.items() for word in (f"--{flag.replace('_', '-')}", value)]
    return train(scratch, str(path), *words)


def train(scratch: Path, path: str, *words: str) -> Path:
    """The folder below ``scratch`` of a finished run on the data at ``path``."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if main(["run", path, "erm", *words, *QUICK, "--quiet", "--out", str(scratch / "runs")]):
            raise RuntimeError(f"the run on {path} must succeed")
    return next(record.parent for record in (scratch / "runs").glob("*/record.json"))


def predicts(run: Path, new: str, rng: np.random.Generator, folder: Path, *, stdin: bytes = b"", what: str) -> Case:
    """A prediction for ``new`` into a file or, as CSV, to standard output."""
    output = pick(rng, ("out.csv", "out.parquet", "out.jsonl", "out.arrow", "-"))
    argv = ["predict", str(run), new, "-o", output, *(["--json"] if rng.random() < 0.2 and output != "-" else [])]
    outputs = () if output == "-" else (folder / output,)
    return Case(what, argv, stdin=stdin, outputs=outputs)
