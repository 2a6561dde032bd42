"""A run whose learner is left open: every learner is trained, and the better one on validation becomes the run.

What is chosen is an ordinary run, bit for bit: it predicts, and is shown and compared, as any other.
"""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.core.epoch_counts import Counts
from umix.core.selection import RULES, best_score, choice_score, worst_size
from umix.methods.registry import METHODS
from umix.models.model import AutoNet
from umix.models.registry import net_kind

LEARNERS = "learners"  # the folder beside the runs with a run of each learner, while their run is not finished


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
    net, method = net_kind(name)[0], METHODS[spec.method]
    unused = () if "mixing" in net.offers else method.mixing_options

    def is_used(key: str, value: Any) -> bool:
        part, _, field = spec.plan.setting(key)[0].partition(".")
        if part in ("fit", *method.stages):
            return bool(net.used_fit({field: value}))
        return part != spec.method or field not in unused

    used = {key: value for key, value in settings.items() if is_used(key, value)}
    if "gradients" not in net.offers:  # nets come later
        used |= {key: used[key] / 2 for key in ("time", "best.time") if used.get(key)}
    return spec.changed({**used, "net": name})


def learner_paths(paths: RunPaths, spec: RunSpec) -> RunPaths:
    """The folders of the learners' runs: their own for ``spec``, and the caches that all runs share."""
    out = paths.out / LEARNERS / spec.directory_name
    return replace(paths, out=out, cache=paths.cache_folder, stages=paths.stages_folder)


@final
@dataclass(frozen=True, eq=False)
class LearnerChoice:
    """The record that was chosen, and the validation rates of all."""

    chosen: RunRecord
    choices: dict[str, Any]


def choose_learner(records: Sequence[RunRecord]) -> LearnerChoice:
    """The run with the best validation score, chosen by the rule that selects its epoch.

    Where the scores of two runs are closer than the standard error of the worst group or class of the better one, the average
    decides.
    """
    results = [_LearnerResult.of(record) for record in records]
    best = max(results, key=lambda one: (one.score, one.average))
    close = [one for one in results if one.score >= best.score - best.error]
    chosen = max(close, key=lambda one: (one.average, one.score))
    unit = "group" if chosen.record.rule() == "worst" else "class"
    others = ", ".join(f"{one.name} {100 * one.worst:.1f} %" for one in results if one is not chosen)
    words = f"learner {chosen.name}: worst {unit} {100 * chosen.worst:.1f} % on validation ({others})"
    if chosen is not best:
        points = 100 * (chosen.average - best.average)
        words += f", within noise of {best.name}; average {points:.1f} points better"
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
        worst = choice_score(val, "worst" if rule == "worst" else "worst_class", choice)
        error = float(np.sqrt(max(worst * (1 - worst), 0.0) / worst_size(at, rule)))
        average = float(at.all_hits[0] / max(1, at.n))
        return cls(record, -np.inf if np.isnan(score) else score, worst, average, error)


def take_over(choice: LearnerChoice, spec: RunSpec, directory: Path) -> None:
    """Make the folder of the chosen run that of the run ``spec``, ``directory``, with a record that names both."""
    as_run_of(choice, spec).save(choice.chosen.directory)  # from here on it is this run, and only has to be moved
    move_up(choice.chosen.directory, directory)


def move_up(source: Path, directory: Path) -> None:
    """Move the folder ``source`` of a finished run to ``directory``; what was left of the other learners is removed."""
    shutil.rmtree(directory, ignore_errors=True)  # the error of an earlier attempt
    source.rename(directory)
    shutil.rmtree(source.parent)
    with suppress(OSError):  # other runs are choosing too
        source.parent.parent.rmdir()


def as_run_of(choice: LearnerChoice, spec: RunSpec) -> RunRecord:
    """The record of the chosen run under the name and key of ``spec``."""
    names = {"settings": spec.settings, "key": spec.key, "preset": spec.preset, "choices": choice.choices}
    return choice.chosen.model_copy(update={**names, "asked": spec.plan.asked(choice.chosen.plan)})
