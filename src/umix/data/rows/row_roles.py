"""The settings that all data of one's own share: which column is what, and how the rows are divided."""

import abc
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from umix.data.rows.role_columns import Blanks
from umix.data.rows.table_file import column_names
from umix.errors import Setting, UserError
from umix.settings import Settings


class RowRoles(Settings, abc.ABC):
    """Which column is what, and how the rows are divided; ``known_rows`` reads a table accordingly."""

    part: ClassVar[str] = "task"

    label: str = Field("", description="column of the class to predict; must be given")
    groups: tuple[str, ...] = Field(
        (), description="columns whose values, with the label, make the groups; none: no groups"
    )
    blanks: Blanks = Field(
        "unknown", description="what a blank in a group column is: a group that is not known, or a group of its own"
    )
    split: str | None = Field(
        None, description="column that says train, val or test (0, 1, 2); none: divided at random"
    )
    id: str | None = Field(None, description="column that names each row: not an input, carried into predictions")
    weight: str | None = Field(
        None, description="column of what a training row counts for, relative to others: 2 is as two rows; not an input"
    )
    val_share: float = Field(0.2, gt=0, lt=0.5, description="share of val where no column says")
    test_share: float = Field(0.2, gt=0, lt=0.5, description="share of test where no column says")
    data_seed: int = Field(0, ge=0, description="seed of the random split, independent of the run's seed")

    @model_validator(mode="before")
    @classmethod
    def _split_lists(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the text ``a,b`` as a list of two columns."""
        lists = {
            field: tuple(name.strip() for name in values[field].split(",") if name.strip())
            for field in ("groups", "drop")
            if isinstance(values.get(field), str)
        }
        return {**values, **lists}

    @property
    def single(self) -> list[str]:
        """The columns that have one role each and are not inputs, in order."""
        return [name for name in (self.label, self.split, self.id, self.weight) if name is not None]


def require_label(label: str, table: Path) -> None:
    """Raise where no label is named, with the columns of ``table`` to choose from."""
    if not label:
        raise UserError(
            f"{table.name} needs ",
            Setting("label"),
            f" with the column of the class to predict; it has {', '.join(column_names(table))}.",
        )
