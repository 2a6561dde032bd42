"""``umix select``."""

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from umix.commands.catalogue import print_json
from umix.commands.flags import Json, ReadDecide
from umix.commands.table import load
from umix.terminal import OUT


def select(
    directory: Annotated[Path, Parameter(help="Folder of runs.")] = Path("runs"),
    *,
    decide: ReadDecide = None,
    as_json: Json = False,
) -> None:
    """Compare selection rules on the runs in DIRECTORY: test rates, and regret against an oracle that sees the test split."""
    from umix.core.selection import ORACLE
    from umix.reports.arrange import arrange
    from umix.reports.decided_rows import decided_rows
    from umix.reports.regret import outcomes, regret_tables
    from umix.reports.tables.formats import terminal

    runs = decided_rows(arrange(load(directory)), decide=decide)
    rule_outcomes = outcomes(runs)
    if as_json:
        rows = [dataclasses.asdict(outcome) for outcome in rule_outcomes]
        print_json([{**_nan_as_none(row), "legitimate": row["rule"] != ORACLE} for row in rows])
        return
    without = [task for task, methods in runs.items() if not next(iter(methods.values()))[0].groups]
    for table in regret_tables(rule_outcomes, without_groups=without):
        OUT.print(terminal(table))


def _nan_as_none(value: Any) -> Any:
    """``value`` with None, JSON's null, for every NaN in it."""
    if isinstance(value, dict):
        return {key: _nan_as_none(item) for key, item in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
