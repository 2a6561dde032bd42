"""The stages that a study expects runs to share are those that the runs train."""

from pathlib import Path

import numpy as np
import polars

from umix.bench.runs.execute import execute
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.shared_stages import StagePlanner


def test_the_key_expected_for_a_net_that_is_told_of_columns_is_that_of_the_stage_that_is_trained(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    frame = {"city": rng.choice(["a", "b", "c"], 80), "age": rng.normal(size=80), "y": rng.choice(["no", "yes"], 80)}
    polars.DataFrame(frame).write_csv(tmp_path / "people.csv")
    settings = {"label": "y", "net": "tabular", "fit.epochs": 2, "eta": 3.0, "length": 1, "pool": "example"}
    spec = RunSpec(task=str(tmp_path / "people.csv"), method="umix", settings=settings, seed=0)
    expected = StagePlanner(None).first_stage(spec, spec.plan.source.load(None))
    record = execute(spec, out=tmp_path / "runs")
    assert expected is not None
    assert expected.key in {stage.key for stage in record.stages.values()}
