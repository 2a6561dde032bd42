"""The runs that a table or a page is about: read from folders, in order, and as the rows that a comparison shows."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from umix.bench.runs.failure import load_failures
from umix.bench.runs.record import RunRecord, find_run, load_run, load_runs
from umix.core.selection import Threshold
from umix.errors import Setting, UserError
from umix.run_folder import FAILED

#: Records by the label of their task and of their method.
Arranged = dict[str, dict[str, list[RunRecord]]]

#: The method whose plain row is always decided by argmax.
PLAIN = "erm"
#: What is added to its label in the row with the threshold that validation chooses.
THRESHOLD = " + threshold"


@final
@dataclass(frozen=True, eq=False)
class Gathered:
    """Runs by task and method, and in words what was left out: broken records, and runs that failed."""

    runs: Arranged
    skipped: list[str]
    failed: list[str]

    @property
    def n_runs(self) -> int:
        return sum(len(records) for methods in self.runs.values() for records in methods.values())


def gather(directory: str | Path) -> Gathered:
    """The finished run that ``directory`` names, or all runs in its folders; a folder without any is refused."""
    folder = Path(directory)
    if find_run(folder) is not None:
        return Gathered(arrange([load_run(folder)]), [], [])
    stored = load_runs(folder)
    if not stored.records and stored.skipped:
        raise UserError(f"No run in {directory} can be read: {stored.skipped[0]}")
    if not stored.records:
        raise UserError(
            f"There is no finished run in {directory}; make some with umix run ", Setting("out", f"{directory}"), "."
        )
    return Gathered(arrange(stored.records), stored.skipped, _failures(folder))


def _failures(folder: Path) -> list[str]:
    """A sentence for every run that failed and was not repeated."""
    return [
        f"{name}: failed, and {FAILED} cannot be read."
        if failure is None
        else f"{name}: {failure.error}: {failure.message}"
        for name, failure in load_failures(folder).items()
    ]


def arrange(records: Sequence[RunRecord]) -> Arranged:
    """Records by task and method, seeds and folds in order; a run that lies in two folders counts once.

    Where one task or method was run with different settings each has a label of its own, which says what differs: ``umix``
    becomes ``umix sigma=0.0`` and ``umix sigma=0.5``.
    """
    unique = {record.key: record for record in records}.values()
    tasks = _labelled({record.key: (record.title, _task_options(record)) for record in unique})
    by_task: dict[str, list[RunRecord]] = {}
    for record in sorted(unique, key=lambda record: (tasks[record.key], record.method, record.seed)):
        by_task.setdefault(tasks[record.key], []).append(record)
    arranged: Arranged = {task: {} for task in by_task}
    for task, here in by_task.items():
        methods = _labelled({record.key: (record.method, _method_options(record)) for record in here})
        for record in sorted(here, key=lambda record: (methods[record.key], record.seed, record.fold or 0)):
            arranged[task].setdefault(methods[record.key], []).append(record)
    return arranged


def _task_options(record: RunRecord) -> dict[str, Any]:
    """The task's settings, and as one short hash what was read and which rows came of it.

    In which form a learner takes the rows is no matter of the task.
    """
    options = dict(record.asked_plan.get("task", {}))
    content, rows = options.pop("content", ""), record.rows or record.fingerprint
    if options.pop("fold", None) is not None:
        rows = ""  # folds are one task: each has the same rows, divided otherwise
    data = hashlib.sha256(f"{content}/{rows}".encode()).hexdigest() if content else rows
    return {**options, "data": data[:8]}


def _method_options(record: RunRecord) -> dict[str, Any]:
    """Everything of the plan but the task: the method's settings under their own names, the others as ``fit.lr``."""
    return {part: values for part, values in record.asked_plan.items() if part != "task"}


def _labelled(named: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """For every key a label: the name and, where the name has several sets of options, the options that differ between them."""
    variants: dict[str, dict[str, Mapping[str, Any]]] = {}
    texts = {key: str(options) for key, (_, options) in named.items()}  # in another order they still get the same label
    for key, (name, options) in named.items():
        variants.setdefault(name, {}).setdefault(texts[key], options)
    labels: dict[tuple[str, str], str] = {}
    for name, found in variants.items():
        flat = {text: _flat(options) for text, options in found.items()}
        keys = sorted({key for options in flat.values() for key in options})
        differing = [key for key in keys if len({options.get(key) for options in flat.values()}) > 1]
        differing = [key for key in differing if not _goes_with_the_net(key, list(flat.values()))]
        for text, options in flat.items():
            told = [f"{key}={options[key]}" for key in differing if key in options]
            labels[name, text] = " ".join([name, *told])
    return {key: labels[name, texts[key]] for key, (name, _) in named.items()}


def _goes_with_the_net(key: str, variants: Sequence[Mapping[str, str]]) -> bool:
    """Whether ``key`` is an option that only some of the nets have, and the name of the net tells its value."""
    if not key.startswith(("net.", "fit.", "stages.")) or all(key in options for options in variants):
        return False
    of_net: dict[str | None, set[str | None]] = {}
    for options in variants:
        of_net.setdefault(options.get("net"), set()).add(options.get(key))
    return len(of_net) > 1 and all(len(values) == 1 for values in of_net.values())


def _flat(options: Mapping[str, Any]) -> dict[str, str]:
    """Nested options as one level of texts: ``fit.lr``; a method's own settings have no prefix, the net's name is ``net``."""
    flat: dict[str, str] = {}
    for key, value in options.items():
        if isinstance(value, dict):
            prefix = "" if key == "method" else f"{key}."
            flat |= {f"{prefix}{name}": text for name, text in _flat(value).items()}
            if key == "net" and "net.name" in flat:
                flat["net"] = flat.pop("net.name")
        else:
            flat[key] = str(value)
    return flat


def threshold_rows(
    runs: Mapping[str, Mapping[str, Sequence[RunRecord]]],
    *,
    select: str | None = None,
    threshold: Threshold | None = None,
) -> Arranged:
    """``runs`` as a comparison shows them: ``erm`` by argmax and ``erm + threshold``, the others as ``threshold`` says.

    Without ``threshold`` every run is decided as it was told. Runs that are decided by argmax anyway have no second row.
    """
    rows: Arranged = {}
    for task, methods in runs.items():
        here = rows.setdefault(task, {})
        for label, records in methods.items():
            told = [record.with_threshold(threshold) for record in records]
            if any(_is_plain_with_thresholds(record, select) for record in told):
                here[label] = [record.with_threshold("off") for record in told]
                label += THRESHOLD
            here[label] = told
    return rows


def plain_row(record: RunRecord) -> RunRecord:
    """``record`` as its own row of a comparison shows it."""
    return record.with_threshold("off") if record.method == PLAIN else record


def _is_plain_with_thresholds(record: RunRecord, select: str | None) -> bool:
    if record.method != PLAIN or record.threshold == "off" or not (select is None or record.has(select)):
        return False
    return record.tunes_threshold(select)
