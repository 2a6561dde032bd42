"""What is installed here, and whether data are whole."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umix.errors import UserError
from umix.version import __version__

if TYPE_CHECKING:
    from umix.data.checks.data_check import DataCheck

_NEEDED = (
    "torch",
    "numpy",
    "scipy",
    "scikit-learn",
    "pydantic",
    "polars",
    "safetensors",
    "skrub",
    "skops",
    "pillow",
    "cyclopts",
    "rich",
)
_EXTRAS = {
    "fabric": "lightning-fabric",
    "hf": "transformers",
    "monai": "monai",
    "timm": "timm",
    "torchvision": "torchvision",
    "ray": "ray",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow-skinny",
    "postgresql": "psycopg",
    "docs": "mkdocs-material",
}


def facts() -> dict[str, dict[str, Any]]:
    """Versions, devices and extras of this machine."""
    import torch

    devices = {"cpu": f"{os.cpu_count()} cores, {torch.get_num_threads()} torch threads"}
    devices |= {f"cuda:{i}": torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())}
    if torch.backends.mps.is_available():
        devices["mps"] = "available"
    return {
        "versions": {"umix": __version__, "python": platform.python_version()}
        | {name: _version(name) for name in _NEEDED},
        "devices": devices,
        "extras": {
            extra: _version(package) or f"not installed: pip install 'umix[{extra}]'"
            for extra, package in _EXTRAS.items()
        },
    }


def check(task: str, root: Path | None, *, allow_subset: bool = False, **options: Any) -> "DataCheck":
    """Everything that is wrong with the folder of ``task``, or what a file of one's own holds, without training on it."""
    from umix.data.checks.data_check import check_data, check_rows
    from umix.data.registry import TASKS, source_kind
    from umix.data.task import CheckedSource

    kind, implied = source_kind(task, options)
    subset = {"allow_subset": True} if allow_subset and "allow_subset" in kind.model_fields else {}
    if not issubclass(kind, CheckedSource) and kind in TASKS.values():
        checked = [name for name, known in TASKS.items() if issubclass(known, CheckedSource)]
        raise UserError(
            f"The doctor must be given a task with a folder ({', '.join(checked)}) or the path of your own data, got {task!r}."
        )
    source = kind(**options, **subset, **implied)
    return check_data(source, root) if isinstance(source, CheckedSource) else check_rows(Path(task), source.load(root))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
