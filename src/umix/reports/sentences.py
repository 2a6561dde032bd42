"""What is said of a run in words, the same in every table, on the page and on a model card."""

import json
import shlex
from collections.abc import Mapping, Sequence

from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import Summary
from umix.bench.runs.unit_titles import class_title
from umix.core.calibration import MIN_CLASS, MIN_EXAMPLES, Calibration, enough_examples
from umix.core.selection import THRESHOLD_RULES
from umix.core.words import KINDS, counted, quoted, threshold_text
from umix.errors import one_line
from umix.reports.arrange import PLAIN, THRESHOLD
from umix.reports.comparison import lowest

#: Which part of validation decides under each rule of selection.
RULE_WORDS = {
    "worst": "the worst group",
    "balanced": "the worst class and the average",
    "average": "the average",
    "worst_class": "the worst class",
    "worst_recall": "the worst recall of a class in a group",
    "class_difference": "the difference between classes",
    "uncertainty_quintile": "the most uncertain fifth",
    "cvar": "the examples of highest loss",
}
#: What new data of each kind of own data may be called.
NEW_DATA = {"table": "new.csv", "text": "new.csv", "arrays": "new.npz", "images": "new-images"}
_EXAMPLES = {"table": "rows", "text": "rows", "arrays": "rows", "images": "images"}
_BOOSTED = {"trees": "boosted trees", "lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
_SHOWN = 4  # names in a sentence
_MOST_BIASES = 6


def judged_words(summary: Summary, min_group: int, titles: Mapping[str, str] | None = None) -> str:
    """Which groups the worst one is the worst of, in a few sentences; empty where it is simply all of them.

    ``titles`` says what groups are called, where that is not their name.
    """
    titles = titles or {}
    said = [collapse_words(summary)] if summary.collapsed is not None else []
    units = summary.unit_rates
    classes = list(units)[-len(summary.classes) :]
    stand_ins = [name for name in summary.judged if name in classes]
    if stand_ins:
        count = "it counts" if len(stand_ins) == 1 else "they count"
        said.append(f"No group of {_names(stand_ins)} has {min_group} test rows, so {count} as a whole.")
    certain = [name for name in summary.judged if units[name].size < min_group and name not in stand_ins]
    if certain:
        sized = [f"{titles.get(name, name)} (n = {units[name].size})" for name in certain]
        count = "is small, but counts" if len(certain) == 1 else "are small, but count"
        said.append(f"{_names(sized)} {count}: clearly worse than every larger group (95 % intervals do not overlap).")
    small = [name for name, group in summary.groups.items() if group.size and not group.judged]
    if len(small) == 1:
        rows = counted(summary.groups[small[0]].size, "test row")
        said.append(f"{titles.get(small[0], small[0])!r} has only {rows}: shown, does not decide.")
    elif small:
        n_known = sum(group.size > 0 for group in summary.groups.values())
        said.append(f"{len(small)} of {n_known} groups have fewer than {min_group} test rows: shown, do not decide.")
    return " ".join(said)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def collapse_words(summary: Summary, model: str = "selected") -> str:
    """The sentence about a model that predicts one class for everything."""
    return f"The {model} model has collapsed: it predicts {summary.collapsed!r} for every validation row."


def data_words(record: RunRecord, *, pooled: bool = False) -> str:
    """The data of a run, or of its folds together, in a line: rows, label, groups, how they are divided, and the seed."""
    task = record.plan["task"]
    sizes = [record.n_train, *(record.counts[split].n for split in ("val", "test"))]
    total = sum(sizes)
    shares = "/".join(f"{100 * size / max(1, total):.0f}" for size in sizes)
    roles = [f"{role} {names}" for role, names in _named_columns(record).items() if names]
    rows = f"{total:,} {_EXAMPLES.get(task['name'], 'examples')}"
    by = "".join(f" by {task[name]}" for name in ("split_by", "split_by_date") if task.get(name))
    fold = "" if record.fold is None else f"{record.folds} folds" if pooled else f"fold {record.fold} of {record.folds}"
    parts = f"{fold}{by}, {'each ' * pooled}{shares}" if fold else f"split {shares}{by}"
    return one_line(" · ".join([record.title, rows, *roles, parts, f"seed {record.seed}"]))


def fold_words(record: RunRecord) -> str:
    """What to know before predicting with the model of a fold; empty for other runs."""
    if record.fold is None:
        return ""
    return f"This is the model of fold {record.fold} of {record.folds}, made to be tested; to predict, train without --folds."


def pooled_words(folds: int) -> str:
    """What the numbers of folds are, in a sentence."""
    return (
        f"Pooled over {folds} folds: every row is tested once, by the model of the fold that did not train on it, with that fold's "
        "own epoch and threshold; hits and sizes of groups are added."
    )


def _named_columns(record: RunRecord) -> dict[str, str]:
    """The columns of label and groups as the user named them; none for a benchmark or a task in memory."""
    task = record.plan["task"]
    if "groups" not in task:
        return {}
    return {"label": task["label"], "groups": ", ".join(task["groups"])}


def learner_words(record: RunRecord) -> str:
    """What was trained: boosted trees, or a net and its name."""
    name = record.plan["net"]["name"]
    return _BOOSTED.get(name, f"net {record.net or name}")


def stage_words(record: RunRecord, summary: Summary) -> str:
    """How much of the training ``summary`` is of: an epoch, or so many trees; empty where it is all there is."""
    epochs, trees = record.counts["val"].epochs, record.plan["net"].get("trees")
    if epochs == 1 or summary.epoch is None:
        return ""
    if trees is not None:
        return f"{trees * (summary.epoch + 1)} of {trees * epochs} trees"
    return f"epoch {summary.epoch + 1} of {epochs}"


def selected_words(record: RunRecord, summary: Summary) -> str:
    """What was chosen on validation, in one sentence: the method or its settings, the epoch or trees, the threshold."""
    choices, candidates = record.choices, record.choices.get("candidates", [])
    of = f"Chosen of {counted(len(candidates), 'candidate')} on validation" if candidates else "Chosen on validation"
    if "frontier" in choices and candidates[0]["score"] is None:
        of = f"All {counted(len(candidates), 'candidate')} cost too much accuracy on validation, so this was trained"
    what = [stage_words(record, summary) if summary.select != "last" else "", _threshold(record, summary)]
    if record.method == "best":
        ordinary = choices["method"] == PLAIN
        what = [learner_words(record), "ordinary training" if ordinary else KINDS[choices["method"]], *what]
    else:
        what = [*_settings(choices), *what]
    said = ", ".join(filter(None, what))
    return f"{of}: {said}." if said else ""


def _threshold(record: RunRecord, summary: Summary) -> str:
    if not summary.biases or not (any(summary.biases.values()) or summary.calibrated):
        return ""
    if summary.threshold is None:
        return "biases of the classes" if any(summary.biases.values()) else ""
    return f"threshold {threshold_text(summary.threshold)} for {class_title(record, record.classes[1])}"


def candidate_words(record: RunRecord) -> str:
    """The best candidate of every kind with the score that decided, in a line; empty where a method was named."""
    candidates = record.choices.get("candidates", [])
    if record.method != "best" or not candidates:
        return ""
    scores: dict[str, float | None] = {}
    for one in candidates:  # the best first
        method = one["candidate"].split(" ")[0]
        kind = KINDS[method] + (THRESHOLD if method == PLAIN and record.threshold == "tuned" else "")
        scores.setdefault(kind, one["score"])
    of = "worst validation group, small groups pulled towards their class"
    if not record.counts["val"].groups_choose:
        of = "on validation, two fifths the worst class, three fifths the average"
    of += "; as heads on frozen features" if "compared" in record.choices else ""
    shown = [f"{kind} {'costs too much' if score is None else f'{100 * score:.1f}'}" for kind, score in scores.items()]
    return f"{' · '.join(shown)}   (%, {of})"


def column_words(record: RunRecord) -> str:
    """How many columns of a table were read as what; empty for other data."""
    types = record.column_types
    if not types:
        return ""
    names = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts"}
    left_out = f"; constant and left out: {types['constant']}" if "constant" in types else ""
    return f"Columns read as {', '.join(f'{word}: {types.get(name, 0)}' for name, word in names.items())}{left_out}."


def choice_words(record: RunRecord, summary: Summary) -> str:
    """How ``summary`` decides classes and what the worst group is without that; empty where argmax was asked for."""
    if record.threshold == "off" or summary.select not in THRESHOLD_RULES:
        return ""
    plain = "The class with the largest logit is predicted"
    if summary.threshold is not None:
        plain = f"Threshold {threshold_text(summary.threshold)}"
    if summary.biases is None:
        return f"{plain} (others not tried: too many groups or classes)."
    if not any(summary.biases.values()):
        return f"{plain}: no other was better on validation."
    if summary.threshold is not None:
        chosen = f"{plain} for {class_title(record, record.classes[1])}"
    else:
        shown = [f"{quoted(name)} {_signed(bias)}" for name, bias in summary.biases.items() if bias][:_MOST_BIASES]
        chosen = f"Added to the logits before the largest is predicted: {', '.join(shown)}"
        chosen += ", …" if len(summary.biases) > _MOST_BIASES else ""
    worst, kind = lowest(record.summary(summary.select, "off")), "group" if record.groups else "class"
    return f"{chosen}, chosen on validation; without it the worst {kind} is at {100 * worst:.1f} %."


def calibration_words(record: RunRecord, summary: Summary) -> str:
    """Whether probabilities are calibrated, what that makes of the threshold, and why not where they are not."""
    if not summary.calibrated:
        sizes = record.counts["val"].class_sizes
        if not record.plan.get("evaluation", {}).get("calibrate", True):
            why = "evaluation.calibrate is false"
        elif enough_examples(sizes):
            why = "some logits of validation are not finite"
        else:
            why = (
                f"{MIN_EXAMPLES} validation examples and {MIN_CLASS} of every class are needed, and there are {int(sizes.sum())}, "
                f"{int(sizes.min())} of the rarest class"
            )
        return f"Probabilities are not calibrated: {why}."
    if summary.threshold is None:
        return "Probabilities are calibrated on validation. Labels are decided without that, by the logits."
    raw = Calibration.none(2).threshold(list((summary.biases or dict.fromkeys(record.classes, 0.0)).values()))
    return (
        f"Probabilities are calibrated on validation, and so is the threshold: {threshold_text(summary.threshold)}, which was "
        f"{threshold_text(raw)} before and decides the same."
    )


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
    chosen, reason = ", ".join(_settings(decided)), decided.get("reason")
    return "; ".join([f"Chosen: {chosen}" + (f" ({reason})" if reason else "")] * bool(chosen) + findings)


def _settings(decided: Mapping[str, object]) -> list[str]:
    """The settings that were left open, with their values."""
    found = {name: value for name, value in decided.items() if name != "reason" and not isinstance(value, dict | list)}
    return [f"{name}={value}" for name, value in found.items()]


def command(record: RunRecord) -> str:
    """The ``umix run`` that makes this record."""
    words = ["umix", "run", record.task, record.method, "--seed", str(record.seed)]
    words += [] if record.preset == "default" else ["--preset", record.preset]
    for key, value in record.settings.items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)
