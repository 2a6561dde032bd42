"""Reads the trials of an Optuna study, and writes the best settings as a preset."""

import math
import time
from typing import TYPE_CHECKING, Literal

from umix.bench.search.optuna_study import failure_message, importances, is_start
from umix.bench.search.search_plan import Search
from umix.bench.search.search_result import SearchResult, Trial
from umix.bench.spec.plan import setting_tables
from umix.bench.spec.presets import write_preset
from umix.errors import Setting, UserError
from umix.version import __version__

if TYPE_CHECKING:
    import optuna


def completed_values(study: "optuna.Study") -> list[float]:
    """The values of all complete trials."""
    return [trial.value for trial in all_trials(study) if trial.value is not None]


def all_trials(study: "optuna.Study") -> list[Trial]:
    """All trials by number, without those whose process failed for another reason than their settings."""
    states: dict[str, Literal["complete", "pruned", "failed", "running"]]
    states = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running"}
    trials = []
    for trial in study.get_trials(deepcopy=False):
        state, error = states.get(trial.state.name), failure_message(trial)
        if state is None or (state == "failed" and error is None):
            continue
        value = trial.value if state == "complete" else None
        drawn = dict(trial.user_attrs.get("settings", {}))
        trials.append(Trial(trial.number, state, value, drawn, is_start(trial), error))
    return trials


def _check_settings(search: Search, trial: Trial) -> None:
    """Raise UserError if a stored trial has settings that the search cannot have drawn: a database may come from anywhere."""
    for key in {**search.space, **trial.settings}:
        known = search.space.get(key)
        if known is None or key not in trial.settings or not known.allows(trial.settings[key]):
            raise UserError(
                f"The study {search.name!r} must hold trials of this search, but trial {trial.number} has "
                f"{key}={trial.settings.get(key)!r}; choose another ",
                Setting("name"),
                ".",
            )


def make_result(search: Search, study: "optuna.Study") -> SearchResult:
    """The result of ``search``; its best settings are also written as a preset file."""
    trials = all_trials(study)
    order = sorted(trials, key=lambda trial: (-math.inf if trial.value is None else trial.value, -trial.number))[::-1]
    best, first = order[0], next((trial for trial in trials if trial.start and trial.value is not None), None)
    _check_settings(search, best)
    best_settings = {**search.shared, **best.settings}
    path = search.out / f"tuned-{search.name}.toml"
    select = study.get_trials(deepcopy=False)[best.number].user_attrs["select"]
    counts = {state: sum(trial.state == state for trial in trials) for state in ("complete", "pruned", "failed")}
    value = best.value if best.value is not None else math.nan
    default = None if first is None else first.value
    notes = [
        f"{search.base.method} on {search.base.plan.source.title}: the best of {len(trials)} trials on validation ({__version__}).",
        f"Chosen by --select {select}, mean over seeds {', '.join(map(str, search.seeds))}: {value:.4f}"
        + ("." if default is None else f"; the settings it started from: {default:.4f}."),
        f"Trials that ended {counts['complete']}, cut short {counts['pruned']}, failed {counts['failed']}; "
        f"searched: {', '.join(search.space)}.",
        f"{time.strftime('%Y-%m-%d')}; use it with: umix run TASK {search.base.method} --preset {path.name}",
    ]
    base = search.base
    settings = {**base.settings, **best_settings}
    tables = setting_tables(base.task, base.method, settings, preset_name=base.preset, trust_code=base.trust_code)
    write_preset(path, "tuned", tables, notes=notes)
    return SearchResult(
        task=base.task,
        method=base.method,
        name=search.name,
        select=select,
        seeds=search.seeds,
        value=value,
        default=default,
        settings=best_settings,
        trials=tuple(order),
        importances=importances(study),
        preset=path,
    )
