"""Tables as text and HTML are values: making them shows nothing, also in a notebook."""

import numpy as np
import pytest
from rich import console, jupyter
from rich.text import Text

from umix import group_counts
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
