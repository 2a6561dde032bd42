"""A comparison in which every method had the same search."""

from pathlib import Path

import pytest

from umix.bench.grid import make_grid
from umix.bench.grid_search import search_grid
from umix.bench.search import News
from umix.bench.study import Study
from umix.errors import UserError
from umix.train.progress import Silent

STUDY = Study(
    tasks=["four_moons"],
    methods=["erm", "focal", "coral"],
    seeds="0:2",
    settings={"epochs": 2, "task.sizes": [30, 6, 6, 30], "task.eval_size": 10, "net.hidden": [4]},
)


def test_every_method_gets_as_many_trials_on_a_seed_of_their_own_and_all_runs_what_was_found(tmp_path: Path) -> None:
    seen: list[tuple[str, News]] = []
    grid, found = search_grid(
        make_grid(STUDY),
        trials=2,
        out=tmp_path,
        select=None,
        places={},
        progress=Silent(),
        watch=lambda label, news: seen.append((label, news)),
    )
    assert [tuned.method for tuned in found] == ["focal", "coral"]
    assert all(len(tuned.trials) == 2 for tuned in found)
    assert {news.seed for _, news in seen} == {2}
    assert {label for label, _ in seen} == {"focal on four_moons", "coral on four_moons"}
    assert len(grid.cells) == 6
    for tuned in found:
        for cell in grid.cells:
            if cell.label == tuned.method:
                assert {key: cell.spec.plan.setting(key)[2] for key in tuned.settings} == tuned.settings
    before = {cell.key for cell in make_grid(STUDY).cells if cell.label == "erm"}
    assert {cell.key for cell in grid.cells if cell.label == "erm"} == before


def test_a_budget_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--tune must be at least 1"):
        search_grid(
            make_grid(STUDY),
            trials=0,
            out=tmp_path,
            select=None,
            places={},
            progress=Silent(),
            watch=lambda label, news: None,
        )
