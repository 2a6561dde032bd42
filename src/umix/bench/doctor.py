"""``umix doctor``: what is installed on this machine, and whether data are complete and readable."""

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umix.data.rows.table_file import check_data_file
from umix.errors import UserError
from umix.version import __version__

if TYPE_CHECKING:
    from umix.data.checks.data_check import DataCheck

_DEVELOPERS = "dev"  # the extra for working on umix itself
_ANY_METHOD = "erm"  # how data are read does not depend on the method
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
    from umix.models.registry import NETS

    found = [plug_in for registry in (METHODS, TASKS, NETS) for plug_in in registry.plug_ins]
    return {f"{each.thing} {each.name} ({each.package})": each.problem or "can be used" for each in found}


def _state(extra: str, packages: Sequence[str]) -> str:
    versions = [_version(package) for package in packages]
    known = [version for version in versions if version is not None]
    return ", ".join(known) if len(known) == len(versions) else f"not installed: pip install 'umix[{extra}]'"


def check(task: str, root: Path | None, settings: Mapping[str, Any]) -> "DataCheck":
    """The check of the folder of ``task``, or of your own data, read with ``settings`` as a run reads them; nothing is trained."""
    check_data_file(task)

    from umix.bench.spec.plan import make_plan, planned_source
    from umix.data.checks.data_check import check_data, check_rows, check_table
    from umix.data.registry import TASKS, refuse_root
    from umix.data.rows.row_roles import RowRoles
    from umix.data.tables.source import TableSource
    from umix.data.task import CheckedSource
    from umix.data.texts.source import TextSource

    unchecked: object = planned_source(task, _ANY_METHOD, settings)
    if isinstance(unchecked, TableSource | TextSource) and not unchecked.label:
        return check_table(unchecked)  # lists the columns to choose from
    planned = make_plan(task, _ANY_METHOD, settings).source
    refuse_root(root, [type(planned)])
    source: object = planned  # its class decides what can be checked
    if isinstance(source, CheckedSource):
        return check_data(source, root)
    if isinstance(source, TableSource | TextSource):
        return check_table(source)
    if isinstance(source, RowRoles):
        return check_rows(Path(task), planned.load(root))
    checked = [name for name, known in TASKS.items() if issubclass(known, CheckedSource)]
    raise UserError(
        f"The doctor must be given a task with a folder ({', '.join(checked)}) or the path of your own data, got {task!r}."
    )


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
