"""The training examples of a run: the window that was used, what auto decided, hints and predictions."""

from collections.abc import Callable

import numpy as np
import pytest

from umix.bench.runs.record import RunRecord
from umix.reports.page.details import details, few_values, uncertainty_notes, uncertainty_order
from umix.reports.training_examples import Closer, Training, Window, window_of

Make = Callable[..., RunRecord]
COLOURS = {"a": "#000000", "b": "#ffffff"}


def training(*histories: str, window: Window, **more: object) -> Training:
    """Training examples of class 0 whose first stage went as ``histories`` say: 1 right, 0 wrong."""
    correct = np.array([[letter == "1" for letter in history] for history in histories]).T
    n = len(histories)
    inside = correct[window.start : window.start + window.length]
    values = {
        "label": np.zeros(n, dtype=np.int64),
        "uncertainty": 1 - inside.mean(axis=0),
        "weight": np.ones(n),
        "member": np.stack([np.arange(n) < n - 1, np.arange(n) == n - 1], axis=1),
        "correct": correct,
        "visited": np.ones_like(correct),
        "row": None,
        "file": None,
        "closer": None,
        "window": window,
    }
    return Training(**{**values, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "choices", "expected"),
    [
        ({"start": 2, "length": 5}, {}, Window(2, 5)),
        ({"start": 0, "length": "auto"}, {"start": 0, "length": 3}, Window(0, 3)),
        ({"start": 0, "length": "auto"}, {}, None),
        ({"identification_epochs": 4}, {}, Window(3, 1)),
        ({"identification_epochs": "auto"}, {"identification_epochs": 2}, Window(1, 1)),
        ({"identification_epochs": "auto"}, {}, None),
        ({}, {}, None),
    ],
    ids=["set", "auto", "auto undecided", "jtt", "jtt auto", "jtt undecided", "neither"],
)
def test_the_window_is_what_was_set_or_decided(
    record: Make, options: dict[str, object], choices: dict[str, object], expected: Window | None
) -> None:
    assert window_of(record(0, [5, 5], "umix", options=options, choices=choices)) == expected


def test_the_window_of_a_selection_is_that_of_its_winner(record: Make) -> None:
    won = {"method": "umix", "umix.start": 0, "umix.length": 5, "trajectory.epochs": 30}
    assert window_of(record(0, [5, 5], "best", choices=won)) == Window(0, 5)
    assert window_of(record(0, [5, 5], "best", choices={"method": "reweight", "reweight.by": "class"})) is None


def test_what_auto_decided_and_why_is_told(record: Make) -> None:
    choices = {"start": 0, "length": 3, "eta": 10.0, "pool": "class", "reason": "best of 6 trials"}
    run = record(0, [5, 5], "umix", options={"eta": "auto", "pool": "class", "length": "auto"}, choices=choices)
    notes = uncertainty_notes(run, training("00111", "11111", window=Window(0, 3)))
    assert notes[0] == "The method used epochs 1 to 3 of 5 recorded epochs of the first stage."
    assert notes[-1] == "Set by auto: eta = 10, length = 3. Why: best of 6 trials."


def test_what_auto_decided_for_jtt_is_told_too(record: Make) -> None:
    choices = {"identification_epochs": 2, "upweight": 3, "reason": "best of 9 candidates", "candidates": []}
    run = record(0, [5, 5], "jtt", options={"identification_epochs": "auto", "upweight": "auto"}, choices=choices)
    notes = uncertainty_notes(run, training("00111", "11111", window=window_of(run)))
    assert notes[0] == "The method used epoch 2 of 5 recorded epochs of the first stage."
    assert notes[-1] == "Set by auto: identification_epochs = 2, upweight = 3. Why: best of 9 candidates."


def test_what_was_set_was_not_decided(record: Make) -> None:
    run = record(0, [5, 5], "umix", options={"eta": 1.0, "length": 2}, choices={})
    notes = uncertainty_notes(run, training("0", "1", window=Window(0, 1)))
    assert all("auto" not in note for note in notes)
    assert "The method used epoch 1 of 1 recorded epoch of the first stage." in notes


def test_one_epoch_has_counts_instead_of_a_figure(record: Make) -> None:
    run = record(0, [5, 5], "jtt", options={"identification_epochs": 2})
    some = training("10", "11", "00", window=Window(1, 1))
    assert few_values(some)
    told = details("jtt", run, some, COLOURS)
    assert told.figures == []
    assert any("Wrong in that epoch: 2 training examples; right: 1." in note for note in told.notes)


@pytest.mark.parametrize(("length", "figures"), [(2, 0), (3, 1)])
def test_a_window_of_two_epochs_has_the_table_alone(record: Make, length: int, figures: int) -> None:
    some = training(*["0011", "1111", "0111"] * 10, window=Window(0, length))
    told = details("umix", record(0, [5, 5], "umix"), some, COLOURS)
    assert len(told.figures) == figures
    assert any("(effective sample size)" in note for note in told.notes)


def test_hints_are_counted_by_group_and_shown_with_the_examples(record: Make) -> None:
    some = training("0000", "0001", "1111", "0000", window=Window(0, 2))
    told = details("umix", record(0, [5, 5], "umix"), some, COLOURS)
    assert [(one.contradicted, one.learned_late) for one in told.groups] == [(1, 1), (1, 0)]
    assert (told.total.contradicted, told.total.learned_late) == (2, 1)
    assert {one.index: one.hint for one in told.examples} == {
        0: "consistently contradicted",
        1: "learned late",
        2: "–",
        3: "consistently contradicted",
    }


def test_predictions_are_those_of_the_final_net_where_it_was_asked(record: Make) -> None:
    closer = Closer(np.array([0, 2]), np.zeros((2, 3)), np.array([True, False]), None, np.array([0, 2]))
    run = record(0, [5, 5], "umix", classes=["no", "yes", "maybe"])
    some = training("0000", "0000", "1111", "0111", window=Window(0, 2), closer=closer)
    shown = {one.index: (one.predicted, one.by_final) for one in details("umix", run, some, COLOURS).examples}
    assert shown == {0: ("no", True), 1: ("another class", False), 2: ("maybe", True), 3: ("no", False)}
    two = RunRecord(**{**run.model_dump(), "classes": ["no", "yes"]})
    earlier = training("0000", "1111", "0000", window=Window(0, 2))
    assert {one.index: one.predicted for one in details("umix", two, earlier, COLOURS).examples} == {
        0: "yes",
        1: "no",
        2: "yes",
    }


def test_the_uncertainty_of_umix_is_shown_before_that_of_others(record: Make) -> None:
    runs = {
        "erm": [record(0, [5, 5])],
        "jtt": [record(0, [5, 5], "jtt")],
        "umix eta=1": [record(0, [5, 5], "umix")],
        "umix eta=2": [record(0, [5, 5], "umix")],
    }
    assert uncertainty_order(runs, "jtt")[:3] == ["umix eta=1", "umix eta=2", "jtt"]
    assert uncertainty_order(runs, "umix eta=2")[0] == "umix eta=2"
