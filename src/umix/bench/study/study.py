"""A study as its author writes it: tasks × methods × seeds, with settings for all, for a task or for a method."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, final

from pydantic import Field, field_validator, model_validator

from umix.bench.spec.code_in_files import refuse_code
from umix.data.memory_source import MemorySource
from umix.data.rows.table_file import table_title
from umix.errors import UserError, unknown
from umix.methods.registry import METHODS
from umix.settings import Settings
from umix.toml_text import read_toml


class _WithSettings(Settings):
    """A model with a field ``settings``; nested tables are flattened.

    TOML reads ``fit.epochs = 2`` as ``{fit = {epochs = 2}}``, which becomes ``{"fit.epochs": 2}``.
    """

    @field_validator("settings", mode="before", check_fields=False)
    @classmethod
    def _flat(cls, settings: object) -> object:
        if not isinstance(settings, Mapping):
            return settings
        flat: dict[str, Any] = {}
        for key, value in settings.items():
            inner = cls._flat(value) if isinstance(value, Mapping) else None
            flat |= {f"{key}.{name}": v for name, v in inner.items()} if isinstance(inner, dict) else {key: value}
        return flat


@final
class StudyTask(_WithSettings):
    """A task of the study."""

    name: str = Field(description="a task's name, or the path of data of your own")
    root: Path | None = Field(default=None, description="folder of the task's files, where it has any")
    preset: str | None = Field(default=None, description="preset to start from, else the study's")
    settings: dict[str, Any] = Field(default_factory=dict, description="settings of this task's runs alone")


@final
class StudyMethod(_WithSettings):
    """A method of the study; a study may have the same method several times, with different labels."""

    name: str = Field(description="a method's name")
    label: str = Field(default="", description="what the tables call it, else its name")
    settings: dict[str, Any] = Field(default_factory=dict, description="settings of this method's runs alone")

    @property
    def title(self) -> str:
        return self.label or self.name


@final
class Study(_WithSettings):
    """Every task with every method and every seed.

    Settings of a task override those of the study, and settings of a method override both.
    """

    tasks: tuple[StudyTask, ...] = Field(min_length=1, description="tasks, each a name or a table of options")
    methods: tuple[StudyMethod, ...] = Field(min_length=1, description="methods, each a name or a table of options")
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**32, strict=True)], ...] = Field(
        default=(0, 1, 2, 3, 4),
        min_length=1,
        description='seeds, as a list, "0:5" (without 5) or "0,1,2"; with folds the default is one, 0',
    )
    folds: int | None = Field(
        default=None,
        ge=2,
        description="folds that the rows are divided into; each is test once, and the numbers are pooled",
    )
    preset: str = Field(default="default", description="named settings of the tasks to start from")
    settings: dict[str, Any] = Field(
        default_factory=dict, description="settings of all runs, by name: fit.lr, eta, net.hidden"
    )
    skip_impossible: bool = Field(
        default=False,
        strict=True,
        description="leave out methods that need groups on tasks without them, instead of refusing the study",
    )

    @model_validator(mode="before")
    @classmethod
    def _expand_names(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Turn names into tasks and methods without options, and a text of seeds into numbers."""
        kinds: dict[str, type[StudyTask] | type[StudyMethod]] = {"tasks": StudyTask, "methods": StudyMethod}
        lists = {
            field: [_entry(kind, item, f"{field}[{place}]") for place, item in enumerate(values[field], start=1)]
            for field, kind in kinds.items()
            if isinstance(values.get(field), list | tuple)
        }
        seeds = {"seeds": parse_seeds(values["seeds"])} if isinstance(values.get("seeds"), str) else {}
        if values.get("folds") is not None and "seeds" not in values:
            seeds = {"seeds": (0,)}
        return {**values, **lists, **seeds}

    @field_validator("seeds")
    @classmethod
    def _without_duplicates(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(seeds))

    @model_validator(mode="after")
    def _distinct_titles(self) -> "Study":
        """Refuse two tasks of one name, or two methods of one label."""
        for kind, titles in (
            ("task", [task.name for task in self.tasks]),
            ("method", [entry.title for entry in self.methods]),
        ):
            for title in titles:
                if titles.count(title) > 1:
                    fix = "give each a label of its own" if kind == "method" else "name it once"
                    raise UserError(f"Every {kind} of a study must be told apart, got {title!r} twice; {fix}.")
        return self


def _entry(kind: type[StudyTask] | type[StudyMethod], item: object, place: str) -> StudyTask | StudyMethod:
    if isinstance(item, StudyTask | StudyMethod):
        return item
    try:
        if isinstance(item, str):
            return kind(name=item)
        if isinstance(item, Mapping):
            return kind(**item)
    except UserError as error:
        raise UserError(f"{place}: ", error) from None
    raise UserError(f"{place} must be a name or a table of options, got {item!r}.")


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds that ``0:5`` (without 5), ``0,1,2`` or a mixture stands for.

    >>> parse_seeds("0:3,7")
    (0, 1, 2, 7)
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, colon, end = (piece.strip() for piece in part.partition(":"))
        try:
            low, high = int(first), int(end) if colon else int(first) + 1
        except ValueError:
            low = high = 0
        if not 0 <= low < high:
            raise UserError(f"Seeds must be a range as 0:5 or a list as 0,1,2 of numbers from 0 on, got {text!r}.")
        seeds += range(low, high)
    return tuple(seeds)


def load_study(path: str | Path, *, trust_code: bool = False) -> Study:
    """The study in a TOML file; errors name the file and the place in it.

    Args:
        path: the file.
        trust_code: whether the file may name code, nets and estimators ``module:factory``, which is then imported.

    """
    path = Path(path)
    content = read_toml(path, what="study")
    for name in content:
        if name not in Study.model_fields:
            raise UserError(f"{path}: ", unknown("key of a study", name, Study.model_fields))
    refuse_code(content, f"The study {path}", trust_code=trust_code)
    try:
        return Study(**content)
    except UserError as error:
        raise UserError(f"{path}: ", error) from None


def study_schema() -> dict[str, Any]:
    """The JSON schema of a study file, for editors and checkers."""
    schema = Study.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "umix study"
    for field in ("tasks", "methods"):
        entry = schema["properties"][field]
        entry["items"] = {"anyOf": [{"type": "string"}, entry["items"]]}
    seeds = schema["properties"]["seeds"]
    listed = {key: seeds.pop(key) for key in ("type", "items", "minItems") if key in seeds}
    schema["properties"]["seeds"] = {"anyOf": [listed, {"type": "string", "pattern": r"^[0-9:,\s]+$"}], **seeds}
    return schema


def with_settings(study: Study, settings: Mapping[str, Any]) -> Study:
    """``study`` with ``settings`` from the command line.

    ``METHOD.key`` and ``TASK.key`` apply only to the runs of that method or task, other keys to all.
    """
    tasks, methods = list(study.tasks), list(study.methods)
    listed = ", ".join(entry.title for entry in methods)
    everywhere = dict(study.settings)
    for key, value in settings.items():
        owner, _, rest = key.partition(".")
        # umix.eta is a hyperparameter of umix and keeps its name; umix.fit.lr is fit.lr and umix.net is net, in runs of umix.
        method_key = rest if "." in rest or rest == "net" else key
        if rest and any(owner in (entry.name, entry.title) for entry in methods):
            methods = [
                _with(entry, method_key, value) if owner in (entry.name, entry.title) else entry for entry in methods
            ]
        elif rest and any(owner == _stem(entry) for entry in tasks):
            tasks = [_with(entry, rest, value) if owner == _stem(entry) else entry for entry in tasks]
        elif rest and owner in METHODS:
            raise UserError(
                f"The setting {key} must be about a method of the study ({listed}); add {owner} to its methods."
            )
        elif rest and owner not in (parts := _parts()):
            known = {*parts, *(entry.title for entry in methods), *map(_stem, tasks)}
            raise unknown("part of the study in a setting", owner, known)
        else:
            everywhere[key] = value
    return study.model_copy(update={"tasks": tuple(tasks), "methods": tuple(methods), "settings": everywhere})


def _parts() -> set[str]:
    """The parts of a run that a setting may name, beside the method."""
    return {"task", "net", "fit", "evaluation", *(stage for method in METHODS.values() for stage in method.stages)}


def _stem(task: StudyTask) -> str:
    return table_title(Path(task.name))


def _with(entry: Any, key: str, value: object) -> Any:
    return entry.model_copy(update={"settings": {**entry.settings, key: value}})


def task_titles(tasks: Sequence[StudyTask]) -> dict[str, str]:
    """The title of each task in tables, by its name.

    A title is short (a file's name without its folder, a task in memory without its hash), unless
    two tasks would get the same one.
    """
    titles = {task.name: _short_and_full_title(task.name) for task in tasks}
    short_titles = [short for short, _ in titles.values()]
    return {name: short if short_titles.count(short) == 1 else full for name, (short, full) in titles.items()}


def _short_and_full_title(name: str) -> tuple[str, str]:
    """A short title of a task, which another task may share, and a unique one."""
    in_memory = MemorySource.parse(name)
    if in_memory is None:
        return Path(name).name, name
    return in_memory["label"], f"{in_memory['label']}@{in_memory['fingerprint'][:8]}"
