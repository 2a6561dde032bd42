"""``umix doctor``."""

import dataclasses
import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from umix.commands.catalogue import print_data_check, print_facts, print_json
from umix.commands.flag_names import as_flag
from umix.commands.flags import DataFlags, Json, Set, parse_settings
from umix.errors import Setting
from umix.terminal import ERR

if TYPE_CHECKING:
    from umix.bench.spec.run_spec import RunSpec


def doctor(
    task: Annotated[str | None, Parameter(help="A task with a folder of files, or the path of your own data.")] = None,
    *,
    set_: Set = (),
    data: DataFlags | None = None,
    as_json: Json = False,
) -> int | None:
    """Show versions, devices and extras; with TASK check its data without training.

    The verdict is "fine", "look at this" (something is listed that may be wrong) or "broken" (cannot be trained on: exit code 2).
    TASK is a name, whose folder is compared with what was published, or the path of your own data, with the same flags as for
    umix run. Tables, arrays and texts are read as for a run, and the columns of a table are listed; of a folder every image is
    opened.
    """
    from umix.bench.doctor import check, facts

    if task is None:
        machine = facts()
        if as_json:
            print_json(machine)
        else:
            print_facts(machine, "umix doctor")
        return None
    data = data or DataFlags()
    found = check(task, data.root, parse_settings(set_) | data.settings())
    if as_json:
        findings = [finding.as_json(as_flag) for finding in found.all_findings]
        rows = {"rows": found.rows} if found.rows else {}
        known = {**dataclasses.asdict(found), "folder": str(found.folder), "findings": findings}
        print_json({"verdict": found.verdict, "findings": findings, **known, **rows})
    else:
        print_data_check(found)
    return 2 if found.verdict == "broken" else 0


def print_first_finding(spec: "RunSpec") -> None:
    """Say on stderr what is most suspicious about the table of a run, before it is trained."""
    from umix.data.checks.data_check import first_findings

    source = spec.plan.source
    found = first_findings(source)
    if not found:
        return
    about_data = {
        key: value for key, value in spec.settings.items() if key.removeprefix("task.") in type(source).model_fields
    }
    command = doctor_command(spec.task, about_data)
    ERR.print(
        f"note: {found[0].message(as_flag)} All findings: {command}", highlight=False, markup=False, soft_wrap=True
    )


def doctor_command(task: str, settings: Mapping[str, object]) -> str:
    """The command that checks the data of a run with these settings of the task.

    >>> print(doctor_command("my people.csv", {"task.label": "income", "task.drop": ["age, in years"]}))
    umix doctor 'my people.csv' --label income --set 'drop=["age, in years"]'
    """
    words = ["umix", "doctor", shlex.quote(task)]
    for key, value in settings.items():
        name = key.removeprefix("task.")
        if isinstance(value, list | tuple):
            words += ["--set", shlex.quote(f"{name}={json.dumps(list(value))}")]
        else:
            words.append(as_flag(Setting(name, shlex.quote(str(value)))))
    return " ".join(words)
