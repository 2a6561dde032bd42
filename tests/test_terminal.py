"""Tables as text and HTML are values: making them shows nothing, also in a notebook."""

import io

import numpy as np
import pytest
from rich import console, jupyter
from rich.text import Text

from umix import group_counts, terminal
from umix.terminal import as_html, as_text


def test_making_text_or_html_shows_nothing_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[object] = []
    monkeypatch.setattr(console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(jupyter, "display", lambda *parts: shown.append(parts))
    assert as_text(Text("rates")).strip() == "rates"
    assert "rates" in as_html(Text("rates"))
    assert "all" in str(group_counts(np.array([0, 1]), np.array([0, 1]), ["a", "b"]))
    assert shown == []
    assert capsys.readouterr().out == ""


def test_what_looks_like_markup_in_a_name_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "ERR", console.Console(file=shown, force_terminal=True, color_system=None, width=200))
    with terminal.Bars(runs=2, what="all [/] runs") as bars:
        bars.label = "a[/]b"
        bars.start("fit", total=2, done=0)
        bars.advance(1)
        bars.run_done(["The class '[/]' is rare."])
    for expected in ("all [/] runs", "a[/]b · final fit", "warning: a[/]b: The class '[/]' is rare."):
        assert expected in shown.getvalue()


def shares_of(bars: terminal.Bars) -> tuple[float, float | None]:
    """How much the bar shows as done, and of how much."""
    (bar,) = bars._progress.tasks
    return round(bar.completed, 6), bar.total


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "ERR", console.Console(file=shown, force_terminal=True, color_system=None, width=200))
    return shown


def test_the_bar_shows_what_is_done_before_anything_is_trained(screen: io.StringIO) -> None:
    with terminal.Bars() as bars:
        bars.status("loading packages")
        assert shares_of(bars) == (0, None)  # it is not known how much there is to do
    assert "loading packages" in screen.getvalue()


def test_one_bar_counts_all_stages_of_a_run_by_their_shares(screen: io.StringIO) -> None:
    with terminal.Bars() as bars:
        bars.expect({"trajectory": 0.2, "fit": 0.3})  # once for each of two learners
        for begun in (0.0, 0.5):
            for stage, before, share in (("trajectory", 0.0, 0.2), ("decode", 0.2, 0.0), ("fit", 0.2, 0.3)):
                bars.start(stage, total=10, done=0)
                bars.advance(5)
                assert shares_of(bars) == (pytest.approx(begun + before + share / 2), 1)
                bars.finish()
        bars.start("fit", total=10, done=10)
        assert shares_of(bars) == (0.99, 1)  # of a run that has not ended
    assert "final fit" in screen.getvalue()
    assert "left" in screen.getvalue()


def test_without_an_expectation_the_bar_is_that_of_the_current_stage_or_of_all_runs(screen: io.StringIO) -> None:
    with terminal.Bars() as bars:
        bars.start("predict", total=20_000, done=8_000)
        assert shares_of(bars) == (8_000, 20_000)
    with terminal.Bars(runs=3, what="trials") as bars:
        bars.update_runs("trials, best 0.7", done=1)
        bars.start("fit", total=10, done=5)
        assert shares_of(bars) == (1, 3)
