"""``umix run``."""

import math
import shlex
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.padding import Padding
from rich.text import Text

from umix.commands.doctor import table_task
from umix.commands.execution import execute_all, follow, run_json
from umix.commands.flags import (
    DataFlags,
    DeviceFlags,
    EvaluationFlags,
    Folds,
    Json,
    Log,
    MlflowUri,
    NetFlags,
    Out,
    Quiet,
    Select,
    Set,
    TrustCode,
    parse_names,
    parse_settings,
)
from umix.core.words import NOT_FINITE, counted, duration, run_words
from umix.errors import UserError
from umix.limits import require_count
from umix.terminal import OUT, Bars, print_json

if TYPE_CHECKING:
    from umix.bench.runs.record import RunRecord
    from umix.bench.runs.summary import Summary
    from umix.bench.spec.run_spec import RunSpec
    from umix.reports.target import TargetCheck


def run(
    task: Annotated[str, Parameter(help="Path of your own table, folder of images or arrays, or a task (umix tasks).")],
    method: Annotated[str, Parameter(help="A method (umix methods).")] = "best",
    *,
    seed: Annotated[int, Parameter(help="Seed of initialisation and order.")] = 0,
    set_: Set = (),
    net: NetFlags | None = None,
    preset: Annotated[str, Parameter(help="Settings to start from: a name or a FILE.toml.")] = "default",
    select: Select = None,
    evaluation: EvaluationFlags | None = None,
    budget: Annotated[
        float | None,
        Parameter(
            help="How far a choice (METHOD best, eta=auto) may lower average validation accuracy below ERM's: 0.02 is two points. "
            "Default: any."
        ),
    ] = None,
    target: Annotated[
        float | None,
        Parameter(help="What every group should reach on test: 0.7 is 70 %. Says whether it does; changes no number."),
    ] = None,
    trials: Annotated[int | None, Parameter(help="With METHOD best: most candidates to try.")] = None,
    time: Annotated[
        float | None,
        Parameter(help="With METHOD best: seconds for the whole command; fewer candidates are tried if need be."),
    ] = None,
    data: DataFlags | None = None,
    folds: Folds = None,
    where: DeviceFlags | None = None,
    log: Log = None,
    mlflow_uri: MlflowUri = None,
    trust_code: TrustCode = False,
    out: Out = Path("runs"),
    verbose: Annotated[
        bool,
        Parameter(name=["--verbose", "-v"], negative="", help="Also print all groups, choices, stages and warnings."),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train TASK, a name or the path of your own data, with METHOD and print the test rates; a killed run is resumed.

    METHOD best tries the others and trains the one that does best on validation. An ordinary model (erm) is trained too and shown
    beside it.
    """
    start = perf_counter()
    from umix.bench.runs.folds import fold_settings, pooled_summary
    from umix.bench.runs.record import known_rule
    from umix.data.rows.table_file import check_data_file

    if select is not None:
        known_rule(select)
    if target is not None:
        from umix.reports.target import known_target

        known_target(target)
    data, where, settings = data or DataFlags(), where or DeviceFlags(), parse_settings(set_)
    settings |= (
        data.settings()
        | where.settings()
        | (net or NetFlags()).settings()
        | (evaluation or EvaluationFlags()).settings()
    )
    of_folds = fold_settings(folds)
    settings |= _selection_settings(method, trials, None if time is None else time / len(of_folds), budget)
    if folds is not None and where.several:
        raise UserError("--folds must be trained on one device; leave out --devices, --nodes and --strategy.")
    check_data_file(task)
    bars = Bars(quiet=quiet)
    warnings = "" if verbose or as_json else NOT_FINITE
    logs = {"log": log, "mlflow_uri": mlflow_uri}
    records, ordinary = [], []
    for fold in of_folds:
        asked = {"task": task, "method": method, "settings": settings | fold, "seed": seed, "preset": preset}
        executed = _record(asked, data, where, out, bars, warnings, select=select, logs=logs, trust_code=trust_code)
        if executed is None:
            return
        records.append(executed[0])
        ordinary += [executed[1]] if executed[1] is not None else []
    rule = select if select is None or all(one.has(select) for one in ordinary) else None
    summary, compared = pooled_summary(records, select), pooled_summary(ordinary, rule, "off") if ordinary else None
    if as_json:
        shown = _json(records, summary, ordinary, compared, select)
        if target is not None:
            shown["target"] = _target(records[0], summary, target).as_json()
        print_json(shown)
        return
    _print_result(records, summary, ordinary, compared, verbose=verbose)
    if target is not None:
        _print(str(_target(records[0], summary, target)))
    saved = records[0].directory if folds is None else f"{records[0].directory.parent}, a folder for each fold"
    _print(f"Took {duration(perf_counter() - start)}. Saved in {saved}")
    _print(f"Next: {_next(records[0])}")


def _record(
    asked: dict[str, Any],
    data: DataFlags,
    where: DeviceFlags,
    out: Path,
    bars: Bars,
    warnings: str,
    *,
    select: str | None,
    logs: dict[str, str | None],
    trust_code: bool,
) -> "tuple[RunRecord, RunRecord | None] | None":
    """The record of the run that is ``asked`` for and that of the ordinary model; None in a process that only helps."""
    from umix.bench.runs.recorded import ordinary_of, recorded_run

    record, ordinary = None, None
    bars.label = f"{asked['method']}, {run_words(asked['seed'], asked['settings'].get('task.fold'))}"
    if not (data.root or any(logs.values()) or where.several):
        record = recorded_run(out, **asked)
        ordinary = None if record is None else ordinary_of(record)
    if record is not None and (ordinary is not None or asked["method"] == "erm"):
        bars.run_done([words for words in record.warnings if words.startswith(warnings)])
        return record, ordinary
    bars.status("loading packages")
    with nullcontext() if where.several else bars:
        from umix.bench.loggers import loggers
        from umix.bench.spec.run_spec import RunSpec
        from umix.data.registry import refuse_folds

        refuse_folds(asked["task"], asked["settings"].get("task.folds"))
        spec = RunSpec(**asked, trust_code=trust_code)
        _check_select(select, spec)
        logging = loggers(parse_names(logs["log"]), out=out, mlflow_uri=logs["mlflow_uri"], select=select)
        executed = _executed(spec, data, where, out, bars, warnings)
    if executed is not None:
        for write in logging:
            write(executed[0])
    return executed


def _json(
    records: "list[RunRecord]",
    summary: "Summary",
    ordinary: "list[RunRecord]",
    compared: "Summary | None",
    select: str | None,
) -> dict[str, object]:
    """What ``--json`` prints: a run and the ordinary model beside it, or the pooled rates of folds and each of them."""
    first, *others = records
    if not others:
        return {**run_json(first, select), "ordinary": _ordinary_json(next(iter(ordinary), None), compared)}
    pooled = None
    if compared is not None:
        rules = [compared.select if one.has(compared.select) else None for one in ordinary]
        beside = [_ordinary_json(one, one.summary(rule, "off")) for one, rule in zip(ordinary, rules, strict=True)]
        pooled = {"summary": compared.model_dump(mode="json"), "folds": beside}
    about = {"task": first.task, "method": first.method, "seed": first.seed, "n_folds": first.folds}
    runs = [run_json(one, select) for one in records]
    return {**about, "summary": summary.model_dump(mode="json"), "folds": runs, "ordinary": pooled}


def _ordinary_json(record: "RunRecord | None", summary: "Summary | None") -> dict[str, object] | None:
    if record is None or summary is None:
        return None
    return {"directory": str(record.directory), "key": record.key, "summary": summary.model_dump(mode="json")}


def _target(record: "RunRecord", summary: "Summary", target: float) -> "TargetCheck":
    from umix.reports.target import check_target

    return check_target(record, summary, target)


def _print(words: str) -> None:
    OUT.print(words, highlight=False, soft_wrap=True, markup=False)


def _print_result(
    records: "list[RunRecord]",
    summary: "Summary",
    ordinary: "list[RunRecord]",
    compared: "Summary | None",
    *,
    verbose: bool,
) -> None:
    """Print what the run, or the folds together, reached beside an ordinary model, and what was chosen."""
    from umix.reports.sentences import candidate_words, data_words, pooled_words, selected_words
    from umix.reports.tables.run_table import fold_table, result_table
    from umix.reports.tables.text_table import terminal

    record, several = records[0], len(records) > 1
    divided = ordinary[0] if ordinary else record  # some methods train on a part of validation
    _print(f"{data_words(divided, pooled=several)}\n")
    runs = shlex.quote(str(record.directory.parent))
    OUT.print(terminal(result_table(record, summary, compared, all_groups=f"umix table {runs} --groups")))
    if several:
        OUT.print(pooled_words(len(records)), "", highlight=False, markup=False, sep="\n")
        OUT.print(terminal(fold_table(records, summary.select)))
        notes = {words for one in records for words in one.warnings}
        if notes and not verbose:
            _print(f"{counted(len(notes), 'note')} about data and training: umix report {runs} lists them.")
        return
    if words := selected_words(record, summary):
        OUT.print(words, highlight=False, markup=False)
    if words := candidate_words(record):
        OUT.print(Padding(Text(words), (0, 0, 0, 2)))
    if verbose:
        _print_details(record, summary)
    elif record.warnings:
        _print(f"{counted(len(record.warnings), 'note')} about data and training: see --verbose.")


def _print_details(record: "RunRecord", summary: "Summary") -> None:
    """Print all rates of the run, how its data were read, everything that was chosen, and its stages."""
    from umix.reports.sentences import calibration_words, choice_words, column_words, threshold_words
    from umix.reports.tables.run_table import run_table

    OUT.print(run_table(record, summary))
    if words := column_words(record):
        _print(words)
    decided = (choice_words(record, summary), calibration_words(record, summary), threshold_words(record))
    for words in filter(None, decided):
        OUT.print(words, highlight=False, markup=False)
    for name, stage in record.stages.items():
        duration = "reused" if stage.reused else f"{stage.seconds:.1f} s"
        OUT.print(f"stage {name}: {counted(stage.epochs, 'epoch')}, {duration}", highlight=False)


def _next(record: "RunRecord") -> str:
    """The commands that people use next: the report, and predictions where the data are their own."""
    from umix.reports.sentences import NEW_DATA

    run, new = record.directory, NEW_DATA.get(record.plan["task"]["name"])
    report = f"umix report {shlex.quote(str(run.parent))}"
    if record.folds is not None:
        return f"{report} · for a model to predict with, the same command without --folds"
    return report if new is None else f"{report} · umix predict {shlex.quote(str(run))} {new}"


def _check_select(select: str | None, spec: "RunSpec") -> None:
    """Raise where the run of ``spec`` will have nothing that the rule ``select`` chooses by."""
    from umix.data.rows.row_roles import RowRoles

    source: object = spec.plan.source
    if select == "worst" and isinstance(source, RowRoles) and not source.groups:
        raise UserError("--select worst must know the groups: name their columns with --groups, or select balanced.")
    if select == "uncertainty_quintile" and "trajectory" not in spec.plan.method.stages:
        raise UserError(
            f"--select {select} must be given a method with a trajectory stage, such as umix, got {spec.method!r}."
        )


def _executed(
    spec: "RunSpec", data: DataFlags, where: DeviceFlags, out: Path, bars: Bars, warnings: str
) -> "tuple[RunRecord, RunRecord | None] | None":
    """The record of ``spec`` and that of the ordinary model beside it; None in a process that only helps the first one.

    There is no ordinary model beside ERM, and none where several devices train.
    """
    from umix.bench.runs.execute import is_finished
    from umix.bench.runs.ordinary import ordinary_spec, remember
    from umix.data.registry import refuse_root

    refuse_root(data.root, [type(spec.plan.source)])
    engine, paths = where.engine(), data.paths(out)
    engine.launch()
    if not engine.first:
        follow(spec, paths, engine)
        return None
    bars.status(f"reading {Path(spec.task).name}")
    with bars:
        task = None if is_finished(spec, paths.out) else table_task(spec)
        runs = {spec.method: [spec]}
        ((record,),) = execute_all(
            runs, paths, quiet=False, engine=engine, task=task, bars=bars, warnings=warnings
        ).values()
        if spec.method == "erm" or engine.processes > 1:
            return record, None
        beside = ordinary_spec(spec, record)
        same = task if beside.plan.source == spec.plan.source else None
        runs = {"ordinary model": [beside]}
        ((ordinary,),) = execute_all(
            runs, paths, quiet=False, engine=engine, task=same, bars=bars, warnings=None
        ).values()
    remember(ordinary, record)
    return record, ordinary


def _selection_settings(method: str, trials: int | None, time: float | None, budget: float | None) -> dict[str, float]:
    """The limits of a selection as settings; trials and time are those of ``best`` alone."""
    limits = {name: value for name, value in (("trials", trials), ("time", time)) if value is not None}
    if limits and method != "best":
        raise UserError(f"--{next(iter(limits))} must be given with METHOD best, got {method!r}; leave the flag out.")
    if trials is not None:
        require_count("trials", trials)
    if time is not None and not 0 < time < math.inf:
        raise UserError(f"--time must be a number of seconds above 0, got {time:g}.")
    if budget is not None and not 0 <= budget <= 1:
        raise UserError(
            f"--budget must be a share of the examples, a number in [0, 1], got {budget:g}; 0.02 is two points."
        )
    settings = {f"best.{name}": value for name, value in limits.items()}
    return settings if budget is None else {**settings, "evaluation.budget": budget}
