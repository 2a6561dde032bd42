"""``umix demo``."""

from pathlib import Path
from typing import Any

from umix.commands.execution import execute_all, run_json
from umix.commands.flags import Json, Out, Quiet
from umix.limits import require_count
from umix.terminal import OUT, Bars, print_json


def demo(*, out: Out = Path("runs"), seeds: int = 3, quiet: Quiet = False, as_json: Json = False) -> None:
    """Train ERM, UMIX's weights alone and UMIX on the embedded colored_digits, and compare them in a table and a page."""
    require_count("seeds", seeds)
    with Bars(quiet=quiet, what="loading packages"):
        from umix.api.report import report
        from umix.bench.runs.paths import RunPaths
        from umix.bench.spec.run_spec import RunSpec
        from umix.reports.arrange import threshold_rows
        from umix.reports.comparison import compare
        from umix.reports.tables.comparison_tables import comparison_tables
        from umix.reports.tables.text_table import terminal

    methods: dict[str, tuple[str, dict[str, Any]]] = {
        "ERM": ("erm", {}),
        "UMIX, sigma=0": ("umix", {"sigma": 0.0}),
        "UMIX": ("umix", {}),
    }
    specs = {
        label: [RunSpec(task="colored_digits", method=name, settings=settings, seed=seed) for seed in range(seeds)]
        for label, (name, settings) in methods.items()
    }
    runs = threshold_rows({"colored_digits": execute_all(specs, RunPaths(out), quiet=quiet)})["colored_digits"]
    if as_json:
        print_json({label: [run_json(record, "worst") for record in records] for label, records in runs.items()})
        return
    OUT.print("colored_digits: colour agrees with the label in 95 % of train and 50 % of test.", highlight=False)
    for table in comparison_tables(compare({"colored_digits": runs}, baseline="ERM"), groups=True):
        OUT.print(terminal(table))
    OUT.print(
        f"Records: {out}/ (one folder per run, with the counts of every epoch and the selected weights)",
        highlight=False,
    )
    page = out / "report.html"
    report(out, page)
    OUT.print(f"Report: {page} (open it in a browser)", highlight=False, markup=False, soft_wrap=True)
    OUT.print(
        "Next: umix run your.csv --label COLUMN --groups COLUMN; umix tasks; umix methods",
        highlight=False,
    )
