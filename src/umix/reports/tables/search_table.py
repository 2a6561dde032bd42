"""What a search found, as people and programs read it."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from umix.bench.search.search_result import SearchResult
from umix.reports.sentences import RULE_WORDS


def tuning_table(tuned: SearchResult, *, best: int = 5) -> Table:
    """The best trials: their settings and their validation score, which is a rate, in percent where it lies in [0, 1]."""
    keys = list(tuned.trials[0].settings)
    seeds = f"seed{'s' * (len(tuned.seeds) > 1)} {', '.join(map(str, tuned.seeds))}"
    by = RULE_WORDS.get(tuned.select, tuned.select)
    title = f"{tuned.method} on {tuned.task}: best trials on validation by {by}, %, {seeds}"
    table = Table(title=escape(title), title_justify="left")
    for name in ("trial", *keys, "validation"):
        table.add_column(escape(name), justify="right")
    for trial in [trial for trial in tuned.trials if trial.value is not None][:best]:
        name = f"{trial.number} (start)" if trial.start else str(trial.number)
        table.add_row(name, *(escape(str(trial.settings[key])) for key in keys), score_text(trial.value))
    return table


def score_text(value: float | None) -> str:
    """A rate in percent; a score that is none (a loss, a difference) as it is.

    >>> score_text(0.8434), score_text(-0.25)
    ('84.3', '-0.250')
    """
    if value is None:
        return ""
    return f"{100 * value:.1f}" if 0 <= value <= 1 else f"{value:.3f}"


def tuning_json(tuned: SearchResult) -> dict[str, Any]:
    """Everything the search found; validation only, like the search."""
    return {
        "task": tuned.task,
        "method": tuned.method,
        "study": tuned.name,
        "select": tuned.select,
        "seeds": list(tuned.seeds),
        "validation": tuned.value,
        "validation_of_start": tuned.default,
        "settings": tuned.settings,
        "importances": tuned.importances,
        "preset": str(tuned.preset),
        "trials": [
            {
                "number": trial.number,
                "state": trial.state,
                "validation": trial.value,
                "settings": trial.settings,
                "start": trial.start,
                "error": trial.error,
            }
            for trial in tuned.trials
        ],
    }
