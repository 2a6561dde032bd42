"""Validation rows without a group get one that is drawn from an estimate, so that more rows can choose."""

import numpy as np
import polars
import pytest
import torch

from umix import RunSpec, execute
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.task_reference import reference_to
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.methods.parts.spread_groups import with_validation_groups
from umix.models.mlp import Linear
from umix.training.context import Context
from umix.training.train_result import Notes


def task(n=1000, *, known=100, clear=4.0) -> Task:
    """Groups: class × place, where one input tells the place the better the larger ``clear`` is; ``known`` of validation."""
    rng = np.random.default_rng(0)
    splits = {}
    for name in ("train", "val", "test"):
        y, place = rng.integers(0, 2, n), (rng.random(n) < 0.3).astype(np.int64)
        x = rng.normal(size=(n, 4))
        x[:, 0] += y
        x[:, 1] += clear * place
        groups = Groups.cells(torch.from_numpy(y), torch.from_numpy(place), labels=["0", "1"], attributes=["a", "b"])
        if name == "val":
            groups = groups.known_for(torch.arange(n) < known)
        splits[name] = Split(torch.from_numpy(x).float(), torch.from_numpy(y), groups)
    return Task("places", splits, ("0", "1"))


def people(n=1000, *, known=200, other=0) -> Task:
    """Groups: class × sex × race. Of validation the race is blank but for ``known`` rows; the last ``other`` are of a third sex."""
    rng = np.random.default_rng(0)
    splits = {}
    for name in ("train", "val", "test"):
        y, sex, race = (torch.from_numpy(rng.integers(0, 2, n)) for _ in range(3))
        x = torch.from_numpy(rng.normal(size=(n, 4))).float() + torch.stack([y, 2 * sex, 4 * race, 0 * y], dim=1)
        blank = (torch.arange(n) >= known) & (name == "val")
        sex = torch.where((torch.arange(n) >= n - other) & blank, 2, sex)
        groups = Groups.cells(
            y,
            torch.where(blank, -1, 2 * sex + race),
            labels=["0", "1"],
            attributes=["f, a", "f, b", "m, a", "m, b"],
            columns=["y", "sex", "race"],
            values=[("f", "a"), ("f", "b"), ("m", "a"), ("m", "b")],
            by_column=[(sex, ["f", "m", "x"] if other else ["f", "m"]), (race.where(~blank, -1), ["a", "b"])],
        )
        splits[name] = Split(x, y, groups)
    return Task("people", splits, ("0", "1"))


def test_a_group_column_that_is_an_input_does_not_answer_for_rows_where_another_one_is_blank():
    """Sex and race are tossed coins and inputs; each is blank in other rows, so known rows alone have both answers."""
    rng, n = np.random.default_rng(0), 2000
    splits = {}
    for name in ("train", "val", "test"):
        y, sex, race = (torch.from_numpy(rng.integers(0, 2, n)) for _ in range(3))
        blank = torch.from_numpy(rng.integers(0, 3, n)) if name == "val" else torch.zeros(n)
        codes = [torch.where(blank == 1, -1, sex), torch.where(blank == 2, -1, race)]
        noise = torch.from_numpy(rng.normal(size=(n, 2))).float() + y[:, None]
        x = torch.cat([noise, *(torch.stack([code == 0, code == 1], dim=1).float() for code in codes)], dim=1)
        groups = Groups.cells(
            y,
            torch.where(blank > 0, -1, 2 * sex + race),
            labels=["0", "1"],
            attributes=["f, a", "f, b", "m, a", "m, b"],
            columns=["y", "sex", "race"],
            values=[("f", "a"), ("f", "b"), ("m", "a"), ("m", "b")],
            by_column=[(codes[0], ["f", "m"]), (codes[1], ["a", "b"])],
        )
        splits[name] = Split(x, y, groups)
    _, notes = filled(Task("coins", splits, ("0", "1")))
    assert "hardly better than chance" in notes.choices["validation groups"]["words"]


def filled(made: Task, **options) -> tuple[Split, Notes]:
    context, notes = with_validation_groups(Context(made, Linear(), **{"use_groups": "val"} | options))
    return context.splits["val"], notes


def test_known_groups_stay_and_the_others_are_drawn_within_their_class():
    made = task()
    val, _ = filled(made)
    known = made.splits["val"].groups.codes
    assert (val.groups.codes >= 0).all()
    assert val.groups.codes[:100].equal(known[:100])
    assert (val.groups.codes // 2 == val.y).all()
    assert val.groups.columns == made.splits["val"].groups.columns


def test_drawn_groups_are_nearly_the_true_ones_where_they_can_be_told():
    made, whole = task(), task(known=1000)
    right = filled(made)[0].groups.codes == whole.splits["val"].groups.codes
    assert right.double().mean() > 0.95


def test_a_group_is_drawn_that_agrees_with_the_columns_that_are_known():
    made = people()
    val, known = filled(made)[0].groups, made.splits["val"].groups
    assert (val.codes >= 0).all()
    for margin, rows in zip(known.margins, known.in_margins.T, strict=True):
        place = known.columns.index(margin.column)
        assert {known.parts[group][place] for group in val.codes[rows]} == {margin.parts[1]}


def test_a_row_whose_known_value_is_in_no_group_gets_one_all_the_same():
    val, _ = filled(people(other=50))
    assert (val.groups.codes // 4 == val.y).all()


@pytest.mark.parametrize("options", [{"use_groups": "test"}])
def test_nothing_is_drawn_where_groups_may_not_choose(options):
    made = task()
    val, notes = filled(made, **options)
    assert val.groups.codes.equal(made.splits["val"].groups.codes)
    assert notes.choices == {}


@pytest.mark.parametrize("known", [0, 950, 1000])
def test_nothing_is_drawn_where_none_or_nearly_all_are_known(known):
    made = task(known=known)
    assert filled(made)[0].groups.codes.equal(made.splits["val"].groups.codes)


@pytest.mark.parametrize(("known", "clear"), [(100, 0.0), (400, 1.0)], ids=["chance", "a little better"])
def test_groups_that_can_hardly_be_told_stay_blank_and_the_run_says_why(known, clear):
    made = task(known=known, clear=clear)
    val, notes = filled(made)
    assert val.groups.codes.equal(made.splits["val"].groups.codes)
    words = notes.choices["validation groups"]["words"]
    assert "hardly better than chance" in words
    assert "groups_from" not in words  # nobody has asked for it
    assert "method that needs none" not in words


def test_a_group_column_that_is_an_input_itself_does_not_answer_for_the_rows_where_it_is_blank(tmp_path):
    """A coin that nothing predicts, known for a third of the rows of a table, in which it is an input too."""
    rng = np.random.default_rng(0)
    n = 900
    coin = np.where(rng.random(n) < 0.5, "a", "b").astype(object)
    coin[rng.random(n) > 1 / 3] = None
    columns = {f"x{j}": rng.normal(size=n) for j in range(3)}
    y = (columns["x0"] + rng.normal(size=n) > 0).astype(int)
    path = tmp_path / "coin.csv"
    polars.DataFrame({**columns, "coin": coin.tolist(), "y": y}).write_csv(path)
    settings = {"task.label": "y", "task.groups": "coin", "fit.epochs": 1}
    record = execute(RunSpec(task=str(path), method="erm", settings=settings), out=tmp_path / "runs")
    assert "hardly better than chance" in record.choices["validation groups"]["words"]


def test_drawn_groups_choose_but_are_not_written_as_if_they_were_known(tmp_path):
    reference = reference_to(task())
    spec = RunSpec(task=reference.name, method="erm", settings={"fit.epochs": 2, "evaluation.use_groups": "val"})
    record = execute(spec, paths=RunPaths(tmp_path, tasks=reference.tasks))
    assert sum(record.split_counts["val"].sizes) == 1000
    rows = polars.read_parquet(record.directory / "predictions.parquet").filter(polars.col("split") == "val")
    group = next(rows[name] for name in rows.columns if name.startswith("group"))
    assert group.null_count() == 900 or (group.cast(polars.Int64) < 0).sum() == 900
