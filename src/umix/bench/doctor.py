"""What is installed here."""

import os
import platform
from importlib import metadata
from typing import Any

from umix.version import __version__

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
    "cyclopts",
    "rich",
)
_EXTRAS = {"fabric": "lightning-fabric", "docs": "mkdocs-material"}


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


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
