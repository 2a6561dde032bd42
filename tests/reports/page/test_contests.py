"""What runs tried, on the page: one contest for each method that held one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from umix import report
from umix.bench.runs.record import RunRecord
from umix.reports.page.contests import contest_views

Make = Callable[..., RunRecord]

DECISIONS = {
    "method": "umix",
    "chosen": "best chose umix eta=3: 80.0% in the worst group.",
    "others": "In the race: erm 50.0%.",
    "standings": [
        {"candidate": "umix eta=3", "score": 0.8, "worst": 0.8, "average": 0.85, "epochs": 9},
        {"candidate": "umix eta=1", "score": 0.7, "worst": 0.7, "average": 0.9, "epochs": 9},
        {"candidate": "erm", "score": 0.5, "worst": 0.5, "average": 0.92, "epochs": 4},
        {"candidate": "group_dro", "score": None, "worst": 0.9, "average": 0.6, "epochs": 4},
    ],
    "frontier": [{"candidate": "umix eta=3", "worst": 0.8, "average": 0.85}],
}


def test_the_first_run_of_every_method_with_a_contest_is_shown(record: Make) -> None:
    raced = [record(seed, [9, 8], "best", decisions=DECISIONS) for seed in (0, 1)]
    (view,) = contest_views({"erm": [record(0, [9, 5])], "best": raced, "left out": []})
    assert (view.label, view.record.seed, view.kind) == ("best", 0, "group")
    assert view.sentences == [DECISIONS["chosen"], DECISIONS["others"]]
    assert [row["candidate"] for row in view.best] == ["umix eta=3", "erm", "group_dro"]


def test_a_contest_without_any_known_rate_is_not_drawn(record: Make) -> None:
    unknown = [{"candidate": "erm", "score": None, "worst": None, "average": None, "epochs": 1}]
    assert contest_views({"best": [record(0, [9, 8], "best", decisions=DECISIONS | {"standings": unknown})]}) == []


@pytest.fixture
def page(tmp_path: Path, record: Make) -> str:
    record(0, [9, 5]).save(tmp_path / "erm")
    record(0, [9, 8], "best", decisions=DECISIONS).save(tmp_path / "best")
    report(tmp_path, tmp_path / "report.html")
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_page_shows_the_figure_the_sentences_and_the_best_of_every_family(page: str) -> None:
    assert "What was tried on validation" in page
    assert "best chose umix eta=3: 80.0% in the worst group." in page
    assert '<td>umix eta=3</td><td class="n" data-value="80.0">80.0\u00a0%</td>' in page
    assert 'GroupDRO <span class="note">(over the budget)</span>' in page
    assert 'UMIX <span class="note">(chosen)</span>' in page


def test_every_chart_of_the_page_has_its_own_place(page: str) -> None:
    places = [number for number in range(40) if f'id="chart-0-{number}"' in page]
    assert places == list(range(len(places)))
    assert all(page.count(f'id="chart-0-{number}"') == 1 for number in places)
    tried = page.index("best: average against worst group on validation")
    assert page.index('id="results-0"') < tried < page.index('id="epochs-0"')


def test_runs_without_a_contest_have_no_such_part(tmp_path: Path, record: Make) -> None:
    record(0, [9, 5]).save(tmp_path / "erm")
    report(tmp_path, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What was tried" not in html
    assert 'href="#tried-0"' not in html
