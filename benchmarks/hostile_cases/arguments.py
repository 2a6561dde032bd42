"""Commands with arguments that make no sense."""

from functools import cache
from pathlib import Path

import numpy as np

from hostile_cases.case import Case, Maker
from hostile_cases.document_mutations import one_of
from hostile_cases.settings_files import finished_run
from umix.cli import app

COMMANDS = [
    "run",
    "bench",
    "tune",
    "table",
    "report",
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
    "--threshold",
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
    command = str(rng.choice([name for name in COMMANDS if name not in ("demo", "theory")]))
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


#: Values that some flag takes.
KNOWN = (
    *(
        "worst",
        "average",
        "last",
        "worst_class",
        "balanced",
        "oracle",
        "tuned",
        "off",
        "val",
        "train",
        "test",
        "y",
        "a",
        "a,b",
        "y,y",
    ),
    *(
        "1",
        "2",
        "0.5",
        "1e-3",
        "-0",
        "true",
        "csv",
        "json",
        "terminal",
        "default",
        "paper",
        "nope.toml",
        "people.csv",
        "run",
    ),
    *(
        "new.csv",
        "new.parquet",
        "new.txt",
        "README.md",
        "model.onnx",
        "mlp",
        "trees",
        "tabular",
        "linear",
        "auto",
        "folder",
    ),
    *(
        "fit.lr=0.1",
        "eta=3",
        "net.hidden=[4]",
        "fit.lr",
        "fit.lr=",
        "=1",
        "fit.lr=0.1:1",
        "fit.lr=1:0.1:log",
        "fit.lr=1,2",
    ),
    *("recall:0", "brier", "auroc:nope", "{a}/{b}", "32-true", "bf16-mixed", "ddp", "tensorboard", "0:2", "0,1", "2:0"),
    *(
        "sqlite:///x.db",
        "sqlite:////nowhere/x.db",
        "nope://",
        "svg",
        "png",
        "mit",
        "onnx",
        "pt2",
        "state_dict",
        "card",
        "erm,jtt",
    ),
)
#: Flags that start processes, clusters or browsers, or write logs, and words that are folders outside of the case's own.
LEFT_OUT = {
    "--devices",
    "--nodes",
    "--ray",
    "--open",
    "--workers",
    "--mlflow-uri",
    "--log",
    "--tune",
    "--help",
    "--version",
}
OUTSIDE = {"/", "..", "~"}


@cache
def flags_of(command: str) -> tuple[tuple[str, bool], ...]:
    """The flags of a command, and whether each stands alone."""
    arguments = app[command].assemble_argument_collection()
    names = {name: argument.hint is bool for argument in arguments for name in argument.names if name.startswith("-")}
    return tuple((name, alone) for name, alone in names.items() if name not in LEFT_OUT)


def drawn_flags(folder: Path, rng: np.random.Generator) -> Case:
    """A command that is right, on a small table or a finished run, with one to three more flags of its own and drawn values."""
    for name, content in finished_run().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    tiny = ["--set", "fit.epochs=1", "--set", "task.sizes=[24,8,8,24]", "--set", "task.eval_size=8"]
    short = ["--set", "fit.epochs=1", "--net", "linear"]
    commands = (
        ["run", "four_moons", "erm", *tiny],
        ["run", "people.csv", "erm", "--label", "y", *short],
        ["bench", "people.csv", "--methods", "erm", "--label", "y", "--seeds", "0", "--plan"],
        ["bench", "four_moons", "--methods", "erm,umix", "--seeds", "0", "--plan"],
        ["tune", "four_moons", "focal", "--trials", "1", *tiny],
        ["predict", "run", "people.csv"],
        ["export", "run"],
        ["weights", "run"],
        ["table", "."],
        ["table", ".", "--select", "all"],
        ["doctor"],
        *(["tasks"], ["nets"], ["methods"], ["presets"]),
    )
    argv = list(one_of(rng, commands))
    flags = flags_of(argv[0])
    for _ in range(int(rng.integers(1, 4))):
        if not flags:
            break
        flag, alone = one_of(rng, flags)
        value = one_of(rng, KNOWN) if rng.integers(3) else one_of(rng, WORDS)
        argv += [flag] if alone and rng.integers(5) else [flag, "x" if value in OUTSIDE else value]
    return Case(" ".join(argv)[-90:], [*argv, *([] if "-q" in argv or "-q" not in dict(flags) else ["-q"])])


MAKERS: tuple[Maker, ...] = (any_words, flag_of_a_run, drawn_flags, drawn_flags)
