"""From what a user says (names and ``key=value``) to the parts of a run, every one validated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from pydantic.fields import FieldInfo

from umix.bench.presets import Tables, preset
from umix.data.registry import source_kind
from umix.data.task import TaskSource
from umix.errors import UserError, unknown
from umix.methods.method import Method
from umix.methods.registry import METHODS, method
from umix.nets.net import NetSettings
from umix.nets.registry import NETS, net_settings
from umix.settings import Settings
from umix.train.fit_settings import FitSettings


@final
@dataclass(frozen=True)
class Plan:
    """The parts of a run; ``stages`` holds the fit settings that stages before the final fit have of their own."""

    source: TaskSource
    method: Method
    net: NetSettings
    fit: FitSettings
    stages: Mapping[str, Mapping[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """Everything in the plan, defaults spelled out."""
        return {
            "task": {"name": self.source.name, **self.source.model_dump(mode="json")},
            "method": {"name": self.method.name, **self.method.model_dump(mode="json")},
            "net": {"name": self.net.name, **self.net.model_dump(mode="json")},
            "fit": self.fit.model_dump(mode="json"),
            "stages": {stage: dict(values) for stage, values in self.stages.items()},
        }

    def setting(self, key: str) -> tuple[str, FieldInfo, Any]:
        """The full name ``part.field`` of the setting that ``key`` means, its field, and its value in this plan."""
        part, field = _locate(key, _fields(type(self.source), self.method.name, self.net.name, hidden={"content"}))
        stage = FitSettings(**{**self.fit.model_dump(), **self.stages.get(part, {})})
        owners = {self.method.name: self.method, "fit": self.fit, "net": self.net, "task": self.source}
        owner: Settings = owners.get(part, stage)
        if field not in type(owner).model_fields:
            raise UserError(f"The setting {part}.{field} names a part of the run and cannot be searched.")
        return f"{part}.{field}", type(owner).model_fields[field], getattr(owner, field)


def make_plan(task: str, method_name: str, settings: Mapping[str, Any], *, preset_name: str = "default") -> Plan:
    """The plan for training ``task`` with ``method_name``: the preset's settings, overridden by ``settings``.

    A key is ``part.field`` (``umix.eta``, ``fit.lr``, ``trajectory.lr``, ``net.hidden``, ``task.agreement``) or just the field,
    where only one part has it. ``task`` is a name or the path of a table.
    """
    kind, implied = source_kind(task)
    tables = setting_tables(task, method_name, settings, preset_name=preset_name)
    net_name = tables.get("net", {}).get("name", kind.default_net)
    net_options = {field: value for field, value in tables.get("net", {}).items() if field != "name"}
    stages = {stage: tables[stage] for stage in METHODS[method_name].stages if stage in tables}
    fit = FitSettings(**tables.get("fit", {}))
    for override in stages.values():
        FitSettings(**{**fit.model_dump(), **override})
    return Plan(
        source=kind(**tables.get("task", {}), **implied),
        method=method(method_name, **tables.get(method_name, {})),
        net=net_settings(net_name, **net_options),
        fit=fit,
        stages=stages,
    )


def setting_tables(task: str, method_name: str, settings: Mapping[str, Any], *, preset_name: str = "default") -> Tables:
    """The preset's tables that concern this run, with ``settings`` over them: a preset of its own."""
    kind, implied = source_kind(task)
    if method_name not in METHODS:
        raise unknown("method", method_name, METHODS)
    tables = _tables(preset(kind.name, preset_name), method_name)
    settings = {("net.name" if key == "net" else key): value for key, value in settings.items()}
    net_name = settings.get("net.name", tables.get("net", {}).get("name", kind.default_net))
    if net_name not in NETS:
        raise unknown("net", net_name, NETS)
    if net_name != tables.get("net", {}).get("name"):
        tables["net"] = {}  # the preset's options are those of another net
    parts = _fields(kind, method_name, net_name, hidden={*implied, "content"})
    for key, value in settings.items():
        part, field = _locate(key, parts)
        tables.setdefault(part, {})[field] = value
    return {part: values for part, values in tables.items() if part in parts and values}


def _tables(chosen: Tables, method_name: str) -> Tables:
    """The preset's tables for this method: its own fit settings, ``[preset.METHOD.fit]``, go over those for all methods."""
    tables = {part: dict(table) for part, table in chosen.items()}
    own = tables.get(method_name, {})
    for part in [part for part, values in own.items() if isinstance(values, dict)]:
        tables[part] = {**tables.get(part, {}), **own.pop(part)}
    return tables


def _fields(kind: type[TaskSource], method_name: str, net_name: str, *, hidden: set[str]) -> dict[str, list[str]]:
    """Which settings each part of the run has."""
    fit = list(FitSettings.model_fields)
    return {
        method_name: list(METHODS[method_name].model_fields),
        "fit": fit,
        "net": ["name", *NETS[net_name].model_fields],
        "task": [field for field in kind.model_fields if field not in hidden],
        **dict.fromkeys(METHODS[method_name].stages, fit),
    }


def _locate(key: str, parts: Mapping[str, list[str]]) -> tuple[str, str]:
    """The part and field that ``key`` means."""
    part, dot, field = key.rpartition(".")
    dotted = [f"{name}.{known}" for name, fields in parts.items() for known in fields]
    if dot:
        if key not in dotted:
            raise unknown(f"setting of {next(iter(parts))}", key, dotted)
        return part, field
    method_name = next(iter(parts))
    owners = [name for name in (method_name, "fit", "net", "task") if field in parts[name] and field != "name"]
    if not owners:
        bare = {known for name in (method_name, "fit", "net", "task") for known in parts[name]} - {"name"}
        raise unknown(f"setting of {method_name}", key, bare | {"net"})
    if len(owners) > 1:
        raise UserError(
            f"The setting {key!r} must say which part it means: {' or '.join(f'{name}.{key}' for name in owners)}."
        )
    return owners[0], field
