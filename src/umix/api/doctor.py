"""``umix.doctor``: what ``umix doctor`` finds in data, from Python."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from umix.api.train import flat_settings
from umix.bench.doctor import check

if TYPE_CHECKING:
    from umix.data.checks.data_check import DataCheck


def doctor(task: str | Path, *, root: str | Path | None = None, **settings: Any) -> "DataCheck":
    """The check of data without training: ``verdict``, ``all_findings``, ``columns`` of a table, and counts by split and group.

    Args:
        task: the path of your own data, or the name of a benchmark with a folder of files.
        root: folder of a benchmark's files.
        settings: which column is what, as for ``umix.train``: ``label="income"``, ``groups=["sex", "race"]``.

    """
    return check(str(task), None if root is None else Path(root), flat_settings(settings))
