"""Runs one after the other, in this process."""

from collections import deque
from collections.abc import Generator, Sequence
from typing import final

from umix.bench.executors.attempt import attempt
from umix.bench.executors.outcome import OnEvent, Outcome
from umix.bench.runs.places import Places
from umix.bench.spec.run_spec import RunSpec


@final
class Serial:
    """One run at a time; those that another process is executing come last, when it has probably finished them."""

    workers = 1

    def run(self, specs: Sequence[RunSpec], places: Places, on_event: OnEvent) -> Generator[Outcome, None, None]:
        waiting = deque((spec, False) for spec in specs)
        while waiting:
            spec, wait = waiting.popleft()
            outcome = attempt(spec, places, on_event, wait=wait)
            if outcome.busy:
                waiting.append((spec, True))
            else:
                yield outcome
