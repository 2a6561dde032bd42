"""umix: classifiers that hold up on every subpopulation, trained without group labels.

The public names are loaded when they are first used, so that what needs no torch does not import it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from umix.version import __version__

if TYPE_CHECKING:
    from umix.adapters.sklearn import UMIXClassifier
    from umix.bench.runs.execute import execute, load_net
    from umix.bench.runs.record import RunRecord, load_run
    from umix.bench.spec.run_spec import RunSpec
    from umix.data.arrays.source import task_from_arrays
    from umix.data.registry import TASKS, load_task
    from umix.data.tables.source import task_from_table
    from umix.errors import UserError
    from umix.methods.registry import METHODS, method
    from umix.training.trajectory import Trajectory

_HOME = {
    "METHODS": "umix.methods.registry",
    "RunRecord": "umix.bench.runs.record",
    "RunSpec": "umix.bench.spec.run_spec",
    "TASKS": "umix.data.registry",
    "Trajectory": "umix.training.trajectory",
    "UMIXClassifier": "umix.adapters.sklearn",
    "UserError": "umix.errors",
    "execute": "umix.bench.runs.execute",
    "load_net": "umix.bench.runs.execute",
    "load_run": "umix.bench.runs.record",
    "load_task": "umix.data.registry",
    "method": "umix.methods.registry",
    "task_from_arrays": "umix.data.arrays.source",
    "task_from_table": "umix.data.tables.source",
}

__all__ = [
    "METHODS",
    "TASKS",
    "RunRecord",
    "RunSpec",
    "Trajectory",
    "UMIXClassifier",
    "UserError",
    "__version__",
    "execute",
    "load_net",
    "load_run",
    "load_task",
    "method",
    "task_from_arrays",
    "task_from_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'umix' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
