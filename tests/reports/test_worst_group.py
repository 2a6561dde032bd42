"""The worst group of a run: one definition, whoever asks."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest

import umix
from umix.bench.runs.epoch_table import rate_rows
from umix.bench.runs.record import RunRecord
from umix.core.evaluation import MIN_GROUP, PRIOR
from umix.reports.comparison import compare
from umix.reports.sentences import judged_words

Make = Callable[..., RunRecord]
GROUPS = ["land, forest", "land, sea", "water, forest", "water, sea"]
SIZES, HITS = [330, 20, 16, 110], [305, 5, 5, 100]


@pytest.fixture
def photographs(record: Make) -> RunRecord:
    """750 photographs: two groups of 20 and 16 are at 25.0 and 31.2 %, the worst large one at 90.9 %."""
    counts = {
        "hits": [HITS],
        "sizes": SIZES,
        "class_hits": [[310, 105]],
        "class_sizes": [350, 126],
        "composition": [[330, 0], [20, 0], [0, 16], [0, 110]],
    }
    return record(
        0,
        HITS,
        groups=GROUPS,
        classes=["land", "water"],
        train_sizes=[1] * 4,
        split_counts={"val": counts, "test": counts},
        min_group=MIN_GROUP,
        prior=PRIOR,
    )


def test_a_small_group_that_fails_beyond_doubt_is_the_headline_with_its_size(photographs: RunRecord) -> None:
    summary = photographs.summary()
    assert (summary.worst_group, summary.worst, summary.level) == ("land, sea", 0.25, "groups")
    assert [name for name, rate in summary.groups.items() if rate.judged] == GROUPS
    words = judged_words(summary, photographs.min_group)
    assert words == (
        "land, sea (n = 20), water, forest (n = 16) are small, but count: clearly worse than every larger group (95 % intervals do "
        "not overlap)."
    )


def test_tables_adapters_and_epochs_name_the_same_worst_rate(photographs: RunRecord) -> None:
    y = np.repeat([0, 0, 1, 1], SIZES)
    place = np.repeat(["forest", "sea", "forest", "sea"], SIZES)
    correct = np.concatenate([np.arange(size) < hits for hits, size in zip(HITS, SIZES, strict=True)])
    counts = umix.group_counts(np.where(correct, y, 1 - y), y, place)
    assert counts.worst == counts.metrics()["worst"] == photographs.summary().worst
    assert counts.worst_group == "0, sea"
    halves = [
        umix.group_counts(np.where(correct, y, 1 - y)[part], y[part], place[part])
        for part in np.split(np.arange(476), 2)
    ]
    assert sum(halves).worst == counts.worst
    (cell,) = compare({"toy": {"erm": [photographs]}}).cells["toy"].values()
    assert (cell.rates["worst"].mean, cell.worst_groups) == (0.25, ("land, sea",))
    rows = rate_rows("fit", "test", photographs.counts["test"], groups=GROUPS, classes=["land", "water"])
    assert [row.value for row in rows if row.measure == "worst"] == [0.25]


def test_the_group_mean_is_over_all_groups(photographs: RunRecord) -> None:
    expected = np.mean([hits / size for hits, size in zip(HITS, SIZES, strict=True)])
    assert photographs.summary().group_mean == pytest.approx(expected)


def test_papers_count_every_group_by_its_raw_rate(record: Make) -> None:
    counts = {
        "hits": [[90, 1]],
        "sizes": [100, 2],
        "class_hits": [[91]],
        "class_sizes": [102],
        "composition": [[100], [2]],
    }
    run = record(
        0, [1, 1], classes=["only"], split_counts={"val": counts, "test": counts}, min_group=MIN_GROUP, prior=PRIOR
    )
    assert run.summary().worst == 0.9  # one of two may be chance
    assert run.by_raw_rates().summary().worst == 0.5


@pytest.fixture(scope="module")
def people() -> polars.DataFrame:
    """Two group columns with blanks of their own."""
    rng = np.random.default_rng(0)
    n = 900
    y = rng.integers(0, 2, n)
    blank = rng.random((2, n)) < 0.3
    sex = [None if gone else "mf"[value] for value, gone in zip(rng.integers(0, 2, n), blank[0], strict=True)]
    race = [None if gone else "ab"[value] for value, gone in zip(rng.integers(0, 2, n), blank[1], strict=True)]
    return polars.DataFrame(
        {
            "x": rng.normal(size=n) + y,
            "sex": sex,
            "race": race,
            "split": rng.choice(["train", "val", "test"], n),
            "y": np.array(["no", "yes"])[y],
        }
    )


@pytest.fixture(scope="module")
def results(people: polars.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, umix.RunResult]:
    """The same run in a folder and in memory."""
    task = umix.task_from_table(people, label="y", groups=["sex", "race"], split="split")
    paths = {"folder": tmp_path_factory.mktemp("runs"), "memory": None}
    return {name: umix.train(task, "erm", net="mlp", epochs=2, out=out) for name, out in paths.items()}


def test_a_row_counts_in_the_margin_of_a_column_whose_value_is_known(
    people: polars.DataFrame, results: dict[str, umix.RunResult]
) -> None:
    result = results["folder"]
    frame = people.filter(split="test").with_columns(
        hit=result.frame("test")["label"] == result.frame("test")["prediction"]
    )
    for run in (result.record, umix.load_run(result.record.directory)):
        for column, value in (("sex", "m"), ("sex", "f"), ("race", "a"), ("race", "b")):
            rate = run.summary().margins[column][f"yes, {value}"]
            rows = frame.filter(polars.col(column) == value, y="yes")
            assert (rate.size, rate.hits) == (len(rows), rows["hit"].sum())
    (train,) = (
        size
        for margin, size in zip(result.record.margins, result.record.train_margin_sizes, strict=True)
        if (margin.column, margin.name) == ("sex", "no, m")
    )
    assert train == len(people.filter(split="train", sex="m", y="no"))


def test_a_value_that_occurs_only_where_the_other_column_is_blank_has_a_margin(
    people: polars.DataFrame, tmp_path: Path
) -> None:
    third = polars.col("race").is_null() & (polars.int_range(polars.len()) % 2 == 0)
    table = people.with_columns(sex=polars.when(third).then(polars.lit("x")).otherwise("sex"))
    task = umix.task_from_table(table, label="y", groups=["sex", "race"], split="split")
    result = umix.train(task, "erm", net="mlp", epochs=2, out=tmp_path)
    rows, frame = table.filter(split="test"), result.frame("test")
    for run in (result.record, umix.load_run(result.record.directory)):
        margins = run.summary().margins["sex"]
        assert [*margins] == ["no, f", "no, m", "no, x", "yes, f", "yes, m", "yes, x"]
        assert margins["yes, x"].size == len(rows.filter(sex="x", y="yes"))
    counts = umix.group_counts(frame["prediction"].to_list(), frame["label"].to_list(), rows.select("sex", "race"))
    assert counts.margins["yes, x (sex)"] == (margins["yes, x"].hits, margins["yes, x"].size)


def test_predictions_counted_by_hand_have_the_margins_of_the_run(
    people: polars.DataFrame, results: dict[str, umix.RunResult]
) -> None:
    result = results["memory"]
    rows, frame = people.filter(split="test"), result.frame("test")
    counts = umix.group_counts(frame["prediction"].to_list(), frame["label"].to_list(), rows.select("sex", "race"))
    summary = result.summary()
    assert counts.worst == summary.worst
    assert counts.worst_group == summary.worst_group


@pytest.mark.parametrize("place", ["folder", "memory"])
def test_the_predictions_of_a_run_show_every_group_column_that_is_known(
    people: polars.DataFrame, results: dict[str, umix.RunResult], place: str
) -> None:
    result = results[place]
    for split in ("val", "test"):
        frame, rows = result.frame(split), people.filter(split=split)
        assert frame.select("sex", "race").equals(rows.select("sex", "race"))
        assert frame["group"].is_null().equals((rows["sex"].is_null() | rows["race"].is_null()).rename("group"))
    hits, metrics = frame["label"] == frame["prediction"], result.metrics("accuracy", by="sex")
    for group, value, n in metrics.select("group", "value", "n").rows()[1:]:
        assert (value, n) == (hits.filter(rows["sex"] == group).mean(), len(rows.filter(sex=group)))
