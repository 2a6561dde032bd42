"""Every method on the embedded tasks, in the style of the paper's Tables 1, 3 and 4.

Five seeds, the tasks' default presets (tuned on validation only by tune_presets.py), the epoch selected by the worst validation
group. Writes results/methods.json and results/methods.md. Run: python benchmarks/methods.py [--out runs]
"""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from measure import RESULTS, write
from workers import execute_all

from umix import METHODS, RunRecord, RunSpec
from umix.reports.comparison import MethodRates, compare
from umix.reports.decided_rows import decided_rows
from umix.reports.tables.text_table import percent

SEEDS = range(5)
TASKS = ("colored_digits", "four_moons")


def needs_groups(runs: Mapping[str, list[RunRecord]]) -> dict[str, bool]:
    """Whether each method, with its settings, used group labels of train or val for more than model selection."""
    return {name: any_group(records[0]) for name, records in runs.items()}


def any_group(record: RunRecord) -> bool:
    settings = {key: value for key, value in record.plan["method"].items() if key != "name"}
    method = METHODS[record.method](**settings)
    return bool(method.needs_groups or method.needs_val_groups or method.needs_some_groups)


MIXING = ("erm", "mixup", "ingroup_mixup", "domainmix", "lisa", "lisa_umix", "umix")


def markdown(task: str, rows: Mapping[str, MethodRates], uses_groups: Mapping[str, bool]) -> str:
    """The three tables of one task."""
    oblivious = [name for name in rows if not uses_groups[name]]
    aware = [name for name in rows if uses_groups[name]]
    parts = [f"## {task}\n"]
    for title, names in (
        ("Without group labels (the paper's Table 1)", oblivious),
        ("With group labels (the paper's Table 3)", ["erm", *aware, "umix"]),
        ("Mixup-based (the paper's Table 4)", [name for name in MIXING if name in rows]),
    ):
        best = max(rows[name].rates["worst"].mean for name in names)
        parts.append(f"### {title}\n")
        parts.append(
            "| method | group labels | average | adjusted average | group mean | worst group | vs ERM, worst |"
        )
        parts.append("|---|---|--:|--:|--:|--:|--:|")
        for name in names:
            row = rows[name]
            rates = [percent(row.rates[rate]) for rate in ("average", "adjusted", "group_mean")]
            shown = percent(row.rates["worst"])
            worst = f"**{shown}**" if row.rates["worst"].mean == best else shown
            gain = percent(row.gains["worst"].spread, sign=True) if "worst" in row.gains else ""
            cells = [name, "yes" if uses_groups[name] else "no", *rates, worst, gain]
            parts.append(f"| {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    out = parser.parse_args().out
    content: dict[str, object] = {"seeds": list(SEEDS)}
    text = ["# Every method on the embedded tasks\n"]
    text.append(
        "Test accuracy in percent, mean ± standard deviation over 5 seeds; epoch selected by the worst validation group; "
        "hyperparameters chosen on validation only, with the same budget for every method. Best worst group in bold.\n"
    )
    for task in TASKS:
        specs = [RunSpec(task=task, method=method, seed=seed) for method in METHODS for seed in SEEDS]
        runs: dict[str, list[RunRecord]] = {}
        for record in execute_all(specs, out):
            runs.setdefault(record.method, []).append(record)
        rows = compare(decided_rows({task: runs}, decide="argmax")).cells[task]
        content[task] = {
            name: {rate: {k: round(v, 4) for k, v in asdict(spread).items()} for rate, spread in row.rates.items()}
            | {
                "settings": runs[name][0].plan["method"],
                "warnings": sorted({w for run in runs[name] for w in run.warnings}),
            }
            for name, row in rows.items()
        }
        text.append(markdown(task, rows, needs_groups(runs)))
    (RESULTS / "methods.md").write_text("\n".join(text), encoding="utf-8")
    write("methods", content)


if __name__ == "__main__":
    main()
