"""Groups and classes in words: values with the names of their columns."""

from umix.bench.runs.record import RunRecord
from umix.core.words import quoted

_UNNAMED = ["label", "attribute"]  # the columns of tasks that have no table


def group_words(record: RunRecord, name: str) -> str:
    """The group, margin or class ``name`` of a table with its columns, the label last: ``sex = F, outcome = no``.

    The names of other tasks' groups are as they are.
    """
    columns = record.group_columns
    if not columns or columns == _UNNAMED:
        return name
    values = dict(zip(record.groups, record.group_parts, strict=True))
    if name in values:
        return _joined(columns[1:] + columns[:1], values[name][1:] + values[name][:1])
    for margin in record.margins:
        if name == f"{margin.name} ({margin.column})":
            return _joined([margin.column, columns[0]], [margin.parts[1], margin.parts[0]])
    classes = {f"class {quoted(one)}": one for one in record.classes}
    return _joined(columns[:1], [classes[name]]) if name in classes else name


def _joined(columns: list[str], values: list[str]) -> str:
    """The values beside their columns; some values have the column's name already: ``recid=1``."""
    pairs = zip(columns, values, strict=True)
    return ", ".join(f"{column} = {quoted(value.removeprefix(f'{column}='))}" for column, value in pairs)
