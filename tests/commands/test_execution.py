"""What a command expects of a run before it is trained."""

from pathlib import Path
from typing import Any

import pytest

from umix.bench.runs.execute import execute
from umix.bench.spec.run_spec import RunSpec
from umix.commands.execution import _shares

FAST = {"epochs": 2, "sizes": [40, 8, 8, 40], "eval_size": 10}


class Names:
    """Progress that keeps the names of the stages that have ended."""

    began = 0.0

    def __init__(self) -> None:
        self.ended: list[str] = []

    def start(self, stage: str, *, total: int, done: int) -> None:
        self.stage = stage

    def advance(self, steps: int) -> None: ...

    def finish(self) -> None:
        self.ended.append(self.stage)

    def note(self, message: str) -> None: ...


@pytest.mark.parametrize(
    ("method", "settings"),
    [("erm", {}), ("umix", {"length": 2}), ("umix", {"eta": "auto"}), ("best", {"trials": 3, "net": "mlp"})],
    ids=["erm", "umix", "auto", "best"],
)
def test_every_stage_that_is_expected_is_trained_and_their_shares_are_the_whole_run(
    tmp_path: Path, method: str, settings: dict[str, Any]
) -> None:
    spec, names = RunSpec(task="four_moons", method=method, settings=FAST | settings), Names()
    execute(spec, out=tmp_path, progress=names)
    shares = _shares(spec)
    assert sorted(shares) == sorted(names.ended)
    assert sum(shares.values()) == pytest.approx(1)


def test_the_stages_of_every_learner_are_expected(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "\n".join(f"{k},{k % 2}" for k in range(40)))
    spec = RunSpec(task=str(table), method="best", settings={"task.label": "y", "net": "auto"})
    assert 2 * sum(_shares(spec).values()) == pytest.approx(1)
