"""A run whose learner is left open: a run of each learner, and the better of them on validation.

The run that is chosen is an ordinary one, bit for bit. Its files become those of the run that left the learner open, so that it
predicts, and is shown and compared, as any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.core.epoch_counts import Counts
from umix.core.selection import RULES, best_score, worst_size
from umix.methods.registry import METHODS
from umix.nets.net import AutoNet
from umix.nets.registry import net_kind
from umix.run_folder import RECORD
from umix.store import atomic_write

LEARNERS = "learners"  # the folder beside the runs with a run of each learner


def learner_specs(spec: RunSpec) -> tuple[RunSpec, ...]:
    """A spec for each learner that ``spec`` leaves open; ``spec`` itself where it names one.

    Settings of gradient steps and of mixing are for nets only.
    """
    net = spec.plan.net
    return tuple(_with_learner(spec, name) for name in net.among) if isinstance(net, AutoNet) else (spec,)


def _with_learner(spec: RunSpec, name: str) -> RunSpec:
    settings = {
        key: value for key, value in spec.settings.items() if key not in ("net", "net.name", "net.among", "among")
    }
    if not net_kind(name)[0].by_gradients:
        steps, mixing = {"fit", *METHODS[spec.method].stages}, METHODS[spec.method].for_nets_only
        parts = {key: spec.plan.setting(key)[0].split(".") for key in settings}
        settings = {
            key: value
            for key, value in settings.items()
            if (parts[key][0] not in steps or parts[key][1] == "epochs")
            and not (parts[key][0] == spec.method and parts[key][1] in mixing)
        }
        settings |= {key: settings[key] / 2 for key in ("time", "best.time") if settings.get(key)}  # nets come later
    return spec.changed({**settings, "net": name})


def learner_paths(paths: RunPaths) -> RunPaths:
    """The folders of the learners' runs: their own below ``out``, and the caches that all runs share."""
    return replace(paths, out=paths.out / LEARNERS, cache=paths.cache_folder, stages=paths.stages_folder)


@final
@dataclass(frozen=True, eq=False)
class LearnerChoice:
    """The record that was chosen, and the validation rates of all."""

    chosen: RunRecord
    choices: dict[str, Any]


def choose_learner(records: Sequence[RunRecord]) -> LearnerChoice:
    """The run with the best validation score, chosen by the rule that selects its epoch.

    Where the scores of two runs are closer than the standard error of the better one, the average decides.
    """
    results = [_LearnerResult.of(record) for record in records]
    best = max(results, key=lambda one: (one.score, one.average))
    close = [one for one in results if one.score >= best.score - best.error]
    chosen = max(close, key=lambda one: (one.average, one.score))
    unit = "group" if chosen.record.rule() == "worst" else "class"
    reached = ", ".join(f"{one.name} {one.worst:.1%} and {one.average:.1%}" for one in results)
    words = f"the learner is {chosen.name}: on validation the worst {unit} and the average are {reached}"
    if chosen is not best:
        words += f"; the worst rates are within a standard error ({best.error:.1%}), so the average decides"
    rows = [{"learner": one.name, "worst": round(one.worst, 4), "average": round(one.average, 4)} for one in results]
    learner = {"learner": {"name": chosen.name, "candidates": rows, "words": words}} if len(results) > 1 else {}
    return LearnerChoice(chosen.record, {**chosen.record.choices, **learner})


def better_counts(finished: Sequence[RunRecord], val: Counts) -> Counts:
    """The validation counts of the learner that is ahead: of a ``finished`` run, or ``val``, of the run that is trained now."""
    if not finished:
        return val
    ahead = max((_LearnerResult.of(record) for record in finished), key=lambda one: one.score)
    rule = ahead.record.rule()
    reached = best_score(val, rule) if ahead.record.threshold == "tuned" else RULES[rule](val).max()
    return val if reached > ahead.score else ahead.record.threshold_counts["val"]


@final
@dataclass(frozen=True, eq=False)
class _LearnerResult:
    """What a run reached on validation at its own choice of epoch and threshold."""

    record: RunRecord
    score: float
    worst: float
    average: float
    error: float

    @property
    def name(self) -> str:
        return self.record.net

    @classmethod
    def of(cls, record: RunRecord) -> "_LearnerResult":
        rule, val = record.rule(), record.threshold_counts["val"]
        if not record.has(rule):
            return cls(record, -np.inf, np.nan, -np.inf, 0.0)
        choice = record.choice()
        at = val.at_threshold(choice.threshold).only([choice.epoch])
        score = best_score(val, rule) if record.threshold == "tuned" else record.validation_score()
        worst = record.validation_score()
        error = float(np.sqrt(max(worst * (1 - worst), 0.0) / worst_size(at, rule)))
        average = float(at.all_hits[0] / max(1, at.n))
        return cls(record, -np.inf if np.isnan(score) else score, worst, average, error)


def take_over(choice: LearnerChoice, spec: RunSpec, directory: Path) -> RunRecord:
    """The chosen run as the run ``spec`` in ``directory``: its files, and a record that names both; the record comes last."""
    source = choice.chosen.directory
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.name != RECORD and not path.name.startswith("."):
            target = directory / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "rb") as file:
                atomic_write(target, file.read())
    record = as_run_of(choice, spec)
    record.save(directory)
    return record


def as_run_of(choice: LearnerChoice, spec: RunSpec) -> RunRecord:
    """The record of the chosen run under the name and key of ``spec``."""
    names = {"settings": spec.settings, "key": spec.key, "preset": spec.preset, "choices": choice.choices}
    return choice.chosen.model_copy(update={**names, "asked": spec.plan.asked(choice.chosen.plan)})
