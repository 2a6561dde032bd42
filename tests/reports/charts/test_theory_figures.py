"""Figures by the data they draw; files by how they begin."""

import re
from pathlib import Path

import numpy as np
import pytest

from umix.core.streams import stream
from umix.reports.charts.theory_figures import figures, save_figures
from umix.reports.tables.theory_tables import check_table, experiment_table
from umix.theory.experiment import Design
from umix.theory.findings import Findings, find


@pytest.fixture(scope="module")
def found() -> Findings:
    def streams(seed: int, purpose: str) -> np.random.Generator:
        return stream(seed, "theory", purpose)

    return find(Design(sizes=(60, 120), ranks=(2, 4), dimension=8, seeds=2), streams)


def drawn(chart: object) -> list[dict]:
    """All rows of all data sets of a chart."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_the_gap_figure_draws_every_clear_gap_and_both_shapes(found: Findings) -> None:
    rows = drawn(figures(found)["theory-gap"])
    erm = {(row["rank"], row["n"]): row["value"] for row in rows if row["curve"] == "weighted ERM"}
    assert erm == {(c.rank, c.n): c.erm_gap.mean for c in found.cells if c.erm_gap.mean > 1e-3}
    shape = {(row["rank"], row["n"]): row["value"] for row in rows if row["curve"] == "shape √(rank/n)"}
    assert shape[4, 60] / shape[2, 120] == pytest.approx(2)


def test_the_remainder_figure_draws_the_series_and_a_third_power(found: Findings) -> None:
    rows = drawn(figures(found)["theory-remainder"])
    drawn_values = {
        row["at"]: row["value"] for row in rows if row["model"] == "logistic" and row["curve"] == "remainder"
    }
    assert drawn_values == {p.at: p.value for p in found.remainders if p.model == "logistic"}
    guide = {row["at"]: row["value"] for row in rows if row["model"] == "third power"}
    assert guide[1.0] / guide[0.5] == pytest.approx(8)


def test_the_risk_figure_draws_the_paired_difference(found: Findings) -> None:
    values = [row["value"] for row in drawn(figures(found)["theory-risk"]) if "value" in row]
    assert values[: len(found.cells)] == [cell.risk_change.mean for cell in found.cells]


def test_a_page_of_a_figure_opens_with_no_network(
    found: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    risk = figures(found)["theory-risk"]  # one of them: each holds a megabyte of JavaScript
    monkeypatch.setattr("umix.reports.charts.theory_figures.figures", lambda _: {"theory-risk": risk})
    (path,) = save_figures(found, tmp_path / "new", format_="html")
    assert path.name == "theory-risk.html"
    content = path.read_bytes()
    assert content.startswith(b"<!DOCTYPE html>")
    assert not re.search(rb'(src|href)="https?://', content)


def test_tables_have_a_row_for_every_check_and_cell(found: Findings) -> None:
    rows = [check_table(found.checks, refuted=refuted).row_count for refuted in (False, True)]
    assert sum(rows) == len(found.checks)
    assert experiment_table(found).row_count == len(found.cells)
