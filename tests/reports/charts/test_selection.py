"""The chart of a selection: every candidate in the colour of its method, the frontier, the winner; and on the page."""

from collections.abc import Callable
from pathlib import Path

import pytest

from umix import report
from umix.bench.runs.record import RunRecord
from umix.reports.charts.selection import candidate_rows, frontier_rows, selection_chart, selection_views

Make = Callable[..., RunRecord]


def result(candidate: str, worst: float | None, average: float | None, score: float | None = 0.5) -> dict:
    return {"candidate": candidate, "score": score, "worst": worst, "average": average, "epochs": 4}


RESULTS = [
    result("umix pool=class eta=3 length=5", 0.8, 0.85),
    result("umix pool=example eta=1 length=5", 0.7, 0.9),
    result("erm", 0.5, 0.92),
    result("reweight by=class", None, 0.9),
    result("group_dro", 0.9, 0.6, None),
]
FRONTIER = [{"candidate": "umix pool=class eta=3 length=5", "worst": 0.75, "average": 0.91}]


@pytest.fixture
def selected(record: Make) -> RunRecord:
    return record(0, [9, 5], "best", choices={"method": "umix", "candidates": RESULTS, "frontier": FRONTIER})


def test_rows_are_percents_best_first_without_candidates_that_have_no_rate(selected: RunRecord) -> None:
    rows = candidate_rows(selected)
    assert [row["method"] for row in rows] == ["umix", "umix", "erm", "group_dro"]
    assert (rows[0]["worst"], rows[0]["average"], rows[0]["epochs"]) == (80.0, 85.0, 4)
    assert [row["winner"] for row in rows] == [True, False, False, False]
    assert [row["score"] for row in rows] == [50.0, 50.0, 50.0, "average too low"]


def test_the_line_is_the_frontier_of_the_halving_and_of_all_results(selected: RunRecord) -> None:
    """DFR is no part of the halving, so its result may lie beyond the frontier that the halving has left."""
    assert [(row["average"], row["worst"]) for row in frontier_rows(selected)] == [
        (60.0, 90.0),
        (85.0, 80.0),
        (91.0, 75.0),
        (92.0, 50.0),
    ]


def test_the_winner_is_ringed_and_named(selected: RunRecord) -> None:
    figure = selection_chart(candidate_rows(selected), frontier_rows(selected), kind="group", label="best")
    marks = [layer["mark"]["type"] for layer in figure.on_page()["layer"]]
    assert marks == ["line", "point", "point"]
    assert [entry.name for entry in figure.legend] == ["erm", "group_dro", "umix", "frontier"]
    assert "umix pool=class eta=3 length=5, with 80.0 % in the worst group and 85.0 % on average" in figure.description
    assert "DFR" not in figure.description


def test_a_single_candidate_can_be_drawn(record: Make) -> None:
    choices = {"candidates": [result("dfr", 1.0, 1.0)], "frontier": FRONTIER}
    run = record(0, [9, 5], "best", choices=choices)
    figure = selection_chart(candidate_rows(run), frontier_rows(run), kind="group", label="best trials=1")
    assert figure.name == "selection-best-trials-1"
    assert "DFR is measured on the part of validation that it was not fitted to." in figure.description


def test_a_candidate_far_below_the_others_is_listed_and_not_drawn_unless_it_is_the_best_of_its_method(
    record: Make,
) -> None:
    near = [result(f"umix eta={k}", 0.7, 0.8 + k / 100) for k in range(4)]
    far = [result("umix eta=100", 0.0, 0.1), result("group_dro", 0.6, 0.2)]
    run = record(0, [9, 5], "best", choices={"candidates": near + far, "frontier": FRONTIER})
    figure = selection_chart(candidate_rows(run), frontier_rows(run), kind="group", label="best")
    assert len(figure.rows) == 6
    assert "Not drawn, but among the numbers: 1 far below the others on average." in figure.description
    shown = [row["candidate"] for data in figure.on_page()["datasets"].values() for row in data]
    assert "umix eta=100" not in shown


CHOICES = {
    "method": "umix",
    "chosen": "best chose umix eta=3: 80.0% in the worst group.",
    "others": "Of every kind: erm 50.0%.",
    "candidates": [
        {"candidate": "umix eta=3", "score": 0.8, "worst": 0.8, "average": 0.85, "epochs": 9},
        {"candidate": "umix eta=1", "score": 0.7, "worst": 0.7, "average": 0.9, "epochs": 9},
        {"candidate": "erm", "score": 0.5, "worst": 0.5, "average": 0.92, "epochs": 4},
        {"candidate": "group_dro", "score": None, "worst": 0.9, "average": 0.6, "epochs": 4},
    ],
    "frontier": [{"candidate": "umix eta=3", "worst": 0.8, "average": 0.85}],
}


def test_the_first_run_of_every_method_with_a_selection_is_shown(record: Make) -> None:
    runs = [record(seed, [9, 8], "best", choices=CHOICES) for seed in (0, 1)]
    (view,) = selection_views({"erm": [record(0, [9, 5])], "best": runs, "left out": []})
    assert (view.label, view.record.seed) == ("best", 0)
    assert "worst group" in view.figure.title
    assert view.sentences == [CHOICES["chosen"], CHOICES["others"]]
    (by_class,) = selection_views({"best": [record(0, [9, 8], "best", choices=CHOICES, use_groups="test")]})
    assert "worst class" in by_class.figure.title  # the rule that decided saw no groups


def test_a_selection_without_any_known_rate_is_not_drawn(record: Make) -> None:
    unknown = [{"candidate": "erm", "score": None, "worst": None, "average": 0.5, "epochs": 1}]
    assert selection_views({"best": [record(0, [9, 8], "best", choices=CHOICES | {"candidates": unknown})]}) == []


def test_the_page_shows_the_figure_and_the_sentences_once(tmp_path: Path, record: Make) -> None:
    record(0, [9, 5]).save(tmp_path / "erm")
    record(0, [9, 8], "best", choices=CHOICES).save(tmp_path / "best")
    report(tmp_path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What was tried on validation" in page
    assert "best chose umix eta=3: 80.0% in the worst group." in page
    assert "<td>average too low</td>" in page
    paths = [number for number in range(40) if f'id="chart-0-{number}"' in page]
    assert paths == list(range(len(paths)))
    assert all(page.count(f'id="chart-0-{number}"') == 1 for number in paths)
    tried = page.index("best: average against worst group on validation")
    assert page.index('id="results-0"') < tried < page.index('id="epochs-0"')
