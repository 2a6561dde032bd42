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
    for expected in ("all [/] runs", "a[/]b · fit steps", "warning: a[/]b: The class '[/]' is rare."):
        assert expected in shown.getvalue()
