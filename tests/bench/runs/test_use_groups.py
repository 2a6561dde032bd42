"""How far known groups may be used: only reported, also to choose, also to train."""

from pathlib import Path

import pytest

from umix.bench.runs.execute import execute
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main
from umix.core.selection import best_choice, best_epoch
from umix.errors import UserError

FAST = {"epochs": 3, "task.sizes": [30, 6, 6, 30], "task.eval_size": 40, "net.hidden": [4]}


def spec(method: str = "erm", **settings: object) -> RunSpec:
    return RunSpec(task="four_moons", method=method, settings={**FAST, **settings})


def test_groups_that_are_only_reported_choose_nothing(tmp_path: Path) -> None:
    record = execute(spec(use_groups="test"), out=tmp_path)
    assert record.rule() == "balanced"
    assert record.summary().worst is not None
    assert not record.has("worst")
    assert record.oracle().worst >= record.summary().worst
    with pytest.raises(UserError, match="select=worst must see validation groups, but use_groups=test forbids it"):
        record.summary("worst")


def test_by_default_everything_that_is_known_is_used_and_the_key_does_not_change(tmp_path: Path) -> None:
    assert spec().key == spec(use_groups="train").key != spec(use_groups="val").key
    record = execute(spec(), out=tmp_path)
    assert record.rule() == "worst"
    assert record.best_epoch(threshold="off") == best_epoch(record.counts["val"], "worst")
    assert record.choice() == best_choice(record.threshold_counts["val"], "worst")


def test_a_run_that_no_group_has_touched_can_be_read_with_validation_groups_afterwards(tmp_path: Path) -> None:
    without = execute(spec(use_groups="test"), out=tmp_path)
    without.summary()  # counts that were cached for its own rules are not those of the other reading
    val = execute(spec(use_groups="val"), out=tmp_path)
    assert without.with_evaluation(use_groups="val").summary() == val.summary()
    assert without.rule() == "balanced"


@pytest.mark.parametrize(
    ("method", "use", "message"),
    [
        ("group_dro", "val", "group_dro trains with training groups, but use_groups=val does not allow it"),
        ("group_dro", "test", "group_dro trains with training groups, but use_groups=test does not allow it"),
        ("dfr", "test", "dfr trains with validation groups, but use_groups=test does not allow it"),
    ],
)
def test_methods_that_train_with_groups_refuse_where_they_may_not(
    tmp_path: Path, method: str, use: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        execute(spec(method, use_groups=use), out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_validation_groups_may_train_a_last_layer_where_training_groups_may_not(tmp_path: Path) -> None:
    assert execute(spec("dfr", use_groups="val"), out=tmp_path).group_use == "validation"


def test_the_command_line_spells_it_as_a_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "four_moons", "group_dro", "--use-groups", "val", "--out", str(tmp_path)]
    assert main(words) == 2
    assert "but --use-groups val does not allow it; set --use-groups train" in capsys.readouterr().err
