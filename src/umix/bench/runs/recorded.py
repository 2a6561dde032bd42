"""What a record says beside its counts, as far as umix reads it: checked once, when the record is loaded."""

from typing import Any, Literal, NotRequired, final

from pydantic import BaseModel, ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from umix.core.selection import Decide
from umix.settings import Settings

#: The types of inputs that a net may take.
InputType = Literal["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]


class Recorded(BaseModel):
    """A part of a record: frozen, without unknown fields, and read from JSON without a call of Python for each part."""

    model_config = Settings.model_config


_more = with_config(ConfigDict(extra="allow"))


@_more
@final
class PlannedTask(TypedDict):
    """The task of a plan; other settings of its source are beside these."""

    name: str
    kind: NotRequired[str]  # what a task in memory was loaded as
    label: NotRequired[str]
    path: NotRequired[str]
    rows: NotRequired[str | None]
    content: NotRequired[str]
    groups: NotRequired[list[str]]
    drop: NotRequired[list[str]]
    text: NotRequired[str | None]
    split: NotRequired[str | None]
    id: NotRequired[str | None]
    weight: NotRequired[str | None]


@_more
@final
class PlannedPart(TypedDict):
    """The method or the net of a plan, by name."""

    name: str
    content: NotRequired[str]
    freeze: NotRequired[bool]


@_more
@final
class PlannedJudge(TypedDict):
    """How a plan decides."""

    decide: NotRequired[Decide]


@_more
@final
class RecordedPlan(TypedDict):
    """The plan of a run as it was executed, defaults spelled out."""

    task: PlannedTask
    method: PlannedPart
    net: PlannedPart
    fit: NotRequired[dict[str, Any]]
    stages: NotRequired[dict[str, dict[str, Any]]]
    judge: NotRequired[PlannedJudge]


@_more
@final
class Point(TypedDict):
    """A candidate's rates on validation."""

    candidate: str
    worst: float | None
    average: float | None


@_more
@final
class Standing(TypedDict):
    """A candidate's rates on validation at its best epoch, and how far it came."""

    candidate: str
    score: float | None
    worst: float | None
    average: float | None
    epochs: int


@_more
@final
class RecordedDecisions(TypedDict):
    """What was left open and how it was decided; the values of settings are beside these."""

    reason: NotRequired[str]
    chosen: NotRequired[str]
    others: NotRequired[str]
    method: NotRequired[str]
    standings: NotRequired[list[Standing]]
    frontier: NotRequired[list[Point]]


@final
class LeftOpen(TypedDict):
    """The parts of a record whose values differ between tasks and methods."""

    plan: RecordedPlan
    decisions: RecordedDecisions


#: Raises ValidationError where a plan or decisions could not be read by what shows or uses a run.
LEFT_OPEN = TypeAdapter(LeftOpen)
