"""A finished run one of whose files is torn or garbage, and a command that reads it."""

import shutil
from pathlib import Path

import numpy as np

from hostile_cases.case import Case, Maker
from hostile_cases.mutations import pick
from hostile_cases.people import some_run

_COMMANDS = (
    ["predict", "{run}", "{data}", "-o", "out.csv", "-q"],
    ["export", "{run}", "-o", "model.safetensors"],
    ["weights", "{run}", "-o", "out.csv"],
    ["table", "runs"],
    ["report", "runs", "-o", "out.html"],
)


def damaged_run(folder: Path, rng: np.random.Generator) -> Case:
    """One file of a run is cut, emptied or overwritten."""
    run = some_run(rng)
    data = run.parents[1] / "people.csv"
    copy = shutil.copytree(run, folder / "runs" / run.name)
    path = pick(rng, sorted(path for path in copy.rglob("*") if path.is_file()))
    content = path.read_bytes()
    damages = {"cut": content[: int(rng.integers(len(content)))], "emptied": b"", "garbage": rng.bytes(200)}
    how = pick(rng, tuple(damages))
    path.write_bytes(damages[how])
    argv = [word.format(run=copy, data=data) for word in pick(rng, _COMMANDS)]
    outputs = tuple(folder / name for name in ("out.csv", "model.safetensors"))
    return Case(f"{argv[0]} after {path.name} was {how}", argv, outputs=outputs)


MAKERS: tuple[Maker, ...] = (damaged_run,)
