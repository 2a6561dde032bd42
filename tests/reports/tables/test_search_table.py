"""What a search found, printed."""

from pathlib import Path

from rich.console import Console

from umix.bench.search.search_result import SearchResult, Trial
from umix.reports.tables.search_table import score_text, tuning_json, tuning_table

TRIALS = tuple(
    Trial(number, "complete" if value is not None else "pruned", value, {"umix.eta": 2.0 * number}, number == 0)
    for number, value in ((3, 0.9), (0, 0.75), (1, 0.5), (2, None))
)
TUNED = SearchResult(
    "[red]task", "umix", "x", "worst", (0, 1), 0.9, 0.75, {"umix.eta": 6.0}, TRIALS, {}, Path("x.toml")
)


def printed(best: int) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(tuning_table(TUNED, best=best))
    return capture.get()


def test_the_best_trials_are_shown_best_first_and_the_start_is_marked() -> None:
    text = printed(best=2)
    assert "[red]task" in text
    assert text.index("90.0") < text.index("75.0")
    assert "0 (start)" in text
    assert "50.0" not in text


def test_trials_without_a_value_are_not_among_the_best() -> None:
    assert printed(best=9).count("│") == 4 * 3


def test_programs_read_every_trial() -> None:
    found = tuning_json(TUNED)
    assert [trial["validation"] for trial in found["trials"]] == [0.9, 0.75, 0.5, None]
    assert (found["validation"], found["validation_of_start"], found["preset"]) == (0.9, 0.75, "x.toml")


def test_a_score_that_is_no_rate_is_not_in_percent() -> None:
    assert (score_text(None), score_text(1.0), score_text(-0.5)) == ("", "100.0", "-0.500")
