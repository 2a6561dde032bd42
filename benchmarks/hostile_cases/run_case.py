"""Runs a case in this process and judges what it printed, left behind and returned."""

import contextlib
import io
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from hostile_cases.case import CANARY, Case
from umix.cli import main

LONGEST = 300  # characters of the line that refuses
_BROKEN = re.compile(
    r'^.*: broken, \d+ finding|"verdict": "broken"', re.MULTILINE
)  # the doctor's verdict is its sentence
_RAW_WARNING = re.compile(r"^\S.*:\d+: \w*Warning: ", re.MULTILINE)


@final
@dataclass(frozen=True)
class Outcome:
    """How a case ended: ``refused`` in one sentence, ``accepted``, or ``failed`` for the reason in ``why``."""

    end: Literal["refused", "accepted", "failed"]
    why: str = ""
    seconds: float = 0.0


class _TookTooLong(BaseException):
    pass


def run_case(case: Case, folder: Path, *, limit: float) -> Outcome:
    """The outcome of ``case``, whose files lie in ``folder``; after ``limit`` seconds it counts as a hang; 0 is no limit."""
    canary = folder.with_name(f"{folder.name}.canary")
    before = {path: _content(path) for path in case.outputs}
    began = time.perf_counter()
    with _inside(folder, canary), _raw_errors() as raw, _time_limit(limit), _streams(case.stdin) as printed:
        try:
            code: int | str = main(case.argv)
        except _TookTooLong:
            code = f"hang: more than {limit:g} s"
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException as error:
            code = f"traceback: {_where(error)}"
    seconds = time.perf_counter() - began
    why = "" if code == 2 and _BROKEN.search(printed.text("stdout")) else _fault(code, printed.text("stderr"))
    if raw and not why:
        why = f"printed by a library: {raw[0][:160]!r}"
    if canary.exists():
        why = "canary: code of the input was run"
        canary.unlink()
    elif not why and code and any(_content(path) != content for path, content in before.items()):
        why = "left behind: an output of a refused command"
    elif not why and (left := [path.name for path in folder.rglob(".*.aside")]):
        why = f"left behind: {left[0]}"
    return Outcome("failed" if why else "refused" if code else "accepted", why, seconds)


def _fault(code: int | str, said: str) -> str:
    """What is wrong with an exit code and with what was printed to standard error; empty if nothing is."""
    if isinstance(code, str):
        return code
    if "Traceback (most recent call last)" in said:
        return "traceback printed"
    if raw := _RAW_WARNING.search(said):
        return f"raw warning: {said[raw.start() : raw.start() + 160]!r}"
    if code == 0:
        return ""
    if code != 2:
        return f"exit code {code}: {said[-200:]!r}"
    lines = [line for line in said.splitlines() if line.strip()]
    if not lines or not lines[-1].startswith("umix: "):
        return f"no sentence: {said[-200:]!r}"
    if sum(line.startswith("umix: ") for line in lines) > 1:
        return f"several lines: {said[-200:]!r}"
    return f"too long ({len(lines[-1])}): {lines[-1]!r}" if len(lines[-1]) > LONGEST else ""


def _where(error: BaseException) -> str:
    """The type and message of ``error``, and the last lines of umix that it passed."""
    frames = [at for at in traceback.extract_tb(error.__traceback__) if "/umix/" in at.filename]
    paths = " < ".join(f"{at.filename.rpartition('/umix/')[2]}:{at.lineno}" for at in reversed(frames[-2:]))
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]} ({paths})"


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


@contextlib.contextmanager
def _inside(folder: Path, canary: Path) -> Iterator[None]:
    """The current folder is ``folder``, as for a person who typed the command there; warnings are shown as usual."""
    here, path = Path.cwd(), list(sys.path)
    os.environ[CANARY] = str(canary)
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            yield
    finally:
        os.chdir(here)
        sys.path[:] = path


@contextlib.contextmanager
def _raw_errors() -> Iterator[list[str]]:
    """What libraries write to the descriptor of standard error, past Python, after the block: at most one text."""
    found: list[str] = []
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            found += [text] if (text := file.read().decode("utf-8", "replace").strip()) else []


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _TookTooLong

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@final
class _Printed:
    """Standard output and standard error as UTF-8 files in memory, which refuse what a terminal refuses."""

    def __init__(self) -> None:
        self.files = {
            name: io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for name in ("stdout", "stderr")
        }

    def text(self, name: str) -> str:
        raw = self.files[name].buffer
        return raw.getvalue().decode("utf-8", "replace") if isinstance(raw, io.BytesIO) else ""


@contextlib.contextmanager
def _streams(stdin: bytes) -> Iterator[_Printed]:
    printed, given = _Printed(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(printed.files["stdout"]), contextlib.redirect_stderr(printed.files["stderr"]):
            yield printed
    finally:
        sys.stdin = given
