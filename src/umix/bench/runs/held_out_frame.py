"""The predictions of a run as people and other libraries read them: names instead of numbers, a column per group column."""

from typing import TYPE_CHECKING

from umix.bench.runs.record import RunRecord
from umix.bench.runs.stored_table import check_examples, misfit_in, read_stored_table
from umix.errors import Setting, UserError
from umix.run_folder import ARGMAX_PREDICTIONS, PREDICTIONS

if TYPE_CHECKING:
    import polars

#: Columns of the frame that are not group columns.
_TAKEN = ("row", "file", "label", "prediction", "group")
_NEEDED = ("split", "label", "prediction", "confidence")


def read_held_out(record: RunRecord) -> "polars.DataFrame":
    """The predictions that a finished run keeps, as they are written; a file that does not fit the record is refused.

    They are those of ``record.decide``: a run keeps those of its own decision and, where it is another, those by argmax.
    """
    import polars

    own = record.choice() == record.choice(decide=record.own_decide)
    if not own and record.decide != "argmax":
        raise UserError(
            f"The run {record.directory} keeps its predictions by argmax alone; train it with ",
            Setting("decide", "biases"),
            " to have them with chosen biases.",
        )
    path = record.directory / (PREDICTIONS if own else ARGMAX_PREDICTIONS)
    if not path.exists():
        raise UserError(
            f"The run {record.directory} has no {path.name}: an earlier version of umix made it; run it again."
        )
    table = read_stored_table(path)
    probabilities = [f"p {k}" for k in range(len(record.classes))] if "p 0" in table.columns else []
    missing = [name for name in (*_NEEDED, *probabilities) if name not in table.columns]
    if missing:
        raise misfit_in(path, f"have the columns of a run's predictions, but {missing[0]!r} is missing")
    check_examples(path, table, record)
    for name in ("confidence", *probabilities):  # of a net that has diverged they are NaN
        if (
            not table[name].dtype.is_float()
            or not table[name].fill_nan(0.5).is_between(0, 1).all()
            or table[name].null_count()
        ):
            raise misfit_in(path, f"hold probabilities in the column {name!r}")
    if table["split"].dtype != polars.String:
        raise misfit_in(path, "name a split in the column 'split'")
    rows = dict(table["split"].value_counts().iter_rows())
    wanted = {name: counts.n for name, counts in record.counts.items() if counts.n}
    if rows != wanted:
        raise misfit_in(path, f"have a row for every example of {' and '.join(wanted)}, got {rows} for {wanted}")
    return table


def group_column(name: str) -> str:
    """The column of the frame that holds the values of the group column ``name``: its name, unless the frame has one so called."""
    return f"{name} (group)" if name in _TAKEN or name.startswith("p_") else name


def named_frame(record: RunRecord, table: "polars.DataFrame", split: str) -> "polars.DataFrame":
    """Label, prediction, probabilities and groups of every example of ``split``.

    ``label`` and ``prediction`` are names of classes and ``p_CLASS`` is a probability. ``group`` is the name of the group, each
    group column has a column of its own, and what is not known is null. Of groups that overlap, each has a column of its own that
    says who is in it.
    """
    import polars

    if split not in ("val", "test"):
        raise UserError(f"split must be val or test, got {split!r}.")
    rows = table.filter(polars.col("split") == split)
    columns: dict[str, polars.Series] = {}
    for place in ("row", "file"):
        if place in rows.columns:
            columns[place] = rows[place]
    for name in ("label", "prediction"):
        columns[name] = polars.Series([record.classes[code] for code in rows[name]], dtype=polars.String)
    for number, name in enumerate(record.classes):
        if f"p {number}" in rows.columns:
            columns[f"p_{name}"] = rows[f"p {number}"]
    if "group" in rows.columns:
        columns["group"] = polars.Series(
            [record.groups[code] if code >= 0 else None for code in rows["group"]], dtype=polars.String
        )
        for number, column in list(enumerate(record.group_columns))[1:]:
            values = [record.group_parts[code][number] if code >= 0 else None for code in rows["group"]]
            known = polars.Series(values, dtype=polars.String)
            stored = f"column {number}"  # is there if a value can be known where the group is not
            columns[group_column(column)] = rows[stored].fill_null(known) if stored in rows.columns else known
    for number, name in enumerate(record.groups):
        if f"group {number}" in rows.columns:
            columns[name] = rows[f"group {number}"]
    return polars.DataFrame(columns)
