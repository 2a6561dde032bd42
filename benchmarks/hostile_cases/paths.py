"""Files with odd names, links, pipes and devices in place of files, and outputs that cannot or must not be written."""

import contextlib
import io
import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
from PIL import Image

from hostile_cases.arrays import array_run
from hostile_cases.case import Case, Maker
from hostile_cases.images import image_run
from hostile_cases.mutations import odd_text, pick
from hostile_cases.people import QUICK, people, roles, table_run
from umix.cli import main

SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".arrow", ".npz", ".npy", ".png", "")


def odd_name(rng: np.random.Generator, suffix: str = "") -> str:
    """A name that a file may have, or nearly."""
    names = (
        "x" * (254 - len(suffix)),
        "x" * (255 - len(suffix)),
        "x" * 300,
        "é" * 120,
        "é" * 127,
        os.fsdecode(b"caf\xe9"),
        os.fsdecode(b"\xff\xfe"),
        "a\nb",
        "a\x1b[31mb",
        "a\x00b",
        " ",
        ".",
        "..",
        "-x",
        "--label",
        "a,b",
        "[red]x[/red]",
        "x/" * 700 + "x",
        "nowhere/x",
        "~",
        "four_moons",
        "con",
        odd_text(rng),
    )
    return pick(rng, names) + suffix


def _write(path: Path, rng: np.random.Generator) -> bool:
    """Write a valid file of the kind that the suffix says; whether the name is one that a file can have."""
    columns = people(rng)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        match path.suffix:
            case ".npz":
                np.savez(path, x=rng.normal(size=(40, 3)), y=np.arange(40) % 2)
            case ".npy":
                np.save(path, rng.normal(size=(40, 3)))
            case ".png":
                Image.fromarray(rng.integers(0, 255, (9, 9, 3), dtype=np.uint8)).save(path)
            case ".parquet":
                with path.open("wb") as file:
                    polars.DataFrame(columns).write_parquet(file)
            case ".arrow":
                with path.open("wb") as file:
                    polars.DataFrame(columns).write_ipc(file)
            case ".tsv":
                path.write_text(polars.DataFrame(columns).write_csv(separator="\t"))
            case ".jsonl":
                path.write_text(polars.DataFrame(columns).write_ndjson())
            case _:
                path.write_text(polars.DataFrame(columns).write_csv())
    except (OSError, ValueError):
        return False
    return True


def _command(path: str, suffix: str, rng: np.random.Generator, folder: Path) -> list[str]:
    """A command that reads ``path``."""
    if rng.random() < 0.35:
        run = {".npz": array_run, ".npy": array_run, ".png": image_run}.get(suffix, table_run)()
        return ["predict", str(run), path, "-o", "out.csv"]
    flags = (
        ["--label-from", "folder"]
        if suffix in (".png", "")
        else ["--label", "y"]
        if suffix[:3] == ".np"
        else roles(rng)
    )
    if suffix == ".npy":
        _write(folder / "rows.csv", rng)
        flags += ["--rows", "rows.csv"]
    if rng.random() < 0.4:
        return ["doctor", path, *flags, *(["--json"] if rng.random() < 0.3 else [])]
    json = ["--json"] if rng.random() < 0.2 else []
    return ["run", path, "erm", *flags, *QUICK, *json]


def named_oddly(folder: Path, rng: np.random.Generator) -> Case:
    """A valid file with an odd name."""
    suffix = pick(rng, SUFFIXES[:-1])
    name = odd_name(rng, suffix)
    there = _write(folder / name.lstrip("/"), rng)
    path = pick(rng, (name, name, f"./{name}", f"{name}/"))
    return Case(f"{name[:30]!r}{'' if there else ', not there'}", _command(path, suffix, rng, folder))


def no_file(folder: Path, rng: np.random.Generator) -> Case:
    """A link, a pipe, a socket, a device or a folder called as a file."""
    suffix = pick(rng, SUFFIXES)
    name = f"t{suffix}"
    make = pick(rng, ENTRIES)
    make(folder / name, rng)
    command = _command(pick(rng, (name, f"{name}/")), suffix, rng, folder)
    return Case(f"{make.__name__.strip('_')} {name}", command)


def _dangling(path: Path, rng: np.random.Generator) -> None:
    path.symlink_to("nowhere/else")


def _loop(path: Path, rng: np.random.Generator) -> None:
    path.symlink_to("other")
    path.with_name("other").symlink_to(path.name)


def _link(path: Path, rng: np.random.Generator) -> None:
    _write(path.with_name(f"target{path.suffix}"), rng)
    path.symlink_to(f"target{path.suffix}")


def _pipe(path: Path, rng: np.random.Generator) -> None:
    os.mkfifo(path)


def _socket(path: Path, rng: np.random.Generator) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket may have 108 bytes
        made.bind(path.name)
        os.chdir(here)


def _device(path: Path, rng: np.random.Generator) -> None:
    """A link to a device: to one of its own, because a command that replaced /dev/null would harm the machine."""
    try:
        os.mknod(path.with_name("device"), stat.S_IFCHR | 0o666, os.makedev(1, int(pick(rng, (3, 5, 7, 9)))))
        path.symlink_to("device")
    except PermissionError:  # only root may make devices
        os.mkfifo(path)


def _folder(path: Path, rng: np.random.Generator) -> None:
    path.mkdir()
    (path / "x").mkdir()


def _folder_link(path: Path, rng: np.random.Generator) -> None:
    path.symlink_to(".")


def _empty(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(b"")


def _read_only(path: Path, rng: np.random.Generator) -> None:
    _write(path, rng)
    path.chmod(0)


ENTRIES: tuple[Callable[[Path, np.random.Generator], None], ...] = (
    _dangling,
    _loop,
    _link,
    _pipe,
    _socket,
    _device,
    _folder,
    _folder_link,
    _empty,
    _read_only,
)


def odd_output(folder: Path, rng: np.random.Generator) -> Case:
    """A prediction, a table, a report, weights or an export into an odd place."""
    _write(folder / "new.csv", rng)
    run = table_run()
    command, suffixes = pick(
        rng,
        (
            (["predict", str(run), "new.csv"], (".csv", ".parquet", ".jsonl", ".arrow")),
            (["predict", str(run), "new.csv"], (".csv", ".parquet")),
            (["table", str(run.parent)], (".md", ".csv", ".tex", ".json")),
            (["weights", str(run)], (".csv",)),
            (["export", str(run)], (".pt", ".safetensors", ".md")),
        ),
    )
    suffix = pick(rng, suffixes)
    kind = rng.random()
    if kind < 0.4:
        output = odd_name(rng, pick(rng, (suffix, suffix, "", ".nope")))
    elif kind < 0.8:
        output = f"out{suffix}"
        pick(rng, ENTRIES)(folder / output, rng)
    else:
        for name, target in (("link.csv", "new.csv"), ("self.csv", "./new.csv")):
            (folder / name).symlink_to(target)
        os.link(folder / "new.csv", folder / "hard.csv")
        output = pick(
            rng, ("new.csv", "link.csv", "hard.csv", "./self.csv", "a/b/out.csv", "new.csv/out.csv", "/proc/out.csv")
        )
    return Case(f"{command[0]} -o {output[:40]!r}", [*command, "-o", output], outputs=(folder / "new.csv",))


def odd_runs_folder(folder: Path, rng: np.random.Generator) -> Case:
    """A run whose folder of runs, or cache, is odd."""
    _write(folder / "t.csv", rng)
    out = "runs"
    if rng.random() < 0.5:
        out = odd_name(rng)
    else:
        pick(rng, ENTRIES)(folder / out, rng)
    return Case(f"runs in {out[:40]!r}", ["run", "t.csv", "erm", *roles(rng), *QUICK, "--out", out])


def odd_results(folder: Path, rng: np.random.Generator) -> Case:
    """What is made of a run whose columns, classes and groups have odd names: tables, pages, exports, predictions."""
    columns = people(rng)
    for name in ("g", "h", "y"):
        if rng.random() < 0.7:
            values = [odd_text(rng) for _ in range(2)]
            columns[name] = [pick(rng, values) for _ in columns["y"]]
    names = {name: odd_text(rng) if rng.random() < 0.3 else name for name in columns}
    frame = polars.DataFrame({names[name]: values for name, values in columns.items()})
    table = f"{odd_text(rng).replace('/', '').replace(chr(0), '')[:80]}.parquet"
    with contextlib.suppress(OSError), (folder / table).open("wb") as file:
        frame.write_parquet(file)
    settings = {"label": names["y"], "groups": [names["g"], names["h"]], "id": names["id"], "split": names["split"]}
    words = [word for name, value in settings.items() for word in ("--set", f"task.{name}={json.dumps(value)}")]
    run = ["run", f"./{table}", "erm", *QUICK, *words, "--quiet"]
    if rng.random() < 0.3:
        return Case(f"run on {table[:30]!r}", run)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(run)
    folders = sorted(folder.glob("runs/*/record.json"))
    one = str(folders[0].parent.relative_to(folder)) if folders else "runs"
    commands = (  # but for a report: what draws its charts reserves more memory than a worker may have
        ["table", "--groups"],
        ["table", "-o", pick(rng, ("t.md", "t.tex", "t.csv", "t.json"))],
        ["table", "--metric", "brier"],
        ["table", "--select", "all"],
        ["export", one, "-o", pick(rng, ("README.md", "m.safetensors"))],
        ["predict", one, f"./{table}", "-o", pick(rng, ("-", "p.csv", "p.jsonl", "p.arrow"))],
    )
    command = pick(rng, commands)
    return Case(f"{command[0]} of a run on {table[:30]!r}, {[*names.values()][-3:]}"[:120], command)


MAKERS: tuple[Maker, ...] = (named_oddly, no_file, odd_output, odd_runs_folder, odd_results)
