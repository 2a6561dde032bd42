"""``umix bench --tune``: what people see of the searches before a study's runs."""

from typing import TYPE_CHECKING, Any

from umix.commands.study_plan import StudyPlan
from umix.terminal import ERR, Bars

if TYPE_CHECKING:
    from umix.bench.search import News


def tuned_plan(made: StudyPlan, *, trials: int, select: str | None, options: dict[str, Any], quiet: bool) -> StudyPlan:
    """The plan with the settings that equal searches found for all methods, each of which is shown when it is there."""
    from umix.bench.grid_search import search_grid
    from umix.report.tuning import score_text

    with Bars(runs=max(trials, 2), quiet=quiet, what="trials") as bars:

        def watch(label: str, news: "News") -> None:
            best = "" if news.best is None else f", best {score_text(news.best)}"
            bars.label = f"trial {news.trial}"
            bars.tell(f"{label}{best}", done=news.done)

        grid, found = search_grid(
            made.grid, trials=trials, out=made.out, select=select, places=options, progress=bars, watch=watch
        )
    for tuned in found:
        settings = ", ".join(f"{key}={value}" for key, value in tuned.settings.items())
        if not quiet:
            ERR.print(
                f"{tuned.method} on {tuned.task}: validation {score_text(tuned.default)} → {score_text(tuned.value)} with "
                f"{settings}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    return StudyPlan.of(grid, made.out)
