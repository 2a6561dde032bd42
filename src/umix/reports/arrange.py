"""Records in order: by task, by method and by what was set differently, so that only seeds of the same thing are averaged."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from umix.bench.runs.record import RunRecord

#: Records by the label of their task and of their method.
Arranged = dict[str, dict[str, list[RunRecord]]]


def arrange(records: Sequence[RunRecord]) -> Arranged:
    """Records by task and method, seeds in order; a run that lies in two folders counts once.

    Where one task or method was run with different settings each has a label of its own, which says what differs: ``umix``
    becomes ``umix sigma=0.0`` and ``umix sigma=0.5``.
    """
    unique = {record.key: record for record in records}.values()
    rows = {record.fingerprint: record.rows for record in unique if record.rows}  # runs of earlier versions have none
    tasks = _labelled({record.key: (record.title, _task_options(record, rows)) for record in unique})
    by_task: dict[str, list[RunRecord]] = {}
    for record in sorted(unique, key=lambda record: (tasks[record.key], record.method, record.seed)):
        by_task.setdefault(tasks[record.key], []).append(record)
    arranged: Arranged = {task: {} for task in by_task}
    for task, here in by_task.items():
        methods = _labelled({record.key: (record.method, _method_options(record)) for record in here})
        for record in sorted(here, key=lambda record: (methods[record.key], record.seed)):
            arranged[task].setdefault(methods[record.key], []).append(record)
    return arranged


def _task_options(record: RunRecord, rows_of: Mapping[str, str]) -> dict[str, Any]:
    """The task's settings, and as one short hash what was read and which rows came of it.

    In which form a learner takes the rows is no matter of the task.
    """
    options = dict(record.asked_plan.get("task", {}))
    content, rows = options.pop("content", ""), record.rows or rows_of.get(record.fingerprint, record.fingerprint)
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
