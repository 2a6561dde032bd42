"""The command line: thin. Exit code 0 done, 2 the user's input is wrong (one sentence), 1 anything else."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Parameter

from umix.catalogue import print_catalogue, print_examination, print_facts, print_json, print_presets
from umix.errors import UserError
from umix.flags import Cache, Json, NoCache, Out, Quiet, Root, Select, Set, Subset, TableFlags, parse_settings
from umix.terminal import ERR, OUT, Bars
from umix.version import __version__

if TYPE_CHECKING:
    from umix.bench.record import RunRecord
    from umix.settings import Settings

app = App(
    name="umix",
    version=__version__,
    help="Train classifiers that hold up on every subpopulation, without group labels at training time.",
)


@app.command
def demo(*, out: Out = Path("runs"), seeds: int = 3, quiet: Quiet = False, as_json: Json = False) -> None:
    """Train ERM, UMIX's weights alone and UMIX on the embedded colored_digits, and print the comparison."""
    from umix.bench.spec import RunSpec
    from umix.report.comparison import compare
    from umix.report.tables import comparison_table

    if seeds < 1:
        raise UserError(f"--seeds must be at least 1, got {seeds}.")
    methods: dict[str, tuple[str, dict[str, Any]]] = {
        "ERM": ("erm", {}),
        "UMIX, sigma=0": ("umix", {"sigma": 0.0}),
        "UMIX": ("umix", {}),
    }
    specs = {
        label: [RunSpec(task="colored_digits", method=name, settings=settings, seed=seed) for seed in range(seeds)]
        for label, (name, settings) in methods.items()
    }
    runs = _execute_all(specs, out, quiet=quiet)
    if as_json:
        print_json({label: [_run_json(record, "worst") for record in records] for label, records in runs.items()})
        return
    sizes = {name: group.size for name, group in runs["ERM"][0].summary("worst").groups.items()}
    title = f"colored_digits: colour agrees with the label in 95 % of train and 50 % of test ({seeds} seeds)"
    OUT.print(comparison_table(compare(runs), title=title, test_sizes=sizes))
    OUT.print(
        f"Records: {out}/ (one folder per run, with the counts of every epoch and the selected weights)",
        highlight=False,
    )
    OUT.print(
        "Next: umix run your.csv umix --label COLUMN --groups COLUMN; umix tasks; umix methods",
        highlight=False,
    )


@app.command
def run(
    task: str,
    method: str,
    *,
    seed: int = 0,
    set_: Set = (),
    preset: Annotated[str, Parameter(help="Named settings of the task to start from.")] = "default",
    root: Root = None,
    allow_subset: Subset = False,
    cache: Cache = None,
    no_cache: NoCache = False,
    select: Select = None,
    table: TableFlags | None = None,
    out: Out = Path("runs"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train TASK, a name or a table's path, with METHOD and print the test rates. Again, it goes on where a killed run was."""
    from umix.bench.spec import RunSpec
    from umix.core.selection import RULES
    from umix.data.table import TableSource
    from umix.errors import unknown
    from umix.report.tables import run_table

    if select is not None and select not in RULES:
        raise unknown("selection rule", select, RULES)
    settings = parse_settings(set_) | (table.settings() if table else {})
    settings |= {"task.allow_subset": True} if allow_subset else {}
    spec = RunSpec(task=task, method=method, settings=settings, seed=seed, preset=preset)
    if select == "worst" and isinstance(spec.plan.source, TableSource) and not spec.plan.source.groups:
        raise UserError("--select worst must know the groups: name their columns with --groups, or select worst_class.")
    places = {"root": root, "cache": cache, "stream": no_cache}
    record = _execute_all({method: [spec]}, out, quiet=quiet, **places)[method][0]
    if as_json:
        print_json(_run_json(record, select))
        return
    OUT.print(run_table(record, record.summary(select)))
    for name, stage in record.stages.items():
        how = "reused" if stage.reused else f"{stage.seconds:.1f} s"
        OUT.print(f"stage {name}: {stage.epochs} epochs, {how}", highlight=False)
    OUT.print(f"Record: {record.directory}", highlight=False, soft_wrap=True)


@app.command
def predict(
    run: Annotated[Path, Parameter(help="Folder of a finished run on a table.")],
    table: Annotated[Path, Parameter(help="New rows: a table with the columns of the training table.")],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="A .parquet or .csv file.")] = Path(
        "predictions.parquet"
    ),
    select: Select = None,
) -> None:
    """Write the predicted label and the probability of every class for each row of TABLE, and its id where RUN has one."""
    from umix.bench.predict import write_predictions
    from umix.bench.record import load_run

    record = load_run(run)
    made = write_predictions(record, table, output, select=select)
    for note in made.notes:
        ERR.print(f"note: {note}", highlight=False, markup=False)
    columns = ", ".join(made.table.columns[:6]) + (", …" if made.table.width > 6 else "")
    OUT.print(f"{len(made.table)} predictions written to {output} ({columns})", highlight=False, soft_wrap=True)


@app.command
def weights(
    run: Annotated[Path, Parameter(help="Folder of a finished run.")],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="A .parquet or .csv file.")] = Path(
        "weights.parquet"
    ),
) -> None:
    """Write index, uncertainty, weight and label of every training example of RUN, and its environment where one was inferred."""
    from umix.bench.examples import write_examples

    n, columns = write_examples(run, output)
    note = "" if "weight" in columns else "; its method gives examples no weights"
    OUT.print(
        f"{n} training examples written to {output} ({', '.join(columns)}){note}", highlight=False, soft_wrap=True
    )


@app.command
def tasks(*, as_json: Json = False) -> None:
    """List the tasks, each with its options."""
    from umix.data.registry import TASKS
    from umix.data.table import TableOptions

    kinds: dict[str, type[Settings]] = {**TASKS, "FILE.csv": TableOptions}
    print_catalogue({name: (kind, kind.__doc__ or "", {}) for name, kind in kinds.items()}, as_json=as_json)


@app.command
def methods(*, as_json: Json = False) -> None:
    """List the methods, each with its hyperparameters, their legal ranges and defaults, and its paper."""
    from umix.methods.registry import METHODS

    facts = {
        name: (
            kind,
            kind.__doc__ or "",
            {
                "paper": kind.paper,
                "needs_training_groups": kind.needs_groups_if or kind.needs_groups,
                "needs_validation_groups": kind.needs_val_groups,
                "stages_before_the_fit": list(kind.stages),
            },
        )
        for name, kind in METHODS.items()
    }
    print_catalogue(facts, as_json=as_json)


@app.command
def presets(task: str, *, as_json: Json = False) -> None:
    """Show the settings that TASK's presets (run --preset NAME) start from."""
    from umix.bench.presets import presets_of
    from umix.data.registry import task_source

    task_source(task)  # raises for an unknown name
    found = presets_of(task)
    if as_json:
        print_json(found)
    else:
        print_presets(found, f"presets of {task}")


@app.command
def doctor(
    task: str | None = None, *, root: Root = None, allow_subset: Subset = False, as_json: Json = False
) -> int | None:
    """Show versions, devices and extras; with TASK check its folder: table, counts, every image. Exit code 2 if it is not fine."""
    from umix.bench.doctor import check, facts

    if task is not None:
        examination = check(task, root, allow_subset=allow_subset)
        if as_json:
            print_json({"fine": examination.fine, **dataclasses.asdict(examination), "folder": str(examination.folder)})
        else:
            print_examination(examination, f"umix doctor {task}")
        return 0 if examination.fine else 2
    found = facts()
    if as_json:
        print_json(found)
        return None
    print_facts(found, "umix doctor")
    return None


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = app(argv, exit_on_error=False, print_error=False, result_action="return_value")
    except (UserError, CycloptsError) as error:
        ERR.out(f"umix: {str(error).strip()}", highlight=False)
        return 2
    except KeyboardInterrupt:
        ERR.print("umix: interrupted; the same command goes on after the last finished epoch.")
        return 130
    return int(code or 0)


def _execute_all(specs: dict[str, list[Any]], out: Path, *, quiet: bool, **places: Any) -> dict[str, list["RunRecord"]]:
    """Execute labelled specs in turn, with a bar; warnings of each run are shown as they come."""
    from umix.bench.run import execute

    records: dict[str, list[RunRecord]] = {label: [] for label in specs}
    with Bars(runs=sum(len(group) for group in specs.values()), quiet=quiet) as bars:
        for label, group in specs.items():
            for spec in group:
                bars.label = f"{label}, seed {spec.seed}"
                record = execute(spec, out=out, progress=bars, **places)
                bars.run_done(record.warnings)
                records[label].append(record)
    return records


def _run_json(record: "RunRecord", select: str | None) -> dict[str, Any]:
    return {
        "directory": str(record.directory),
        **record.model_dump(mode="json", include={"task", "method", "seed", "key", "plan", "stages", "warnings"}),
        "summary": record.summary(select).model_dump(mode="json"),
    }
