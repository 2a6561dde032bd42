"""The settings that all data of one's own share: which column is what, and how the rows are divided."""

import abc
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, model_validator

from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.role_columns import Blanks
from umix.data.rows.table_file import column_names
from umix.errors import Setting, UserError
from umix.settings import Settings

if TYPE_CHECKING:
    import polars


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
    split_by: str | None = Field(
        None, description="column of which no value is in two splits, such as a patient; not an input"
    )
    split_by_date: str | None = Field(
        None, description="column of dates: the oldest rows train, the newest test; not an input"
    )
    split_values: str | None = Field(
        None,
        description="values of the split column as train=A,val=B,test=C, where they are others; the rest is left out",
    )
    id: str | None = Field(None, description="column that names each row: not an input, carried into predictions")
    weight: str | None = Field(
        None, description="column of what a training row counts for, relative to others: 2 is as two rows; not an input"
    )
    val_share: float = Field(0.2, gt=0, lt=0.5, description="share of val where no column says")
    test_share: float = Field(0.2, gt=0, lt=0.5, description="share of test where no column says")
    data_seed: int = Field(0, ge=0, lt=2**32, description="seed of the random split, independent of the run's seed")
    folds: int | None = Field(None, ge=2, description="parts of which one is test: every row is in one of them")
    fold: int | None = Field(None, ge=1, description="which of the folds is test, counted from 1")

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

    @model_validator(mode="after")
    def _split_values_fit(self) -> Self:
        if self.split_values is not None:
            if not self._names_split:
                raise UserError(Setting("split_values"), " must go with ", Setting("split"), ", which is not given.")
            split_meanings(self.split_values)
        return self

    @model_validator(mode="after")
    def _fold_is_one_of_folds(self) -> Self:
        if (self.folds is None) != (self.fold is None) or (self.folds or 0) < (self.fold or 0):
            raise UserError(
                Setting("fold"),
                " must be the number of one of the ",
                Setting("folds"),
                f", got fold={self.fold} and folds={self.folds}; umix run and umix bench run all of them.",
            )
        return self

    @abc.abstractmethod
    def labelled(self, reader: Reader, new: Any) -> "tuple[NewInputs, polars.DataFrame]":
        """The inputs in ``new``, labelled data of this kind, and a row for each of them with the columns that have roles.

        ``new`` is the same data in memory where it is not the file or the folder of this source.
        """

    @property
    def _names_split(self) -> bool:
        """Whether something says which split a row is in."""
        return self.split is not None

    @property
    def single(self) -> list[str]:
        """The columns that have one role each and are not inputs, in order; rows may be divided by what names them."""
        by = None if self.split_by == self.id else self.split_by
        names = (self.label, self.split, self.id, self.weight, by, self.split_by_date)
        return [name for name in names if name is not None]


def split_meanings(text: str) -> dict[str, str]:
    """Which split each value of a split column is, from a text like ``train=0,val=1,test=3``; values are in lower case.

    A split may be named more than once, for several values.

    >>> split_meanings("train=Train, val=id_val, val=val, test=test")
    {'train': 'train', 'id_val': 'val', 'val': 'val', 'test': 'test'}
    """
    meanings: dict[str, str] = {}
    for pair in text.split(","):
        split, _, value = (part.strip() for part in pair.partition("="))
        if split not in ("train", "val", "test") or not value or value.lower() in meanings:
            raise UserError(
                Setting("split_values"),
                f" must name values of the split column, each once, as train=A,val=B,test=C, got {text!r}.",
            )
        meanings[value.lower()] = split
    if missing := {"train", "test"} - set(meanings.values()):
        raise UserError(Setting("split_values"), f" must name a value for {min(missing)}, got {text!r}.")
    return meanings


def require_label(label: str, table: Path) -> None:
    """Raise where no label is named, with the columns of ``table`` to choose from."""
    if not label:
        raise UserError(
            f"{table.name} needs ",
            Setting("label"),
            f" with the column of the class to predict; it has {', '.join(column_names(table))}.",
        )
