"""What groups, margins and classes of a run are called where people read them."""

from umix.bench.runs.record import RunRecord
from umix.core.words import bare_columns, group_title, quoted


def unit_titles(record: RunRecord) -> dict[str, str]:
    """What groups, margins and classes are called, by their names in ``Summary.unit_rates``.

    A value that says nothing alone has the name of its column: ``passed=0``, ``sex=F``, but ``Female``.
    """
    columns = record.group_columns
    bare = bare_columns(columns, record.group_values)
    cells = [group_title(dict(zip(columns, parts, strict=True)), bare) for parts in record.group_parts] or record.groups
    margins = [group_title(dict(zip((columns[0], one.column), one.parts, strict=True)), bare) for one in record.margins]
    classes = [("class " if record.groups else "") + class_title(record, name) for name in record.classes]
    return dict(zip(record.unit_names, [*cells, *margins, *classes], strict=True))


def class_title(record: RunRecord, name: str) -> str:
    """What the class ``name`` is called: with the name of the label's column where classes say nothing alone."""
    task = record.plan["task"]
    label = next(iter(record.group_columns), None) or (task["label"] if "groups" in task else None)
    return quoted(name) if label is None else group_title({label: name}, bare_columns([label], [record.classes]))
