"""What is said of a run in words, the same in every table, on the page and on a model card."""

import json
import shlex

from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import Summary
from umix.core.selection import THRESHOLD_RULES
from umix.core.words import counted, quoted
from umix.reports.comparison import lowest

_SHOWN = 4  # names in a sentence
_MOST_BIASES = 6


def judged_words(summary: Summary, min_group: int) -> str:
    """Which groups the worst one is the worst of, in a few sentences; empty where it is simply all of them."""
    found = [collapse_words(summary)] if summary.collapsed is not None else []
    units = summary.unit_rates
    classes = list(units)[-len(summary.classes) :]
    stand_ins = [name for name in summary.judged if name in classes]
    if stand_ins:
        stand = "stands in for its groups" if len(stand_ins) == 1 else "stand in for their groups"
        found.append(f"Some classes have no group of {min_group} test examples; {_names(stand_ins)} {stand}.")
    certain = [name for name in summary.judged if units[name].size < min_group and name not in stand_ins]
    if certain:
        sizes = ", ".join(f"{name} (n = {units[name].size})" for name in certain[:_SHOWN])
        more = f" and {len(certain) - _SHOWN} more" if len(certain) > _SHOWN else ""
        verb = "is small but counts" if len(certain) == 1 else "are small but count"
        which = "its 95 % interval lies" if len(certain) == 1 else "their 95 % intervals lie"
        found.append(f"{sizes}{more} {verb}: {which} wholly below that of the worst larger group.")
    if summary.n_too_small:
        n_known = sum(group.size > 0 for group in summary.groups.values())
        have = "has" if summary.n_too_small == 1 else "have"
        found.append(
            f"{summary.n_too_small} of {counted(n_known, 'group')} {have} fewer than {min_group} test examples: shown, not judged."
        )
    return " ".join(found)


def _names(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def collapse_words(summary: Summary) -> str:
    """The sentence about a net that predicts one class for everything."""
    return f"The selected net has collapsed: it predicts {summary.collapsed!r} for every validation example."


def column_words(record: RunRecord) -> str:
    """How many columns of a table were read as what; empty for other data and in runs of earlier versions."""
    types = record.column_types
    if not types:
        return ""
    names = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts"}
    left_out = f"; constant and left out: {types['constant']}" if "constant" in types else ""
    return f"Columns read as {', '.join(f'{word}: {types.get(name, 0)}' for name, word in names.items())}{left_out}."


def choice_words(record: RunRecord, summary: Summary) -> str:
    """How ``summary`` decides classes and what argmax would give, in a sentence; empty where argmax was asked for."""
    if record.threshold == "off" or summary.select not in THRESHOLD_RULES:
        return ""
    if summary.biases is None:
        return "Threshold: argmax; this run keeps no counts of other thresholds."
    if not any(summary.biases.values()):
        return "Threshold: argmax, the best on validation."
    if summary.threshold is not None:
        chosen = f"{quoted(record.classes[1])} is predicted from a probability of {summary.threshold:.2g} on"
    else:
        shown = [f"{quoted(name)} {_signed(bias)}" for name, bias in summary.biases.items() if bias][:_MOST_BIASES]
        chosen = f"added to the logits before the largest is predicted: {', '.join(shown)}"
        chosen += ", …" if len(summary.biases) > _MOST_BIASES else ""
    plain, kind = lowest(record.summary(summary.select, "off")), "group" if record.groups else "class"
    return f"Threshold: {chosen} (chosen on validation); argmax would give {100 * plain:.1f} % in the worst {kind}."


def _signed(bias: float) -> str:
    """``bias`` with two digits behind the point, or so many that it is not shown as 0."""
    return f"{bias:+.2f}" if abs(bias) >= 0.005 else f"{bias:+.1g}"


def threshold_words(record: RunRecord) -> str:
    """What a run decided for what was left open, in sentences; empty where it decided nothing."""
    decided = record.choices
    findings = [str(value["words"]) for value in decided.values() if isinstance(value, dict) and "words" in value]
    if "chosen" in decided:  # best says it itself
        skipped = [f"Not tried: {decided['not tried']}"] if "not tried" in decided else []
        found = [f"{words[:1].upper()}{words[1:].removesuffix('.')}." for words in findings]
        others = [decided["others"]] if "others" in decided else []
        return "\n".join([decided["chosen"], *others, *skipped, *found])
    settings = {
        name: value for name, value in decided.items() if name != "reason" and not isinstance(value, dict | list)
    }
    chosen, reason = ", ".join(f"{name}={value}" for name, value in settings.items()), decided.get("reason")
    return "; ".join([f"auto: {chosen}" + (f" ({reason})" if reason else "")] * bool(chosen) + findings)


def command(record: RunRecord) -> str:
    """The ``umix run`` that makes this record."""
    words = ["umix", "run", record.task, record.method, "--seed", str(record.seed)]
    words += [] if record.preset == "default" else ["--preset", record.preset]
    for key, value in record.settings.items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)
