"""What is known of a run on labelled new data: as ``umix evaluate --json`` prints it, and as tables are made of it."""

from typing import final

from pydantic import Field

from umix.bench.runs.summary import Summary
from umix.core.drift import CERTAIN, LARGE
from umix.store import Stored


@final
class NewRate(Stored):
    """Accuracy of a group, margin or class of the new data with Wilson's 95 % interval, beside that on test.

    What training or test did not have is None.
    """

    hits: int
    size: int
    rate: float
    low: float
    high: float
    judged: bool = Field(description="whether it may be the worst one, by the rule of the run's summary")
    share: float = Field(description="of the new rows")
    train_share: float | None = None
    test_rate: float | None = None
    below_test: bool = Field(description="whether its interval lies wholly below that on test")


@final
class ColumnDrift(Stored):
    """How far the rows have moved in a column.

    ``moved`` is the share of rows that would have to have another value for the shares of all values to be those of training.
    """

    column: str
    kind: str = Field(description="label, groups, prediction, confidence or input")
    moved: float
    p_value: float = Field(description="of the chi-squared test that nothing has moved")
    large: bool = Field(description=f"at least {LARGE:.0%}, and p below {CERTAIN} over all columns that are compared")
    where: str = Field(description="the values whose share has changed most")
    before: float = Field(description="their share in training, of prediction and confidence on test")
    after: float = Field(description="their share in the new data")


@final
class ColumnImportance(Stored):
    """By how much the accuracy falls, in [-1, 1], when the values of a column are shuffled between rows."""

    column: str
    all: float = Field(description="over all rows, the mean of the shuffles")
    all_std: float = Field(description="standard deviation over the shuffles")
    worst: float | None = Field(None, description="over the rows of the worst group")
    worst_std: float | None = None


@final
class Importance(Stored):
    """The importance of every input column, the largest first."""

    data: str = Field(description="which rows were shuffled")
    rows: int
    repeats: int
    worst_group: str | None = None
    worst_rows: int = Field(0, description="how many of the rows are of the worst group")
    columns: list[ColumnImportance]


class Evaluated(Stored):
    """The rates of a run on labelled new data, beside those on test, and what has moved since training."""

    run: str
    data: str
    rows: int
    average: float
    worst: float | None = Field(description="lowest rate of a judged group or margin, as in the summary of a run")
    worst_group: str | None
    rates: dict[str, NewRate] = Field(description="of groups, then margins, then classes, by name")
    test: Summary
    drift: list[ColumnDrift] = Field(description="what was compared with training, the largest first")
    importance: Importance | None
    notes: list[str]
