"""Inputs that give the label away, and rows of val and test that are copies of training rows, are found; honest ones are not."""

import numpy as np
import polars
import pytest

from umix.data.checks.table_findings import copies, leaks, row_keys

N = 600
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
NOISE = RNG.normal(size=N)


def subjects(y: np.ndarray, **columns: object) -> list[str]:
    return [finding.subject for finding in leaks(polars.DataFrame(columns), y, label="y")]


def test_a_copy_of_the_label_is_found_under_other_values_and_in_small_tables() -> None:
    y = np.array([0, 1, 2] * 12)
    (found,) = leaks(polars.DataFrame({"code": [["a", "b", None][c] for c in y], "x": range(36)}), y, label="income")
    assert found.sentence == (
        "The column 'code' is an input but a copy of the label 'income': each of its values means one class."
    )
    assert found.message().endswith("leave it out with drop=code.")


@pytest.mark.parametrize(
    "values",
    [
        Y + 0.1 * NOISE,
        [float(value) if label else None for value, label in zip(NOISE, Y, strict=True)],
        [f"{label}{place % 7}" for place, label in enumerate(Y)],
        (Y * 1000 + np.arange(N)).astype("datetime64[s]").astype("datetime64[us]"),
    ],
    ids=["a number", "known in one class only", "values that belong to one class each", "a moment"],
)
def test_an_input_that_alone_tells_the_label_is_found(values: object) -> None:
    (found,) = leaks(polars.DataFrame({"told": values, "noise": NOISE}), Y, label="y")
    assert found.subject == "told"
    assert "alone tells 'y' in 100.0% of held-out training rows" in str(found.sentence)


def test_an_input_that_is_right_in_nine_of_ten_rows_is_not_reported() -> None:
    wrong = RNG.random(N) < 0.1
    assert (
        subjects(Y, good=np.where(wrong, 1 - Y, Y), word=[str(v) for v in np.where(wrong, 1 - Y, Y)], noise=NOISE) == []
    )


def test_a_rare_class_does_not_make_every_input_look_good() -> None:
    y = (np.arange(N) % 100 == 0).astype(np.int64)
    assert subjects(y, noise=NOISE, same=[1] * N) == []
    assert subjects(y, told=y + 0.1 * NOISE) == ["told"]


def test_names_that_never_repeat_tell_nothing_about_held_out_rows() -> None:
    assert subjects(Y, name=[f"{label}-{place}" for place, label in enumerate(Y)]) == []


def test_the_order_of_the_rows_does_not_matter() -> None:
    order = np.argsort(Y, kind="stable")
    assert subjects(Y[order], noise=NOISE[order], place=np.arange(N)) == [
        "place"
    ]  # sorted by class: the row number tells


def test_nothing_is_said_about_few_rows_or_one_class() -> None:
    assert subjects(Y[:20], told=Y[:20]) == []
    assert subjects(np.zeros(N, dtype=np.int64), noise=NOISE) == []


LABELS = np.arange(200) % 2
ROWS = {"train": np.arange(100), "val": np.arange(100, 150), "test": np.arange(150, 200)}


def keys(*, copied: int) -> np.ndarray:
    """Keys of 200 rows, of which the first ``copied`` of val repeat a training row of the same label."""
    made = np.arange(200, dtype=np.uint64)
    made[100 : 100 + copied] = made[:copied]
    return made


def test_copies_are_counted_with_their_share() -> None:
    (found,) = copies(keys(copied=10), LABELS, ROWS)
    assert str(found.sentence).startswith(
        "10 of 100 rows in val and test (10.0%) have the same inputs as a training row: "
    )
    assert found.message().endswith("in one split with split=.")


def test_the_labels_that_differ_are_counted() -> None:
    y = LABELS.copy()
    y[100] = 1 - y[100]
    assert "training row, 1 of them with another label:" in copies(keys(copied=10), y, ROWS)[0].message()


def test_rows_whose_labels_differ_as_often_as_by_chance_are_no_copies() -> None:
    y = LABELS.copy()
    y[100:105] = 1 - y[100:105]
    assert copies(keys(copied=10), y, ROWS) == []


def test_different_rows_and_less_than_one_percent_are_not_mentioned() -> None:
    assert copies(keys(copied=0), LABELS, ROWS) == []
    y, rows = np.arange(1200) % 2, {"train": np.arange(100), "val": np.arange(100, 900), "test": np.arange(900, 1200)}
    made = np.arange(1200, dtype=np.uint64)
    made[100:110] = made[:10]
    assert copies(made, y, rows) == []


def test_rows_have_the_same_key_if_all_their_values_are_the_same() -> None:
    made = row_keys(polars.DataFrame({"a": [1, 1, 1, None], "b": ["x", "x", "y", "x"]}))
    assert made[0] == made[1]
    assert len(set(made.tolist())) == 3
