"""``umix tune``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.markup import escape

from umix.commands.flags import (
    DataFlags,
    EvaluationFlags,
    Json,
    NetFlags,
    Out,
    Quiet,
    Select,
    Set,
    TrustCode,
    parse_settings,
)
from umix.core.words import counted
from umix.errors import UserError
from umix.terminal import OUT, Bars, print_json

if TYPE_CHECKING:
    from umix.bench.search.search_space import SearchSpace
    from umix.bench.search.tune import SearchProgress


def tune(
    task: Annotated[str, Parameter(help="Path of your own table, folder of images or arrays, or a task (umix tasks).")],
    method: Annotated[str, Parameter(help="A method (umix methods).")],
    *,
    trials: Annotated[int, Parameter(help="How many settings to try, counted over all workers of the study.")] = 50,
    seeds: Annotated[
        str, Parameter(help="Seeds of every trial, as 0,1 or 0:3 or 0:3,7; the score is their mean.")
    ] = "0",
    range_: Annotated[
        tuple[str, ...],
        Parameter(name="--range", negative="", help="Search key=low:high or key=low:high:log; repeat for more."),
    ] = (),
    choices: Annotated[
        tuple[str, ...], Parameter(negative="", help="Search key in a list of values, key=a,b,c; repeat for more.")
    ] = (),
    set_: Set = (),
    net: NetFlags | None = None,
    preset: Annotated[str, Parameter(help="Settings to start from: a name or a FILE.toml.")] = "default",
    select: Select = None,
    evaluation: EvaluationFlags | None = None,
    prune: Annotated[
        Literal["median", "halving", "none"], Parameter(help="How poor trials are pruned, by their validation score.")
    ] = "halving",
    storage: Annotated[
        str | None, Parameter(help="Database URL of the study, for several machines. Default: a file below OUT.")
    ] = None,
    name: Annotated[
        str | None, Parameter(help="Name of the study, which its workers share. Default: TASK-METHOD.")
    ] = None,
    data: DataFlags | None = None,
    trust_code: TrustCode = False,
    out: Out = Path("runs"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Search METHOD's settings on TASK, scored on validation only, and write the best as a preset for ``umix run --preset``."""
    from umix.data.rows.table_file import check_data_file

    check_data_file(task)
    with Bars(quiet=quiet, what="loading packages"):
        from umix.bench.search.search_space import parse_choices, parse_range
        from umix.bench.search.tune import tune as search
        from umix.bench.study.study import parse_seeds
        from umix.data.registry import refuse_root, source_kind
        from umix.reports.tables.search_table import score_text, tuning_json, tuning_table

    data = data or DataFlags()
    refuse_root(data.root, [source_kind(task)[0]])
    settings = (
        parse_settings(set_)
        | data.settings()
        | (net or NetFlags()).settings()
        | (evaluation or EvaluationFlags()).settings()
    )
    space: SearchSpace = dict(map(parse_range, range_)) | dict(map(parse_choices, choices))
    if len(space) < len(range_) + len(choices):
        raise UserError(
            "Every setting must be searched in one place, but --range and --choices name one of them twice."
        )
    with Bars(runs=max(trials, 2), quiet=quiet, what="trials") as bars:

        def watch(update: "SearchProgress") -> None:
            best = "" if update.best is None else f", best {score_text(update.best)}"
            bars.label = f"trial {update.trial}, seed {update.seed}"
            bars.update_runs(f"trials{best}", done=update.done)

        result = search(
            task,
            method,
            trials=trials,
            settings=settings,
            preset=preset,
            space=space,
            seeds=parse_seeds(seeds),
            select=select,
            prune=prune,
            name=name,
            storage=storage,
            paths=data.paths(out),
            progress=bars,
            watch=watch,
            trust_code=trust_code,
        )
    if as_json:
        print_json(tuning_json(result))
        return
    OUT.print(tuning_table(result))
    counts = {state: sum(trial.state == state for trial in result.trials) for state in ("complete", "pruned", "failed")}
    OUT.print(
        f"{counted(counts['complete'], 'trial')} ended, {counts['pruned']} cut short, {counts['failed']} failed; "
        f"validation {score_text(result.value)}, started from {score_text(result.default) or 'a trial still under way'}.",
        highlight=False,
    )
    for trial in [trial for trial in result.trials if trial.error][:1]:
        OUT.print(f"Trial {trial.number} failed: {escape(trial.error or '')}", highlight=False, soft_wrap=True)
    if result.importances:
        shares = ", ".join(f"{key} {100 * share:.0f} %" for key, share in result.importances.items())
        OUT.print(f"What the score varied with: {escape(shares)}", highlight=False, soft_wrap=True)
    OUT.print(
        f"Preset: {escape(str(result.preset))}\n"
        f"Next: umix run {escape(result.task)} {result.method} --preset {escape(str(result.preset))}",
        highlight=False,
        soft_wrap=True,
    )
