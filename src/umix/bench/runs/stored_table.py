"""The tables of examples in a run's folder: read whole, and compared with the run's record once."""

from pathlib import Path
from typing import TYPE_CHECKING

from umix.bench.runs.record import RunRecord
from umix.errors import UserError
from umix.files import as_written, reading
from umix.run_folder import TRAINING_ROWS

if TYPE_CHECKING:
    import polars

_FIX = "delete the run and run it again"


def read_stored_table(path: Path) -> "polars.DataFrame":
    """The table at ``path``; UserError where it cannot be read."""
    import polars

    with reading(path, "table", fix=_FIX):
        try:
            return polars.read_parquet(as_written(path))
        except (
            polars.exceptions.PanicException
        ) as error:  # of polars itself, on bytes that are no table; it is no Exception
            raise ValueError(error) from None


def read_training_rows(record: RunRecord, n: int) -> "polars.DataFrame | None":
    """The table of the ``n`` training examples of a finished run; None where an earlier version made the run."""
    path = record.directory / TRAINING_ROWS
    if not path.exists():
        return None
    table = read_stored_table(path)
    if len(table) != n:
        raise misfit_in(path, f"be about the run's {n} examples, got {len(table)}")
    check_examples(path, table, record)
    if "row" in table.columns and table["row"].null_count():
        raise misfit_in(path, "say which row every example is of")
    return table


def check_examples(path: Path, table: "polars.DataFrame", record: RunRecord) -> None:
    """Raise UserError where the rows of the table at ``path`` are no examples of the run: their classes, groups and places.

    Rows whose group is not known have -1. Where a split says not which row or file an example is of, there is a gap.
    """
    import polars

    if "label" not in table.columns:
        raise misfit_in(path, "have the columns of a run's examples, but 'label' is missing")
    for name in ("label", "prediction"):
        if name in table.columns and not _are_codes(table[name], 0, len(record.classes)):
            raise misfit_in(
                path, f"name classes of the run in the column {name!r}, from 0 to {len(record.classes) - 1}"
            )
    if "group" in table.columns and not _are_codes(table["group"], -1, len(record.groups)):
        raise misfit_in(path, f"name groups of the run in the column 'group', from -1 to {len(record.groups) - 1}")
    apart = [] if "group" in table.columns else [f"group {number}" for number in range(len(record.groups))]
    for name in apart:
        if name not in table.columns or table[name].dtype != polars.Boolean or table[name].null_count():
            raise misfit_in(path, f"say who is in a group in the column {name!r}")
    for name in (f"column {place}" for place in range(1, len(record.group_columns))):
        if name in table.columns and table[name].dtype != polars.String:
            raise misfit_in(path, f"have the values of a group column in the column {name!r}")
    places = {"row": polars.Int64, "file": polars.String}
    for name, kind in places.items():
        if name in table.columns and (table[name].dtype != kind or (name == "row" and (table[name] < 0).any())):
            raise misfit_in(path, f"say where examples are from in the column {name!r}")


def misfit_in(path: Path, rule: str) -> UserError:
    """The error for a table that breaks this rule."""
    return UserError(f"{path} must {rule}; {_FIX}.")


def _are_codes(column: "polars.Series", low: int, end: int) -> bool:
    """Whether all values are whole numbers from ``low`` until before ``end``."""
    return (
        column.dtype.is_integer() and not column.null_count() and bool(column.is_between(low, end, closed="left").all())
    )
