"""``umix bench --tune``: progress and results of the searches before a study's runs."""

from typing import TYPE_CHECKING

from umix.terminal import ERR, Bars

if TYPE_CHECKING:
    from umix.bench.executors.outcome import Event
    from umix.bench.executors.processes import Processes
    from umix.bench.study.study_plan import StudyPlan


def tuned_plan(
    study_plan: "StudyPlan",
    *,
    trials: int,
    select: str | None,
    workers: "Processes | None",
    quiet: bool,
) -> "StudyPlan":
    """The plan with the best settings of a search per method, all with the same budget; prints each result."""
    from umix.api.study import tune_study
    from umix.bench.study.study_search import search_jobs
    from umix.reports.tables.search_table import score_text

    done: dict[str, int] = {}
    with Bars(
        runs=max(2, trials * len(search_jobs(study_plan.grid, trials=trials, select=select))),
        quiet=quiet,
        what="trials",
    ) as bars:

        def on_event(event: "Event") -> None:
            if event.kind == "note":
                bars.note(f"{event.key}: {event.message}")
                return
            done[event.key] = event.done
            bars.label = event.stage
            bars.update_runs(", ".join(filter(None, (event.key, event.message))), done=sum(done.values()))

        plan, results = tune_study(
            study_plan, trials=trials, select=select, workers=workers, progress=bars, on_event=on_event
        )
    for result in results:
        settings = ", ".join(f"{key}={value}" for key, value in result.settings.items())
        if not quiet:
            ERR.print(
                f"{result.method} on {result.task}: validation {score_text(result.default)} → {score_text(result.value)} with "
                f"{settings}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    return plan
