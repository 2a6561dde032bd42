"""``umix bench --tune``: what people see of the searches before a study's runs."""

from typing import TYPE_CHECKING

from umix.terminal import ERR, Bars

if TYPE_CHECKING:
    from umix.bench.executors.outcome import Event
    from umix.bench.executors.processes import Processes
    from umix.bench.study.study_plan import StudyPlan


def tuned_plan(
    made: "StudyPlan",
    *,
    trials: int,
    select: str | None,
    workers: "Processes | None",
    quiet: bool,
) -> "StudyPlan":
    """The plan with the settings that equal searches found for all methods, each of which is shown when it is there."""
    from umix.api.study import tune_study
    from umix.bench.study.study_search import search_jobs
    from umix.reports.tables.search_table import score_text

    done: dict[str, int] = {}
    with Bars(
        runs=max(2, trials * len(search_jobs(made.grid, trials=trials, select=select))), quiet=quiet, what="trials"
    ) as bars:

        def on_event(event: "Event") -> None:
            if event.kind == "note":
                bars.note(f"{event.key}: {event.message}")
                return
            done[event.key] = event.done
            bars.label = event.stage
            bars.tell(", ".join(filter(None, (event.key, event.message))), done=sum(done.values()))

        plan, found = tune_study(made, trials=trials, select=select, workers=workers, progress=bars, on_event=on_event)
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
    return plan
