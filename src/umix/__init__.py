"""umix: classifiers that hold up on every subpopulation, with whatever is known of the groups.

Every public name is imported when it is first used, so that commands which need no torch do not import it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from umix.version import __version__

if TYPE_CHECKING:
    from umix.adapters.group_counts import GroupCounts, group_counts
    from umix.adapters.indexed_dataset import IndexedDataset
    from umix.adapters.sklearn import UMIXClassifier
    from umix.adapters.sklearn.sample_weights import sample_weights
    from umix.adapters.weighted_mixup import WeightedMixup
    from umix.api.doctor import doctor
    from umix.api.evaluate import EvaluationResult, evaluate
    from umix.api.report import report
    from umix.api.result import RunResult, export, load_result, predict
    from umix.api.study import StudyResult, run_study
    from umix.api.train import train
    from umix.api.tune import tune
    from umix.bench.runs.execute import execute
    from umix.bench.runs.load_net import load_net
    from umix.bench.runs.paths import RunPaths
    from umix.bench.runs.record import RunRecord, load_run
    from umix.bench.spec.run_spec import RunSpec
    from umix.bench.study.study import Study, load_study
    from umix.data.arrays import task_from_arrays
    from umix.data.groups import Groups
    from umix.data.registry import TASKS, load_task
    from umix.data.tables.source import task_from_table
    from umix.data.task import Split, Task
    from umix.errors import MachineError, UserError
    from umix.methods.registry import METHODS, method
    from umix.settings import Range
    from umix.training.context import Context
    from umix.training.fit_settings import FitSettings
    from umix.training.train_result import Notes, TrainResult
    from umix.training.trajectory import Trajectory

_HOME = {
    "METHODS": "umix.methods.registry",
    "TASKS": "umix.data.registry",
    "EvaluationResult": "umix.api.evaluate",
    "FitSettings": "umix.training.fit_settings",
    "GroupCounts": "umix.adapters.group_counts",
    "Groups": "umix.data.groups",
    "IndexedDataset": "umix.adapters.indexed_dataset",
    "MachineError": "umix.errors",
    "Notes": "umix.training.train_result",
    "RunPaths": "umix.bench.runs.paths",
    "Range": "umix.settings",
    "RunRecord": "umix.bench.runs.record",
    "RunResult": "umix.api.result",
    "RunSpec": "umix.bench.spec.run_spec",
    "Split": "umix.data.task",
    "Study": "umix.bench.study.study",
    "StudyResult": "umix.api.study",
    "Task": "umix.data.task",
    "Context": "umix.training.context",
    "TrainResult": "umix.training.train_result",
    "Trajectory": "umix.training.trajectory",
    "UMIXClassifier": "umix.adapters.sklearn",
    "UserError": "umix.errors",
    "WeightedMixup": "umix.adapters.weighted_mixup",
    "doctor": "umix.api.doctor",
    "evaluate": "umix.api.evaluate",
    "execute": "umix.bench.runs.execute",
    "export": "umix.api.result",
    "group_counts": "umix.adapters.group_counts",
    "load_net": "umix.bench.runs.load_net",
    "load_result": "umix.api.result",
    "load_run": "umix.bench.runs.record",
    "load_study": "umix.bench.study.study",
    "load_task": "umix.data.registry",
    "method": "umix.methods.registry",
    "predict": "umix.api.result",
    "report": "umix.api.report",
    "run_study": "umix.api.study",
    "sample_weights": "umix.adapters.sklearn.sample_weights",
    "task_from_arrays": "umix.data.arrays",
    "task_from_table": "umix.data.tables.source",
    "train": "umix.api.train",
    "tune": "umix.api.tune",
}

__all__ = [
    "METHODS",
    "TASKS",
    "Context",
    "EvaluationResult",
    "FitSettings",
    "GroupCounts",
    "Groups",
    "IndexedDataset",
    "MachineError",
    "Notes",
    "Range",
    "RunPaths",
    "RunRecord",
    "RunResult",
    "RunSpec",
    "Split",
    "Study",
    "StudyResult",
    "Task",
    "TrainResult",
    "Trajectory",
    "UMIXClassifier",
    "UserError",
    "WeightedMixup",
    "__version__",
    "doctor",
    "evaluate",
    "execute",
    "export",
    "group_counts",
    "load_net",
    "load_result",
    "load_run",
    "load_study",
    "load_task",
    "method",
    "predict",
    "report",
    "run_study",
    "sample_weights",
    "task_from_arrays",
    "task_from_table",
    "train",
    "tune",
]


if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'umix' has no attribute {name!r}")
        return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
