"""Runs one after the other, in this process."""

from collections import deque
from collections.abc import Generator, Sequence
from typing import final

from umix.bench.executors.execute_one import execute_one
from umix.bench.executors.outcome import OnEvent, Outcome
from umix.bench.runs.places import Places
from umix.bench.spec.run_spec import RunSpec


@final
class Serial:
    """One run at a time; runs that another process is executing come last, when they have probably finished."""

    workers = 1

    def run(self, specs: Sequence[RunSpec], places: Places, on_event: OnEvent) -> Generator[Outcome, None, None]:
        waiting = deque((spec, False) for spec in specs)
        while waiting:
            spec, wait = waiting.popleft()
            outcome = execute_one(spec, places, on_event, wait=wait)
            if outcome.busy:
                waiting.append((spec, True))
            else:
                yield outcome
