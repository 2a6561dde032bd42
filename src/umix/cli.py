"""The command line. Exit codes: 0 done, 2 the user's input is wrong (one sentence is printed), 1 anything else."""

import os

from cyclopts import App, CycloptsError

from umix.commands.bench import bench
from umix.commands.clean_output import clean_output
from umix.commands.demo import demo
from umix.commands.doctor import doctor
from umix.commands.export import export
from umix.commands.figures import figures
from umix.commands.flag_names import as_flag
from umix.commands.listings import methods, nets, presets, tasks
from umix.commands.predict import predict
from umix.commands.report import report
from umix.commands.run import run
from umix.commands.select import select
from umix.commands.table import table
from umix.commands.theory import theory
from umix.commands.tune import tune
from umix.commands.weights import weights
from umix.errors import UserError, one_line
from umix.terminal import ERR
from umix.version import __version__

app = App(
    name="umix",
    version=__version__,
    help="Train classifiers that hold up on every subpopulation, without group labels at training time.",
    suppress_keyboard_interrupt=False,  # main prints what to do next
)

for _command in (
    demo,
    run,
    bench,
    tune,
    table,
    select,
    report,
    figures,
    predict,
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
    try:
        code = app(argv, exit_on_error=False, print_error=False, result_action="return_value")
    except UserError as error:
        ERR.out(f"umix: {error.message(as_flag).strip()}", highlight=False)
        return 2
    except CycloptsError as error:
        ERR.out(f"umix: {one_line(str(error), longest=290)}", highlight=False)
        return 2
    except OSError as error:
        if error.filename is None:
            raise
        ERR.out(f"umix: {one_line(_about_path(error), longest=290)}", highlight=False)
        return 2
    except KeyboardInterrupt:
        ERR.print("umix: interrupted; the same command goes on from the last checkpoint.")
        return 130
    return int(code or 0)


def _about_path(error: OSError) -> str:
    """What the operating system refuses to do with a path, in one sentence."""
    return f"Cannot use {os.fsdecode(error.filename)}: {error.strerror}; name another file or folder."
