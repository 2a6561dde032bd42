"""The figures of the page on the paper's experiment: which share of every training group has which uncertainty."""

import json
from pathlib import Path

from umix.reports.charts.palette import group_colours
from umix.reports.charts.uncertainty import shares


def write_uncertainty_figures(results: Path, folder: Path) -> None:
    """Write a figure for every part of benchmarks/results/finetune.json that has uncertainties into ``folder``."""
    for part, result in json.loads(results.read_text(encoding="utf-8"))["results"].items():
        if not result["uncertainty"]:
            continue
        rows = [
            {"group": group, "size": found["n"], "mean": found["mean"], "u": float(u), "share": share}
            for group, found in result["uncertainty"].items()
            for u, share in found["percent of the group by uncertainty"].items()
        ]
        shares(rows, group_colours(list(result["uncertainty"]))).write(folder / f"uncertainty-{part}.svg")
