"""The check of data without training: counts, findings, and whether every image of a folder can be decoded."""

import os
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, final

import numpy as np
from torch import Tensor

from umix.data.checks.column_findings import constant_columns, repeated_ids
from umix.data.checks.finding import Finding, Verdict, by_severity, verdict
from umix.data.checks.group_findings import absent_classes, group_columns, rare_classes, small_groups
from umix.data.checks.problems import Problem
from umix.data.checks.table_findings import LabelledTable, copies, row_keys, table_findings
from umix.data.images.image_files import decode
from umix.data.rows.column_kinds import ColumnType, is_missing, is_plain, is_text, kind_of, read_commas
from umix.data.rows.known_rows import known_rows
from umix.data.rows.role_columns import texts
from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import as_frame
from umix.data.tables.columns import column_of
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.tables.source import TableSource
from umix.data.task import CheckedSource, Split, Task
from umix.data.texts.source import TextSource
from umix.errors import UserError

if TYPE_CHECKING:
    import polars

Role = Literal["label", "group", "split", "id", "weight", "input", "ignored"]
_AT_ONCE = 256
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


@final
@dataclass(frozen=True)
class DataCheck:
    """The check of a folder or file: findings, counts by split and group, and counts that differ from the published ones.

    ``classes`` are the counts by split and class, where the data were loaded. Without groups, ``counts`` are the same.
    ``notes`` say how the data were read; what is among the findings is not repeated there. ``columns`` are those of a table.
    ``titles`` says what groups are called where people read them.
    """

    folder: Path
    images: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)
    allow_subset: bool = False
    notes: list[str] = field(default_factory=list)
    classes: dict[str, dict[str, int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    columns: list[ColumnFacts] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> dict[str, int]:
        """The size of every split, where the data were loaded."""
        return {name: sum(sizes.values()) for name, sizes in self.classes.items()}

    @property
    def all_findings(self) -> list[Finding]:
        """The findings, the problems of a folder and its counts that are not the published ones, what is broken first."""
        folder = str(self.folder)
        broken = [Finding("broken", folder, f"{problem}.") for problem in self.problems]
        if not self.allow_subset:
            broken += [Finding("broken", folder, f"{mismatch}.") for mismatch in self.mismatches]
        return by_severity([*broken, *self.findings])

    @property
    def verdict(self) -> Verdict:
        """Whether the data are fine, worth a look, or cannot be trained on."""
        return verdict(self.all_findings)


def check_data(
    source: CheckedSource, root: Path | None, *, advance: Callable[[int], None] = lambda n: None
) -> DataCheck:
    """The check of the folder of ``source``; ``advance`` is called with the number of images just opened."""
    checked = source.check(root)
    folder, problems = checked.folder, checked.problems
    missing, unreadable = [], []
    names = list(dict.fromkeys(checked.images))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for begin in range(0, len(names), _AT_ONCE):
            part = names[begin : begin + _AT_ONCE]
            for name, problem in zip(part, pool.map(lambda name: _problem(folder / name), part), strict=True):
                if problem == _MISSING:
                    missing.append(name)
                elif problem:
                    unreadable.append(f"{name} ({problem})")
            advance(len(part))
    problems.add("listed images must be in the folder", missing)
    problems.add("images must be decodable", unreadable)
    sizes = checked.counts
    findings = small_groups(sizes, {}) if _has_groups(source) else [*absent_classes(sizes), *rare_classes(sizes)]
    return DataCheck(
        folder,
        len(names),
        checked.counts,
        problems.entries,
        checked.mismatches,
        checked.allow_subset,
        _without(checked.notes, findings),
        findings=findings,
    )


def _has_groups(source: object) -> bool:
    """Whether the counts of ``source`` are those of groups; folders of one's own may have none."""
    return bool(source.groups) if isinstance(source, RowRoles) else True


def check_table(source: TableSource | TextSource) -> DataCheck:
    """The columns, counts and findings of a table; a column that the table does not have raises, as in a run."""
    frame = as_frame(source.path)
    inputs = _inputs(source, frame)
    try:
        task = source.load()
    except UserError as error:
        columns = _column_facts(frame, source, inputs, _types(source, frame, inputs))
        return DataCheck(source.path, findings=[Finding("broken", source.title, error)], columns=columns)
    rows = {name: _origin(split) for name, split in task.splits.items()}
    y = known_rows(source, frame).y.numpy()
    reader = task.preprocessing
    if not isinstance(reader, TablePreprocessing):
        others = frame.drop(source.label, source.text, *source.groups) if isinstance(source, TextSource) else frame
        findings = [
            *repeated_ids(others, rows),
            *copies(row_keys(frame.select(inputs)), y, rows),
            *group_columns(frame, source.groups),
        ]
        columns = _column_facts(frame, source, inputs, _types(source, frame, inputs))
        return replace(_counted(source.path, task, findings), columns=columns)
    labelled = LabelledTable(read_commas(frame), inputs, source.label, source.groups, y, rows)
    findings = table_findings(labelled, constant=reader.dropped)
    columns = _column_facts(frame, source, inputs, reader.types)
    return replace(_counted(source.path, task, findings, constant_columns(reader.dropped)), columns=columns)


def check_rows(path: Path, task: Task) -> DataCheck:
    """The counts of ``task``, which was loaded from ``path``, and the findings that need no table of its columns."""
    return _counted(path, task, _copied_inputs(task))


def first_findings(source: TableSource, frame: "polars.DataFrame") -> list[Finding]:
    """What a run on the table ``frame`` shows before it trains; nothing where its columns are wrong, which the run will raise."""
    try:
        inputs, rows = source.input_columns(frame), known_rows(source, frame)
        for name in inputs:
            kind_of(frame[name])  # raises for lists, structures and bytes
    except UserError:
        return []
    labelled = LabelledTable(read_commas(frame), inputs, source.label, source.groups, rows.y.numpy(), rows.rows)
    return table_findings(labelled, before_run=True)


def _counted(path: Path, task: Task, first: list[Finding], last: list[Finding] | None = None) -> DataCheck:
    """The counts of ``task`` and all findings: ``first``, those about its counts, ``last``."""
    counts = {name: split.group_sizes(task.classes) for name, split in task.splits.items()}
    classes = {name: split.class_sizes(task.classes) for name, split in task.splits.items()}
    titles = task.splits["test"].groups.titles
    sizes = small_groups(counts, titles) if task.groups else []
    findings = [*first, *sizes, *absent_classes(classes), *rare_classes(classes), *(last or [])]
    return DataCheck(
        path,
        counts=counts,
        notes=_without(task.notes, findings),
        classes=classes,
        findings=by_severity(findings),
        titles=titles,
    )


def _without(notes: list[str] | tuple[str, ...], findings: list[Finding]) -> list[str]:
    """The notes that are no finding."""
    said = {finding.note for finding in findings}
    return [note for note in notes if note not in said]


def _types(source: TableSource | TextSource, frame: "polars.DataFrame", inputs: list[str]) -> dict[str, ColumnType]:
    """The types of the inputs that can be read, by all rows of a table that nothing was learned from."""
    if isinstance(source, TextSource):
        return dict.fromkeys(inputs, "text")
    return {name: column_of(frame[name]).type for name in inputs if is_plain(frame[name].dtype)}


def _inputs(source: TableSource | TextSource, frame: "polars.DataFrame") -> list[str]:
    """The inputs; raises where a column has no place. Where no label is named, all columns that have no other role."""
    if isinstance(source, TextSource):
        if source.label:
            source.check_columns(frame)
        return [source.text]
    if source.label:
        return source.input_columns(frame)
    others = {*source.single, *source.drop} - {""}
    return [name for name in frame.columns if name not in others]


def _origin(split: Split) -> np.ndarray:
    return np.arange(len(split)) if split.origin is None else split.origin


def _copied_inputs(task: Task) -> list[Finding]:
    """The finding about rows of val and test with the inputs of a training row, where the inputs are in memory."""
    keys, y, rows, begin = [], [], {}, 0
    for name, split in task.splits.items():
        if not isinstance(split.x, Tensor):
            return []
        keys += [hash(row.numpy().tobytes()) for row in split.x]
        y.append(split.y.numpy())
        rows[name] = np.arange(begin, begin + len(split))
        begin += len(split)
    return copies(np.array(keys, dtype=np.int64).view(np.uint64), np.concatenate(y), rows)


_MISSING = "missing"


def _problem(path: Path) -> str:
    """Why the image at ``path`` cannot be used; empty where it can."""
    try:
        decode(path)
    except FileNotFoundError:
        return _MISSING
    except Exception as error:  # Pillow raises many types for broken files
        return str(error).replace(str(path), "it") or type(error).__name__
    return ""


def _column_facts(
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
        **dict.fromkeys((roles.split, roles.split_by, roles.split_by_date), "split"),
        roles.label or None: "label",
    }
    named |= dict.fromkeys(roles.groups, "group")
    missing = is_missing(column) if is_input or not is_text(column) else texts(column).is_null()
    first = column.filter(~missing).head(1).to_list()
    example = str(first[0]) if first else None
    if example is not None and len(example) > _LONGEST:
        example = f"{example[: _LONGEST - 1]}…"
    role = named.get(column.name, "input" if is_input else "ignored")
    return ColumnFacts(column.name, role, type, int(missing.sum()) / max(1, len(column)), example)
