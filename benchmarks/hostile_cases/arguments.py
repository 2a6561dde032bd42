"""Commands with arguments that make no sense."""

from pathlib import Path

import numpy as np

from hostile_cases.case import Case, Maker

COMMANDS = [
    "run",
    "bench",
    "tune",
    "table",
    "select",
    "report",
    "figures",
    "predict",
    "export",
    "weights",
    "tasks",
    "nets",
    "methods",
    "presets",
    "theory",
    "doctor",
    "demo",
]
WORDS = (
    "",
    " ",
    "-",
    "--",
    "---",
    "none",
    "nan",
    "-1",
    "0",
    "1e400",
    "9" * 5000,
    "x" * 5000,
    "a\nb",
    "a\x00b",
    "\udc80",
    "\u202egnp.x",
    "..",
    "/",
    "~",
    "*",
    "$(id)",
    "a=b",
    "=",
    "{}",
    "[]",
    "[[[[",
    "four_moons",
    "erm",
)
FLAGS = [
    "--seed",
    "--set",
    "--net",
    "--preset",
    "--select",
    "--min-group",
    "--use-groups",
    "--budget",
    "--trials",
    "--time",
    "--decide",
    "--root",
    "--cache",
    "--log",
    "--out",
    "--label",
    "--groups",
    "--split",
    "--id",
    "--weight",
    "--drop",
    "--x",
    "--rows",
    "--label-from",
    "--folders",
    "--metadata",
    "--path",
    "--devices",
    "--nodes",
    "--strategy",
    "--precision",
    "--methods",
    "--seeds",
    "--workers",
    "--file",
    "--tune",
    "--json",
    "--nope",
    "-o",
    "-q",
]


def any_words(folder: Path, rng: np.random.Generator) -> Case:
    """A command with up to six words and flags drawn at random; never one that trains on embedded data."""
    command = str(rng.choice([name for name in COMMANDS if name not in ("demo", "figures", "theory")]))
    words = [str(rng.choice([*WORDS, *FLAGS])) for _ in range(int(rng.integers(1, 7)))]
    if command in ("run", "bench", "tune"):
        words = ["nowhere" if word == "four_moons" else word for word in words]
    return Case(f"umix {command} with drawn words", [command, *words])


def flag_of_a_run(folder: Path, rng: np.random.Generator) -> Case:
    """A run of an embedded task, which one flag with a wrong value must stop."""
    flag, value = str(rng.choice(["--set", "--seed", "--preset", "--select", "--net"])), str(rng.choice(WORDS))
    if flag == "--set":
        key = str(rng.choice(["fit.epochs", "fit.lr", "fit.batch_size", "net.hidden", "erm", "nope", ""]))
        value = f"{key}={value}"
    # One epoch, so that a value that is accepted costs little.
    return Case(f"{flag} {value[:40]!r}", ["run", "four_moons", "erm", "--set", "fit.epochs=1", flag, value])


MAKERS: tuple[Maker, ...] = (any_words, flag_of_a_run)
