"""The ordinary model that a run is compared with."""

from pathlib import Path

import polars
import pytest

from umix.bench.runs.execute import execute
from umix.bench.runs.ordinary import ordinary_spec
from umix.bench.spec.run_spec import RunSpec

FAST = {"epochs": 2, "sizes": [40, 8, 8, 40], "eval_size": 10}


def test_settings_of_the_method_and_its_stages_are_dropped_and_all_others_stay(tmp_path: Path) -> None:
    own = {"eta": 3, "length": 2, "trajectory.lr": 0.1, "hidden": [8], "evaluation.use_groups": "val", "fit.lr": 0.02}
    spec = RunSpec(task="four_moons", method="umix", settings=FAST | own, seed=3)
    ordinary = ordinary_spec(spec, execute(spec, out=tmp_path))
    assert (ordinary.task, ordinary.method, ordinary.seed) == ("four_moons", "erm", 3)
    for part in ("source", "net", "fit", "evaluation"):
        assert getattr(ordinary.plan, part) == getattr(spec.plan, part)
    assert not ordinary.plan.stages


@pytest.mark.parametrize("learner", ["mlp", "trees"])
def test_the_learner_is_the_one_that_the_run_ended_with(tmp_path: Path, learner: str) -> None:
    rows = range(120)
    frame = {"age": [k % 7 for k in rows], "town": ["ab"[k % 2] for k in rows], "y": ["no", "yes"] * 60}
    polars.DataFrame(frame).write_csv(tmp_path / "people.csv")
    settings = {"label": "y", "groups": "town", "epochs": 2, "lr": 0.01, "trials": 1, "among": [learner]}
    spec = RunSpec(task=str(tmp_path / "people.csv"), method="best", settings=settings)
    ordinary = ordinary_spec(spec, execute(spec, out=tmp_path / "runs"))
    assert ordinary.plan.net_name == learner
    assert ordinary.plan.fit.epochs == 2
    assert ("fit.lr" in ordinary.settings) == (learner == "mlp")  # trees take no steps
