"""Trials that another process has stored."""

import json
import sqlite3
import sys
from pathlib import Path

import pytest

from umix.bench.search.tune import tune
from umix.errors import UserError
from umix.settings import Range

pytestmark = pytest.mark.system

pytest.importorskip("optuna")

TINY = {"task.sizes": [24, 8, 8, 24], "task.eval_size": 8, "fit.epochs": 1, "fit.batch_size": 64}


def test_stored_settings_that_the_search_cannot_have_drawn_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "canary_net.py").write_text("import pathlib\npathlib.Path('imported').touch()\n")
    space = {"gamma": Range(low=1, high=3)}

    def search() -> object:
        return tune("four_moons", "focal", trials=1, settings=TINY | {"class_balance": "none"}, space=space, out="runs")

    assert search()
    for stored in ({"net": "canary_net:make"}, {"focal.gamma": 1e300}):
        with sqlite3.connect("runs/tune-four_moons-focal/study.db") as database:
            change = "update trial_user_attributes set value_json = ? where key = 'settings'"
            database.execute(change, (json.dumps(stored),))
        with pytest.raises(UserError, match="must hold trials of this search, but trial 0 has"):
            search()
    assert not Path("imported").exists()
    assert "canary_net" not in sys.modules
