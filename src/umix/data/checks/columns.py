"""The columns of a table, one by one, as ``umix doctor`` lists them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

from umix.data.rows.column_kinds import ColumnType, is_missing, is_text
from umix.data.rows.role_columns import texts
from umix.data.rows.row_roles import RowRoles

if TYPE_CHECKING:
    import polars

Role = Literal["label", "group", "split", "id", "weight", "input", "ignored"]
_LONGEST = 40  # characters of an example


@final
@dataclass(frozen=True)
class ColumnFacts:
    """What a column is used for, what it is read as where it is an input, its share of missing values, and one of its values."""

    name: str
    role: Role
    type: ColumnType | None
    missing: float
    example: str | None


def column_facts(
    frame: "polars.DataFrame", roles: RowRoles, inputs: Collection[str], types: Mapping[str, ColumnType]
) -> list[ColumnFacts]:
    """The facts of every column of ``frame``; ``types`` are those of the ``inputs`` that can be read."""
    used = set(inputs)
    return [
        _facts(column, roles, types.get(column.name), is_input=column.name in used) for column in frame.iter_columns()
    ]


def _facts(column: "polars.Series", roles: RowRoles, type: ColumnType | None, *, is_input: bool) -> ColumnFacts:
    named: dict[str | None, Role] = {
        roles.weight: "weight",
        roles.id: "id",
        roles.split: "split",
        roles.label or None: "label",
    }
    named |= dict.fromkeys(roles.groups, "group")
    missing = is_missing(column) if is_input or not is_text(column) else texts(column).is_null()
    known = column.filter(~missing).head(1).to_list()
    example = str(known[0]) if known else None
    if example is not None and len(example) > _LONGEST:
        example = f"{example[: _LONGEST - 1]}…"
    role = named.get(column.name, "input" if is_input else "ignored")
    return ColumnFacts(column.name, role, type, int(missing.sum()) / max(1, len(column)), example)
