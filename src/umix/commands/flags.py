"""The flags that several commands share: their types, their help texts, the parsing of their values, and their names in errors."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, final, get_args

from cyclopts import CoercionError, Parameter, Token

from umix.errors import Setting, UserError
from umix.toml_text import parse_value

if TYPE_CHECKING:
    from umix.bench.runs.paths import RunPaths
    from umix.training.engine import Engine


#: Flags that are not the setting's name with dashes.
_OTHER = {
    "path_column": "--path",
    "stream": "--no-cache",
    "address": "--ray",
}
#: Settings whose flag is their name with dashes; every other setting is given with ``--set``.
_SAME = {
    "allow_subset", "baseline", "budget", "cache", "choices", "cpus", "threshold", "devices", "drop", "folders",
    "folds", "format", "freeze", "gpus", "groups", "id", "importance", "label", "label_from", "license", "log", "metadata",
    "min_group",
    "mlflow_uri", "name", "net", "nodes", "out", "output", "range", "root", "rows", "seeds", "select",
    "skip_impossible", "split", "split_by", "split_by_date", "storage", "target", "text", "threads", "trials",
    "trust_code", "tune", "use_groups", "weight", "workers", "x",
}  # fmt: skip

Out = Annotated[Path, Parameter(name=["--out", "-o"], help="Folder for the runs.")]
Output = Annotated[Path, Parameter(name=["--output", "-o"], help="A .parquet, .csv, .jsonl or .arrow file.")]
Quiet = Annotated[bool, Parameter(name=["--quiet", "-q"], negative="", help="No progress bars.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON for programs instead of tables.")]
Root = Annotated[Path | None, Parameter(help="Folder of the task's files, if it needs any.")]
Subset = Annotated[
    bool, Parameter(name="--allow-subset", negative="", help="Accept other counts of examples than the published ones.")
]
Select = Annotated[
    str | None,
    Parameter(
        help="Rule that picks the epoch on validation: worst, balanced, average, worst_class, worst_recall, class_difference, "
        "uncertainty_quintile, cvar, last. Default: worst, without groups balanced (worst class and average)."
    ),
]
Set = Annotated[tuple[str, ...], Parameter(name="--set", help="A setting as key=value; repeat for more.", negative="")]
Cache = Annotated[Path | None, Parameter(help="Folder for decoded images and features. Default: OUT/cache.")]
NoCache = Annotated[bool, Parameter(name="--no-cache", negative="", help="Decode images in every epoch.")]
Folds = Annotated[
    int | None,
    Parameter(
        help="Cross-validation: divide the rows into so many folds and train once for each, which is then test. Every row is "
        "tested once, and small groups are judged on all of their rows."
    ),
]
Log = Annotated[
    str | None,
    Parameter(help="Also log every epoch to tensorboard, mlflow or both, as a,b; epochs.csv is always written."),
]
MlflowUri = Annotated[str | None, Parameter(help="Where --log mlflow writes. Default: the database OUT/mlflow.db.")]


TrustCode = Annotated[
    bool,
    Parameter(
        name="--trust-code",
        negative="",
        help="Import the net MODULE:FACTORY that a file names: a preset, a study or the record of a run. It is code, which runs.",
    ),
]


@final
@Parameter(name="*", group="For several devices")
@dataclass(frozen=True)
class DeviceFlags:
    """The devices and the number format that one run is trained with."""

    devices: Annotated[int | None, Parameter(help="Processes on this machine that train the run together.")] = None
    nodes: Annotated[
        int | None, Parameter(help="Machines that train the run together; see docs/how-to/several-machines.md.")
    ] = None
    strategy: Annotated[str | None, Parameter(help="How devices train together; only ddp is available.")] = None
    precision: Annotated[str | None, Parameter(help="32-true or bf16-mixed, for all fits of the run.")] = None

    def settings(self) -> dict[str, Any]:
        """The flags that change the results, as settings: the precision, but not the number of devices."""
        return {} if self.precision is None else {"fit.precision": self.precision}

    @property
    def several(self) -> bool:
        """Whether several processes may train the run together: a flag is about that, or torchrun has started them."""
        flags = (self.devices, self.nodes, self.strategy)
        return any(flag is not None for flag in flags) or "LOCAL_WORLD_SIZE" in os.environ

    def engine(self) -> "Engine":
        """The devices that the flags name, or that torchrun has started processes for."""
        from umix.training.engine import engine_for  # imports torch, which takes a second

        return engine_for(devices=self.devices, nodes=self.nodes, strategy=self.strategy)


def _chosen(type_: Any, tokens: Sequence[Token]) -> Any:
    """The value of a flag with choices; the word none, which Cyclopts would take for a flag that is left out, is no choice."""
    (token,) = tokens
    if token.value not in get_args(type_):
        raise CoercionError(token=token, target_type=type_)
    return token.value


@final
@Parameter(name="*")
@dataclass(frozen=True)
class EvaluationFlags:
    """What groups are used for, which of them are judged, and how classes are decided."""

    min_group: Annotated[
        int | None,
        Parameter(
            help="Examples from which on a group is judged by its rate, default 30. A smaller one is judged only where its 95 % "
            "interval lies wholly below that of the worst larger group. 1 judges all, as papers do."
        ),
    ] = None
    use_groups: Annotated[
        Literal["test", "val", "train"] | None,
        Parameter(
            converter=_chosen,
            help="How far known groups may be used: test, only reported; val, also to choose an epoch; train, also to train. "
            "Default train.",
        ),
    ] = None
    threshold: Annotated[
        Literal["tuned", "off"] | None,
        Parameter(
            converter=_chosen,
            help="tuned: the threshold of two classes, or biases of several, chosen on validation with the epoch; off: the "
            "largest logit. Default tuned; off for the presets paper and reference.",
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """The flags that were given, as settings of a run."""
        return _given("evaluation", asdict(self))


ReadThreshold = Annotated[
    Literal["tuned", "off"] | None,
    Parameter(
        converter=_chosen,
        help="tuned: the threshold chosen on validation; off: the largest logit. Default: as each run was told.",
    ),
]


@final
@Parameter(name="*")
@dataclass(frozen=True)
class NetFlags:
    """The net, if it is not the preset's."""

    net: Annotated[
        str | None,
        Parameter(
            help="Net instead of the preset's: a name such as mlp, PROVIDER:NAME such as hf:FOLDER, or your own as "
            "MODULE:FACTORY; umix nets lists all."
        ),
    ] = None
    freeze: Annotated[
        bool,
        Parameter(
            negative="", help="Train only the head of a pretrained net, on features that are computed once and stored."
        ),
    ] = False

    def settings(self) -> dict[str, Any]:
        """The flags that were given, as settings of a run."""
        return ({} if self.net is None else {"net": self.net}) | ({"net.freeze": True} if self.freeze else {})


@final
@Parameter(name="*", group="For data of your own")
@dataclass(frozen=True)
class TableFlags:
    """For a table or arrays of your own; a column is an array of the .npz file there."""

    label: Annotated[str | None, Parameter(help="Column of the class to predict.")] = None
    groups: Annotated[str | None, Parameter(help="Columns that define the groups, as a,b. Default: no groups.")] = None
    split: Annotated[str | None, Parameter(help="Column that says train, val or test.")] = None
    split_by: Annotated[
        str | None, Parameter(help="Column of which no value is in two splits, e.g. a patient; not an input.")
    ] = None
    split_by_date: Annotated[
        str | None, Parameter(help="Column of dates: the oldest rows train, the newest test; not an input.")
    ] = None
    id: Annotated[str | None, Parameter(help="Column that names each row; not an input.")] = None
    weight: Annotated[str | None, Parameter(help="Column of the weight of each training row.")] = None
    drop: Annotated[str | None, Parameter(help="Tables: columns that are not inputs, as a,b.")] = None
    x: Annotated[str | None, Parameter(help="Arrays: name of the inputs in the .npz file. Default: x.")] = None
    rows: Annotated[
        str | None, Parameter(help="Arrays: table with the label of each row, in the order of the .npy file.")
    ] = None


@final
@Parameter(name="*", group="For images")
@dataclass(frozen=True)
class ImageFlags:
    """For a folder of images of your own."""

    label_from: Annotated[str | None, Parameter(help="folder: the class is the folder an image lies in.")] = None
    folders: Annotated[
        str | None, Parameter(help="How folders name columns, as {place}/{kind}; then --label, --groups.")
    ] = None
    metadata: Annotated[
        str | None, Parameter(help="Table of the images, with --label. Default: metadata.csv in the folder.")
    ] = None
    path: Annotated[str | None, Parameter(help="Column of that table that names the images.")] = None


@final
@Parameter(name="*", group="For texts")
@dataclass(frozen=True)
class TextFlags:
    """For a table of texts of your own."""

    text: Annotated[
        str | None, Parameter(help="Column of the texts, the only input; word counts unless the net reads tokens.")
    ] = None


@final
@Parameter(name="*")
@dataclass(frozen=True)
class DataFlags:
    """Where a task's files are, how they are read, and the roles of the columns of your own data."""

    root: Root = None
    allow_subset: Subset = False
    cache: Cache = None
    no_cache: NoCache = False
    table: TableFlags = field(default_factory=TableFlags)
    images: ImageFlags = field(default_factory=ImageFlags)
    texts: TextFlags = field(default_factory=TextFlags)

    @property
    def own_data(self) -> dict[str, Any]:
        """The flags about the user's own data, as settings of a run."""
        flags = asdict(self.table) | asdict(self.images) | asdict(self.texts)
        return _given("task", {"path_column" if name == "path" else name: value for name, value in flags.items()})

    def settings(self) -> dict[str, Any]:
        """The flags that change the results, as settings of a run."""
        return self.own_data | ({"task.allow_subset": True} if self.allow_subset else {})

    def paths(self, out: Path) -> "RunPaths":
        """The folders that a run uses; they do not change the results."""
        from umix.bench.runs.paths import RunPaths

        return RunPaths(out, root=self.root, cache=self.cache, stream=self.no_cache)


def _given(part: str, flags: dict[str, Any]) -> dict[str, Any]:
    """The flags that are not None, as settings of this part of a run."""
    return {f"{part}.{name}": value for name, value in flags.items() if value is not None}


def parse_settings(pairs: tuple[str, ...]) -> dict[str, Any]:
    """``key=value`` texts as settings; a value that is not TOML is a text."""
    settings = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UserError(f"--set must be given key=value, got {pair!r}; for example --set eta=20.")
        settings[key.strip()] = parse_value(text)
    return settings


def parse_names(text: str | None) -> list[str]:
    """The names in a text ``a,b``; empty for None.

    >>> parse_names("tensorboard, mlflow")
    ['tensorboard', 'mlflow']
    """
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def as_flag(setting: Setting) -> str:
    """The setting as it is written on the command line.

    >>> as_flag(Setting("label_from", "folder")), as_flag(Setting("stream", "True")), as_flag(Setting("eta", "3"))
    ('--label-from folder', '--no-cache', '--set eta=3')
    """
    flag = _OTHER.get(setting.name) or (f"--{setting.name.replace('_', '-')}" if setting.name in _SAME else "")
    if not flag:
        return f"--set {setting.name}={setting.value}"
    return flag if setting.value in ("", "True") else f"{flag} {setting.value}"
