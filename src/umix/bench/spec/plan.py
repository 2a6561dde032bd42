"""Turns names and ``key=value`` settings into the validated parts of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from pydantic.fields import FieldInfo

from umix.bench.spec.evaluation_settings import EvaluationSettings, preset_evaluation
from umix.bench.spec.presets import PRETRAINED, Tables, is_preset_file, preset, presets_for
from umix.data.arrays import ArraySource
from umix.data.memory_source import MemorySource
from umix.data.registry import OWN, TASKS, source_kind
from umix.data.rows.row_roles import RowRoles
from umix.data.task import TaskSource
from umix.errors import Setting, UserError, unknown
from umix.methods.method import Method
from umix.methods.registry import METHODS, method
from umix.models.model import AutoNet, LearnerSettings, ModelSettings
from umix.models.registry import learner_settings, net_kind
from umix.settings import Settings
from umix.training.fit_settings import FitSettings


@final
@dataclass(frozen=True)
class Plan:
    """The parts of a run; ``stages`` has the fit settings of each stage before the final fit, where they differ from ``fit``.

    ``net_name`` is the net's name as the user gave it. It is not part of ``as_json``, because the
    folder of a net may move without changing the results.
    """

    source: TaskSource
    method: Method
    net_name: str
    net: LearnerSettings
    fit: FitSettings
    stages: Mapping[str, Mapping[str, Any]]
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    asked_source: TaskSource | None = (
        None  # where ``source`` has options that only suit the net: the source without them
    )

    @property
    def model(self) -> ModelSettings:
        """The settings of the model; a plan that leaves the learner open has none."""
        if not isinstance(self.net, ModelSettings):
            raise TypeError(f"A plan must name one learner to have a model, got {self.net.name}.")
        return self.net

    def as_json(self) -> dict[str, Any]:
        """Everything that decides the run's numbers, with defaults filled in."""
        return {
            "task": self.source.as_json(),
            "method": {"name": self.method.name, **self.method.model_dump(mode="json")},
            "net": self.net.as_json(),
            "fit": self.fit.model_dump(mode="json"),
            "stages": {stage: dict(values) for stage, values in self.stages.items()},
            "evaluation": self.evaluation.model_dump(mode="json"),
        }

    def asked(self, executed: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The parts of this plan as somebody asked for them, where ``executed``, a plan as JSON, has them otherwise.

        Nobody asks for the form of inputs that only suits a net, or for the steps of a fit without steps.
        """
        asked = {**self.as_json(), "task": (self.asked_source or self.source).as_json()}
        asked["fit"] = self.net.used_fit(asked["fit"])
        return {part: values for part, values in asked.items() if values != executed.get(part)}

    def setting(self, key: str) -> tuple[str, FieldInfo, Any]:
        """The full name ``part.field`` of the setting that ``key`` means, its field, and its value in this plan."""
        parts = _fields(type(self.source), self.method.name, type(self.net), hidden=set())
        part, field = _locate(key, parts, data=self.source.name)
        stage = FitSettings(**{**self.fit.model_dump(), **self.stages.get(part, {})})
        owners = {
            self.method.name: self.method,
            "fit": self.fit,
            "net": self.net,
            "task": self.source,
            "evaluation": self.evaluation,
        }
        owner: Settings = owners.get(part, stage)
        if field not in type(owner).model_fields:
            raise UserError(f"The setting {part}.{field} names a part of the run and cannot be searched.")
        return f"{part}.{field}", type(owner).model_fields[field], getattr(owner, field)


def make_plan(
    task: str,
    method_name: str,
    settings: Mapping[str, Any],
    *,
    preset_name: str = "default",
    trust_code: bool = False,
) -> Plan:
    """The plan for training ``task`` with ``method_name``: the preset's settings, overridden by ``settings``.

    A key is ``part.field`` (``umix.eta``, ``fit.lr``, ``trajectory.lr``, ``net.hidden``,
    ``task.agreement``) or just the field, if only one part has it. ``task`` is a name or the path of
    a table. The key ``net`` sets the net's name; the preset's options for another net are then dropped.
    With ``trust_code`` a preset file may name code as its net.
    """
    resolved = _resolve(task, method_name, settings, preset_name, trust_code=trust_code)
    net_name, tables = resolved.net_name, resolved.tables
    net_options = {field: value for field, value in tables.get("net", {}).items() if field != "name"}
    stages = {stage: tables[stage] for stage in METHODS[method_name].stages if stage in tables}
    fit = FitSettings(**tables.get("fit", {}))
    for stage, override in stages.items():
        try:
            FitSettings(**{**fit.model_dump(), **override})
        except UserError as error:
            raise UserError(str(error).replace(f"{FitSettings.part}.", f"{stage}.", 1)) from None
    source = resolved.source()
    source.check_files()
    _check_weights(source, method_name)
    return Plan(
        source=source,
        method=method(method_name, **tables.get(method_name, {})),
        net_name=net_name,
        net=learner_settings(net_name, **net_options),
        fit=fit,
        stages=stages,
        evaluation=EvaluationSettings(**{**preset_evaluation(preset_name), **tables.get("evaluation", {})}),
        asked_source=resolved.asked_source(),
    )


def planned_source(task: str, method_name: str, settings: Mapping[str, Any]) -> TaskSource:
    """The source of the plan with these settings, before its files are looked at."""
    return _resolve(task, method_name, settings, "default", trust_code=False).source()


def setting_tables(
    task: str,
    method_name: str,
    settings: Mapping[str, Any],
    *,
    preset_name: str = "default",
    trust_code: bool = False,
) -> Tables:
    """The preset's tables for this run, overridden by ``settings``; they can be written as a new preset."""
    tables = _resolve(task, method_name, settings, preset_name, trust_code=trust_code).tables
    usual = preset_evaluation(preset_name)  # a file has another name, but judges as the preset does
    return {**tables, "evaluation": {**usual, **tables.get("evaluation", {})}} if usual else tables


def shared_net(task: str, method_name: str, settings: Mapping[str, Any], *, preset_name: str = "default") -> str | None:
    """The net of the other methods, where only a preset of umix leaves that of ``method_name`` open; None where it does not."""
    if {"net", "net.name", "net.among"} & settings.keys() or is_preset_file(preset_name):
        return None
    data_kind = _preset_kind(*source_kind(task, {key.removeprefix("task.") for key in settings}))
    base = presets_for(data_kind).get(preset_name, {})
    if base.get(method_name, {}).get("net", {}).get("name") != AutoNet.name:
        return None
    return str(base.get("net", {}).get("name", data_kind.default_net))


@final
@dataclass(frozen=True)
class _ResolvedSettings:
    """A preset overridden by the user's settings: the kind of source, the net's name and the settings of every part."""

    kind: type[TaskSource]
    implied: Mapping[str, Any]
    net_name: str
    tables: Tables

    def source(self) -> TaskSource:
        """The source with its settings, before its files are looked at."""
        return self.kind(**self.kind.with_defaults(self.tables.get("task", {}), self.net_name), **self.implied)

    def asked_source(self) -> TaskSource | None:
        """The source without options that only suit the net; None where it has none."""
        asked = self.tables.get("task", {})
        suited = self.kind.with_defaults(asked, self.net_name)
        return None if suited == asked else self.kind(**asked, **self.implied)


def _resolve(
    task: str, method_name: str, settings: Mapping[str, Any], preset_name: str, *, trust_code: bool
) -> _ResolvedSettings:
    """What a run is made of: the settings of its preset, overridden by those of the user, each of a part that the run has."""
    kind, implied = _source_kind(task, settings, preset_name, trust_code=trust_code)
    METHODS.find(method_name)  # raises UserError if there is no such method
    settings = {("net.name" if key == "net" else key): value for key, value in settings.items()}
    data_kind = _preset_kind(kind, implied)
    base = _base_preset(data_kind, settings, preset_name, trust_code=trust_code)
    tables = _preset_tables(base, method_name, settings)
    if kind is MemorySource:
        tables.pop("task", None)  # a task in memory has no settings of data any more
    net_name = str(settings.get("net.name", tables.get("net", {}).get("name", data_kind.default_net)))
    net, net_implied = net_kind(net_name)
    _check_learner(net, net_name, method_name)
    tables = _suiting_net(tables, net, net_name, net_implied, METHODS[method_name].stages)
    parts = _fields(kind, method_name, net, hidden={*implied, *net_implied})
    used = _overridden(tables, settings, parts, net, net_name, METHODS[method_name], data=kind.name)
    return _ResolvedSettings(kind, implied, net_name, used)


def _source_kind(
    task: str, settings: Mapping[str, Any], preset_name: str, *, trust_code: bool
) -> tuple[type[TaskSource], Mapping[str, Any]]:
    """The kind of data that ``task`` names, where options of the user or of a preset file may tell; and what the name implies."""
    options = {key.removeprefix("task.") for key in settings}
    if is_preset_file(preset_name):
        options |= set(preset("", preset_name, trust_code=trust_code).get("task", {}))
    return source_kind(task, options)


def _base_preset(
    data_kind: type[TaskSource], settings: Mapping[str, Any], preset_name: str, *, trust_code: bool
) -> Tables:
    """The preset of this name for the kind of data; the default one depends on whether the net is pretrained, and frozen."""
    presets = presets_for(data_kind)
    if preset_name == "default" and ":" in str(settings.get("net.name", "")):
        if settings.get("net.freeze", settings.get("freeze")):
            return preset(ArraySource.name, preset_name)  # a head on features, no matter which net computed them
        if PRETRAINED in presets:
            return presets[PRETRAINED]  # the learning rate for nets from scratch would destroy pretrained weights
    return preset(data_kind.name, preset_name, presets, trust_code=trust_code)


def _preset_tables(base: Tables, method_name: str, settings: Mapping[str, Any]) -> Tables:
    """The preset's tables for this method: ``[preset.METHOD.fit]`` overrides ``[preset.fit]``."""
    tables = {part: dict(table) for part, table in base.items()}
    of_method = tables.get(method_name, {})
    for part in [part for part, values in of_method.items() if isinstance(values, dict)]:
        of_part = of_method.pop(part)
        # A net of another name has options of its own.
        tables[part] = dict(of_part) if "name" in of_part else {**tables.get(part, {}), **of_part}
    if "net.name" in settings and settings["net.name"] == base.get("net", {}).get("name"):
        tables["net"] = dict(base["net"])  # the preset's options for this net, though the method usually takes another
    return tables


def _suiting_net(
    tables: Tables, net: type[LearnerSettings], net_name: str, implied: Mapping[str, Any], stages: Sequence[str]
) -> Tables:
    """``tables`` without options of another net, and without what is about gradient steps where the net takes none."""
    tables = {**tables, "fit": {**tables.get("fit", {}), **net.usual_fit(implied)}}
    if net_name != tables.get("net", {}).get("name"):
        tables["net"] = {}
    return {**tables, **{part: net.used_fit(tables[part]) for part in ("fit", *stages) if part in tables}}


def _overridden(
    tables: Tables,
    settings: Mapping[str, Any],
    parts: Mapping[str, list[str]],
    net: type[LearnerSettings],
    net_name: str,
    method: type[Method],
    *,
    data: str,
) -> Tables:
    """``tables`` overridden by ``settings``; raises where the run has no such part or option, or cannot use it."""
    if settings.get("net.freeze") is not None and "freeze" not in parts["net"]:
        raise UserError(
            Setting("freeze", "True"),
            " must be used with a pretrained net (",
            Setting("net", "hf:FOLDER"),
            f", for example), got {net_name!r}.",
        )
    asked: dict[str, Any] = {}  # options of the method
    for key, value in settings.items():
        if net_name == AutoNet.name and key.startswith("net.") and key.removeprefix("net.") not in parts["net"]:
            raise UserError(
                f"{key} must be set for one learner, but {net_name} tries several; choose one with ",
                Setting("net"),
                ".",
            )
        part, field = _locate(key, parts, data=data)
        _check_used(part, field, value, net, net_name, method)
        tables = {**tables, part: {**tables.get(part, {}), field: value}}
        if part == method.name:
            asked[field] = value
    for field, other in method.open_with.items():
        if asked.get(other, "auto") != "auto" and field not in asked and tables[method.name].get(field) == "auto":
            tables = {**tables, method.name: {k: v for k, v in tables[method.name].items() if k != field}}
    used = {part: values for part, values in tables.items() if part in parts and values}
    for part, field in [(part, field) for part, values in used.items() for field in values]:
        if field not in parts[part]:  # also what only the name of the task or of the net may say
            raise unknown(f"setting of {part}", field, parts[part])
    return used


def _preset_kind(kind: type[TaskSource], implied: Mapping[str, Any]) -> type[TaskSource]:
    """The kind of data whose presets and default net apply; a task in memory names the kind it was loaded as."""
    if kind is not MemorySource:
        return kind
    loaded_as = implied["kind"]
    return OWN[loaded_as] if loaded_as in OWN else TASKS.find(loaded_as)


def _check_used(
    part: str, field: str, value: Any, net: type[LearnerSettings], net_name: str, method: type[Method]
) -> None:
    """Refuse a setting that means nothing to the model: of gradient steps, or of mixing; sigma=0 is no mixing."""
    if part in ("fit", *method.stages) and not net.used_fit({field: value}):
        raise UserError(
            f"The setting {part}.{field} must be left out for {net_name}, which takes no gradient steps; umix nets shows "
            "what can be set."
        )
    mixes = part == method.name and field in method.mixing_options and (field, value) != ("sigma", 0)
    if mixes and "mixing" not in net.offers:
        raise UserError(
            f"The setting {part}.{field} must be left out for {net_name}: it is fitted to rows as they are, so nothing is mixed."
        )


def _check_learner(net: type[LearnerSettings], net_name: str, method_name: str) -> None:
    """Refuse a method that needs more than the model offers."""
    if not METHODS[method_name].needs <= net.offers:
        able = ", ".join(name for name, kind in METHODS.items() if kind.needs <= net.offers)
        kind = "may choose one that is only fitted" if net is AutoNet else "is only fitted"
        raise UserError(
            f"{method_name} must train a net: it takes gradient steps of its own or mixes examples, and {net_name} {kind} to "
            "weighted rows; choose another net with ",
            Setting("net"),
            f", or one of {able}.",
        )


def _check_weights(source: object, method_name: str) -> None:
    """Refuse weights that the method would have to ignore."""
    if isinstance(source, RowRoles) and source.weight is not None and not METHODS[method_name].takes_weights:
        able = ", ".join(name for name, kind in METHODS.items() if kind.takes_weights)
        raise UserError(
            Setting("weight"),
            f" must be left out for {method_name}: an example of weight 2 cannot count as two in its risk; {able} "
            "can do it.",
        )


def _fields(
    kind: type[TaskSource], method_name: str, net: type[LearnerSettings], *, hidden: set[str]
) -> dict[str, list[str]]:
    """Which settings each part of the run has."""
    fit = list(FitSettings.model_fields)
    return {
        method_name: list(METHODS[method_name].model_fields),
        "fit": fit,
        "evaluation": list(EvaluationSettings.model_fields),
        "net": ["name", *(field for field in net.model_fields if field not in {*hidden, *net.from_data})],
        "task": [field for field in kind.model_fields if field not in hidden],
        **dict.fromkeys(METHODS[method_name].stages, fit),
    }


def _locate(key: str, parts: Mapping[str, list[str]], *, data: str) -> tuple[str, str]:
    """The part and field that ``key`` names; ``data`` is the kind of data, for error messages."""
    part, dot, field = key.rpartition(".")
    dotted = [f"{name}.{option}" for name, fields in parts.items() for option in fields]
    if dot:
        if key not in dotted and part == "task":
            raise unknown(("setting ", Setting(field), f" of {data} data"), field, parts[part])
        if key not in dotted:
            raise unknown(f"setting of {next(iter(parts))}", key, dotted)
        return part, field
    method_name = next(iter(parts))
    named = (method_name, "fit", "net", "task", "evaluation")
    owners = [name for name in named if field in parts[name] and field != "name"]
    if not owners:
        bare = {option for name in named for option in parts[name]} - {"name"}
        raise unknown(f"setting of {method_name}", key, bare | {"net"})
    if len(owners) > 1:
        raise UserError(
            f"The setting {key!r} must say which part it means: {' or '.join(f'{name}.{key}' for name in owners)}."
        )
    return owners[0], field
