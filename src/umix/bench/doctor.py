"""``umix doctor``: what is installed on this machine, and whether data are complete and readable."""

import os
import platform
import re
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umix.errors import UserError
from umix.version import __version__

if TYPE_CHECKING:
    from umix.data.checks.data_check import DataCheck

_DEVELOPERS = "dev"  # the extra for working on umix itself
_REQUIREMENT = re.compile(r"""(?P<package>[\w.-]+)[^;]*(;.*extra == ['"](?P<extra>[\w.-]+)['"])?""")


def facts() -> dict[str, dict[str, Any]]:
    """Versions, devices, extras and plug-ins of this machine."""
    import torch

    needed, extras = requirements(_requires())

    devices = {"cpu": f"{os.cpu_count()} cores, {torch.get_num_threads()} torch threads"}
    devices |= {f"cuda:{i}": torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())}
    if torch.backends.mps.is_available():
        devices["mps"] = "available"
    return {
        "versions": {"umix": __version__, "python": platform.python_version()}
        | {name: _version(name) for name in needed},
        "devices": devices,
        "extras": {extra: _state(extra, packages) for extra, packages in sorted(extras.items())},
        "plug-ins": plug_ins(),
    }


def requirements(texts: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The packages that umix always needs, and those of each extra, from the metadata of the installed package.

    >>> requirements(["torch>=2.4", "transformers>=4.45; extra == 'hf'", "psycopg[binary]>=3.1 ; extra == 'postgresql'"])
    (['torch'], {'hf': ['transformers'], 'postgresql': ['psycopg']})
    """
    found = [match for match in map(_REQUIREMENT.match, texts) if match]
    extras: dict[str, list[str]] = {}
    for match in found:
        if match["extra"] not in (None, _DEVELOPERS):
            extras.setdefault(match["extra"], []).append(match["package"])
    return [match["package"] for match in found if match["extra"] is None], extras


def plug_ins() -> dict[str, str]:
    """The methods, tasks and nets that other installed packages add, each with its package or what is wrong with it."""
    from umix.data.registry import TASKS
    from umix.methods.registry import METHODS
    from umix.nets.registry import NETS

    found = [plug_in for registry in (METHODS, TASKS, NETS) for plug_in in registry.plug_ins]
    return {f"{each.thing} {each.name} ({each.package})": each.problem or "can be used" for each in found}


def _state(extra: str, packages: Sequence[str]) -> str:
    versions = [_version(package) for package in packages]
    known = [version for version in versions if version is not None]
    return ", ".join(known) if len(known) == len(versions) else f"not installed: pip install 'umix[{extra}]'"


def check(task: str, root: Path | None, *, allow_subset: bool = False, **options: Any) -> "DataCheck":
    """The problems in the folder of ``task``, or the contents of your own data; nothing is trained."""
    from umix.data.checks.data_check import check_data, check_rows
    from umix.data.registry import TASKS, source_kind
    from umix.data.task import CheckedSource

    kind, implied = source_kind(task, options)
    subset = {"allow_subset": True} if allow_subset and "allow_subset" in kind.model_fields else {}
    if not issubclass(kind, CheckedSource) and not implied:
        checked = [name for name, known in TASKS.items() if issubclass(known, CheckedSource)]
        raise UserError(
            f"The doctor must be given a task with a folder ({', '.join(checked)}) or the path of your own data, got {task!r}."
        )
    source = kind(**options, **subset, **implied)
    return check_data(source, root) if isinstance(source, CheckedSource) else check_rows(Path(task), source.load(root))


def _requires() -> list[str]:
    try:
        return metadata.requires("umix") or []
    except metadata.PackageNotFoundError:  # umix is imported from a folder and not installed
        return []


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
