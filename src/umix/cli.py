"""The command line.

Exit codes: 0 done; 2 the user's input is wrong; 1 the machine cannot go on, or a run has failed; 130 Ctrl-C; 143 SIGTERM. What
ended a command is one sentence on standard error.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from cyclopts import App, CycloptsError, UnusedCliTokensError

from umix.commands.bench import bench
from umix.commands.catalogue import methods, nets, presets, tasks
from umix.commands.clean_output import clean_output
from umix.commands.demo import demo
from umix.commands.doctor import doctor
from umix.commands.evaluate import evaluate
from umix.commands.export import export
from umix.commands.flags import as_flag
from umix.commands.predict import predict
from umix.commands.report import report
from umix.commands.run import run
from umix.commands.table import table
from umix.commands.theory import theory
from umix.commands.tune import tune
from umix.commands.weights import weights
from umix.errors import UserError, one_line
from umix.machine_faults import machine_error
from umix.terminal import ERR, OUT, OutputClosed, drop_output
from umix.version import __version__

_MOMENT = 0.05  # seconds

app = App(
    name="umix",
    version=__version__,
    help="Train classifiers that hold up on every subpopulation, without group labels at training time.",
    suppress_keyboard_interrupt=False,  # main prints what to do next
    console=OUT,
)

for _command in (
    demo,
    run,
    bench,
    tune,
    table,
    report,
    predict,
    evaluate,
    export,
    weights,
    tasks,
    nets,
    methods,
    presets,
    theory,
    doctor,
):
    app.command(_command)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with clean_output():
        return _run(argv)


def _run(argv: list[str] | None) -> int:
    terminated: list[int] = []
    try:
        with _no_interrupt_lost(), _sigterm_interrupts(terminated):
            code = app(argv, exit_on_error=False, print_error=False, result_action="return_value")
    except UserError as error:
        return _ended(error.message(as_flag), 2)
    except UnusedCliTokensError as error:
        return _ended(_about_words(error.unused_tokens or []), 2)
    except CycloptsError as error:
        return _ended(str(error), 2)
    except OutputClosed:
        drop_output()
        return 0
    except KeyboardInterrupt:
        how, number = ("terminated", signal.SIGTERM) if terminated else ("interrupted", signal.SIGINT)
        return _ended(f"{how}; what is finished is kept, and the same command goes on from there.", 128 + number)
    except Exception as error:
        if (fault := machine_error(error)) is not None:
            drop_output()  # it may be the place that is full
            return _ended(fault.message(as_flag), 1)
        if isinstance(error, OSError) and error.filename is not None:
            return _ended(_about_path(error), 2)
        raise
    return int(code or 0)


def _about_words(words: list[str]) -> str:
    """What to do about words of a command that belong to no flag."""
    return (
        f"The words {' '.join(words)!r} belong to no flag; a flag takes one word, several names are written with commas "
        "(sex,race), and a name with spaces in quotes."
    )


def _about_path(error: OSError) -> str:
    """What the operating system refuses to do with a path, in one sentence."""
    reason = "it is a file and no folder" if isinstance(error, FileExistsError) else error.strerror
    return f"Cannot use {os.fsdecode(error.filename)}: {reason}; name another file or folder."


def _ended(sentence: str, code: int) -> int:
    """Say why the command ends, as far as standard error can be written to, and return the exit code."""
    with contextlib.suppress(OSError):
        ERR.out(f"umix: {one_line(sentence, longest=290)}", highlight=False)
    return code


@contextlib.contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """Inside the block, Ctrl-C in the middle of a callback in which Python ignores exceptions is repeated a moment later."""
    before = sys.unraisablehook

    def repeat(lost: "sys.UnraisableHookArgs") -> None:
        if lost.exc_type is KeyboardInterrupt:
            threading.Timer(_MOMENT, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            before(lost)

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextlib.contextmanager
def _sigterm_interrupts(terminated: list[int]) -> Iterator[None]:
    """Inside the block SIGTERM ends a command in the way of Ctrl-C and is added to ``terminated``; a second one ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        terminated.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
