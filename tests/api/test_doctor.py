"""``umix.doctor`` gives in Python what the command prints."""

from pathlib import Path

import polars
import pytest

import umix


def test_the_check_of_a_table_has_verdict_findings_and_columns(tmp_path: Path) -> None:
    frame = polars.DataFrame(
        {"x": [f"{i % 60},5" for i in range(300)], "sex": ["f", "m", "m"] * 100, "y": ["n", "p"] * 150}
    )
    frame.write_csv(tmp_path / "people.csv", separator=";")
    found = umix.doctor(tmp_path / "people.csv", label="y", groups="sex", test_share=0.4)
    assert {one.name: one.type or one.role for one in found.columns} == {"x": "number", "sex": "category", "y": "label"}
    assert found.rows["test"] == 120
    assert found.verdict in ("fine", "look at this")


def test_a_setting_that_is_not_there_raises_as_in_a_run(tmp_path: Path) -> None:
    polars.DataFrame({"x": [1, 2], "y": [0, 1]}).write_csv(tmp_path / "a.csv")
    with pytest.raises(umix.UserError, match="did you mean"):
        umix.doctor(tmp_path / "a.csv", lable="y")
