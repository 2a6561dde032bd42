"""A model card: what the model decides, how good it is in every group, what it is for, and where it must not be trusted."""

import json
from collections.abc import Sequence
from typing import Any

from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import GroupRate, Summary
from umix.core.statistics import doubts, wilson
from umix.core.words import counted, threshold_text
from umix.data.rows.reader import Reader
from umix.data.tables.preprocessing import TablePreprocessing
from umix.exports.exported import MARK
from umix.exports.trained_model import Roles, TrainedModel
from umix.methods.registry import METHODS
from umix.reports.comparison import RATES, TITLES
from umix.reports.sentences import (
    NEW_DATA,
    RULE_WORDS,
    calibration_words,
    choice_words,
    command,
    judged_words,
    threshold_words,
)
from umix.reports.tables.text_table import Entry, TextTable, markdown, percents
from umix.version import __version__

#: The name of a card in a folder.
CARD = "README.md"
_EXAMPLES = {"table": "rows with these columns", "images": "images", "text": "texts", "arrays": "rows of such an array"}
_TASKS = {"table": "tabular-classification", "images": "image-classification", "text": "text-classification"}
_RATES = {"average": "accuracy", "worst": "worst-group accuracy", "group_mean": "mean accuracy of the groups"}
_HELD_OUT = {"val": "validation", "test": "test"}
_TRAINED_WITH = {
    "training": "those of training rows train the model",
    "validation": "those of validation rows train the model",
    "none": "none train the model",
}


def card_of(
    trained: TrainedModel,
    reader: Reader | None,
    *,
    license: str | None = None,
    loading: str = "",
    not_included: Sequence[str] = (),
) -> str:
    """The card of a trained model in Markdown, with the YAML that the Hugging Face hub reads.

    ``reader`` is None for a run on a benchmark. ``loading`` is Python that loads the files which lie beside the card.
    """
    record, summary = trained.record, trained.record.summary(trained.select, trained.threshold)
    roles = Roles.of(record, reader)
    sections = {
        f"# {roles.label or 'Classes'} of {record.title}": _what(record, roles),
        "## How good it is in each group" if record.groups else "## How good it is": _tables(record, summary),
        "## What it is for": _purpose(roles, reader),
        "## Where to be careful": _items(_limits(record, summary, roles)),
        "## How it was made": _items(_made(record, summary, roles, net=trained.short_title)),
        "## How to use it": _usage(record, roles, loading, not_included, known=reader is not None),
        "## How to make it again": _again(record),
    }
    head = _front_matter(record, summary, roles, license=license) + f"<!-- {MARK} -->\n"
    return "\n".join([head, *(f"{title}\n\n{text}" for title, text in sections.items())])


def _what(record: RunRecord, roles: Roles) -> str:
    classes = _listed([_code(name) for name in record.classes], "or")
    label = f"{_code(roles.label)}, which is {classes}" if roles.label else f"one of the classes {classes}"
    everywhere = "in every group" if record.groups else "in every part of the data"
    if roles.groups:
        everywhere += f" of {_listed([_code(name) for name in roles.groups])}"
    return (
        f"This model predicts {label}. It was trained on {_code(record.title)} with [umix](https://pypi.org/project/umix/), a "
        f"library for classifiers that hold up {everywhere}. Its inputs are {roles.inputs}.\n"
    )


def _tables(record: RunRecord, summary: Summary) -> str:
    """The named rates and the rate of every group or class, in percent."""
    rates = {rate: getattr(summary, rate) for rate in (RATES if record.groups else ("average",))}
    named = [[Entry(TITLES[rate]), Entry(_percent(value))] for rate, value in rates.items()]
    tables = [TextTable("Test accuracy", ["rate", "percent"], named)]
    header = ["percent", "95 % interval", "test rows"]
    for column, margin in summary.margins.items():
        rows = [_row(name, rate) for name, rate in margin.items()]
        label = record.group_columns[0]
        tables.append(TextTable(f"Test accuracy by {label} and {column}", [f"{label}, {column}", *header], rows))
    notes = []
    if record.groups:
        sized = zip(summary.groups.items(), record.train_sizes, strict=True)
        rows = [[*_row(name, rate), Entry(f"{n:,}")] for (name, rate), n in sized if rate.size or n]
        by = f" ({', '.join(record.group_columns)})" if record.group_columns else ""
        tables.append(TextTable(f"Test accuracy by group{by}", ["group", *header, "training rows"], rows))
        if summary.worst_group is not None:
            stand_in = ", which stands in for groups too small to judge" if summary.level == "classes" else ""
            notes.append(f"The worst group is {_code(summary.worst_group)}{stand_in}.")
        if any(not rate.judged for rate in summary.groups.values()):
            notes.append("Groups in parentheses have too few test rows to be judged.")
        notes.append("The adjusted average weighs the groups by their shares of the training rows.")
    else:
        rows = [_row(name, rate) for name, rate in summary.classes.items()]
        tables.append(TextTable("Test accuracy by class", ["class", *header], rows))
    return markdown(tables) + " ".join(notes) + "\n" * bool(notes)


def _row(name: str, rate: GroupRate) -> list[Entry]:
    shown = name if rate.judged else f"({name})"
    return [
        Entry(shown),
        Entry(_percent(rate.rate)),
        Entry(percents(wilson(rate.hits, rate.size))),
        Entry(f"{rate.size:,}"),
    ]


def _purpose(roles: Roles, reader: Reader | None) -> str:
    label = _code(roles.label) if roles.label else "the class"
    examples = _EXAMPLES.get(roles.kind, "examples")
    said = [f"It is meant to predict {label} for new {examples}, from the same source as the training data."]
    columns = reader.columns if isinstance(reader, TablePreprocessing) else []
    for names, words in (
        ([name for name in roles.groups if name in columns], "among its inputs, so it can decide by it"),
        ([name for name in roles.groups if name not in columns], "not among its inputs: it judges the model only"),
    ):
        if names:
            several = words.replace("by it", "by them").replace("it judges", "they judge")
            is_, rest = ("is", words) if len(names) == 1 else ("are", several)
            said.append(f"{_listed([_code(name) for name in names])} {is_} {rest}.")
    said.append(
        "It is not meant for groups that are not in the table above, nor to explain causes. Before it decides about people, look "
        "at the rates of their groups."
    )
    return " ".join(said) + "\n"


def _limits(record: RunRecord, summary: Summary, roles: Roles) -> list[str]:
    found = [] if record.groups else ["The worst group is unknown: the data name no groups."]
    found += [words] if (words := judged_words(summary, record.min_group)) else []
    worst = summary.judged_rates.get(summary.worst_group or "")
    if worst is not None:
        interval = percents(wilson(worst.hits, worst.size))
        rows = counted(worst.size, "test row")
        found.append(f"The rate of the worst group is known from {rows}: its 95 % interval is {interval} percent.")
    found += [_sentence(doubt) for doubt in doubts(seeds=1, worst_size=worst.size if worst else None)[1:]]
    found.append("All rates are those of one trained net; another seed gives somewhat different ones.")
    chosen = "The epoch and the threshold were" if summary.biases else "The epoch was"
    if summary.select != "last":
        found.append(
            f"{chosen} chosen by {_rule(summary)} of the validation rows, so these must be like the data it meets."
        )
    if summary.calibrated or (summary.biases and any(summary.biases.values())):
        how = "with biases of the classes that are added to the logits"
        if summary.threshold is not None:
            how = f"by a threshold ({_code(record.classes[1])} from {threshold_text(summary.threshold)} on)"
        found.append(f"A label is decided {how}, so it need not be the most probable class.")
    if roles.kind == "table":
        found.append(
            "Missing values are accepted. A text that training did not have counts as none of its column's values."
        )
    return found


def _made(record: RunRecord, summary: Summary, roles: Roles, *, net: str) -> list[str]:
    sizes = {"training": record.n_train}
    sizes |= {name: int(record.counts[split].class_sizes.sum()) for split, name in _HELD_OUT.items()}
    rows = _listed([f"{n:,} {name}" for name, n in sizes.items() if n])
    weighed = f" Training rows count by {_code(roles.weight)}." if roles.weight else ""
    method = METHODS.get(record.method)
    paper = f" ({method.paper})" if method is not None else ""
    epochs = record.counts["val"].epochs
    said = (choice_words(record, summary), calibration_words(record, summary), *threshold_words(record).split("\n"))
    return [
        f"Data: {_code(record.title)}, {rows} rows.{weighed}",
        f"Method: {record.method}{paper}. Net: {_code(net)}. Seed: {record.seed}.",
        _groups_used(record),
        f"Epoch: {record.best_epoch(summary.select, summary.threshold_mode) + 1} of {epochs}, "
        + ("the last." if summary.select == "last" else f"selected by {_rule(summary)} on validation."),
        *(_sentence(words) for words in said if words),
        *(f"Noted in training: {_sentence(warning)}" for warning in record.warnings),
    ]


def _groups_used(record: RunRecord) -> str:
    if not record.groups:
        return "Groups: none are known."
    trained = _TRAINED_WITH.get(record.group_use, "whether some train the model is not known")
    chosen = "none choose the epoch" if record.use_groups == "test" else "those of validation rows choose the epoch"
    return f"Groups: {trained}, {chosen}, those of test rows are reported."


def _usage(record: RunRecord, roles: Roles, loading: str, not_included: Sequence[str], *, known: bool) -> str:
    run = record.directory.name if record.has_directory else "RUN"
    parts = []
    if known:
        new = NEW_DATA.get(roles.kind, "new.csv")
        parts.append(
            f"With the folder of the run:\n\n```sh\numix predict {run} {new} -o predictions.csv\n```\n\n"
            f'```python\nimport umix\n\npredictions = umix.predict("{run}", "{new}")  # label, and p_CLASS of every class\n```\n'
        )
    else:
        parts.append(
            f'With the folder of the run:\n\n```python\nimport umix\n\nnet = umix.load_net(umix.load_run("{run}"))\n```\n'
        )
    if loading:
        parts.append(f"With the files beside this card:\n\n```python\n{loading}```\n")
    parts += ["Not included in these files: " + "; ".join(not_included) + ".\n"] * bool(not_included)
    return "\n".join(parts)


def _again(record: RunRecord) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return (
        f"```sh\n{command(record)}\n```\n\nThe key of the run is {_code(record.key)}; the same data, settings and seed give the "
        f"same key and the same numbers. Trained with {versions}. Card written by umix {__version__}.\n"
    )


def _rule(summary: Summary) -> str:
    return RULE_WORDS.get(summary.select, summary.select)


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.1f}"


def _items(sentences: Sequence[str]) -> str:
    return "".join(f"- {sentence}\n" for sentence in sentences)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _listed(names: Sequence[str], last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def _code(name: str) -> str:
    """The name as code in Markdown."""
    quote = "'"
    return f"`{name.replace('`', quote)}`"


def _front_matter(record: RunRecord, summary: Summary, roles: Roles, *, license: str | None) -> str:
    """The YAML between two lines of dashes: tags, the kind of task, and the test rates as a model index."""
    task = _TASKS.get(roles.kind)
    metrics = [
        {"type": "accuracy", "name": f"{name}, test", "value": round(value, 4)}
        for rate, name in _RATES.items()
        if (value := getattr(summary, rate)) is not None
    ]
    result = {
        "task": {"type": task or "other", "name": "classification"},
        "dataset": {"type": record.title, "name": record.title, "split": "test"},
        "metrics": metrics,
    }
    head: dict[str, Any] = {
        **({"license": license} if license else {}),
        "library_name": "umix",
        **({"pipeline_tag": task} if task else {}),
        "tags": list(dict.fromkeys(["umix", "subpopulation-shift", "worst-group-accuracy", record.method])),
        "metrics": ["accuracy"],
        "model-index": [{"name": f"{record.title}-{record.method}", "results": [result]}],
    }
    return "\n".join(["---", *_yaml(head, ""), "---", ""])


def _yaml(value: Any, indent: str) -> Sequence[str]:
    """Lines of YAML; texts are written as JSON writes them, which YAML reads as they are."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                lines += [f"{indent}{key}:", *_yaml(inner, f"{indent}  ")]
            else:
                lines.append(f"{indent}{key}: {json.dumps(inner, ensure_ascii=False)}")
        return lines
    for inner in value:
        if isinstance(inner, dict):
            first, *rest = _yaml(inner, f"{indent}  ")
            lines += [f"{indent}- {first.lstrip()}", *rest]
        else:
            lines.append(f"{indent}- {json.dumps(inner, ensure_ascii=False)}")
    return lines
