"""Records made by hand, small enough to compute every number on paper."""

from collections.abc import Callable

import pytest

from umix.bench.record import RunRecord


def make_record(
    seed: int, hits: list[int] | list[list[int]], method: str = "erm", task: str = "toy", **changes: object
) -> RunRecord:
    """A run whose test hits out of 10 per group are ``hits``, of one epoch or several; validation is like test."""
    rows = hits if isinstance(hits[0], list) else [hits]
    sizes = [10] * len(rows[0])
    counts = {"hits": rows, "sizes": sizes, "class_hits": [[sum(row)] for row in rows], "class_sizes": [sum(sizes)]}
    plan = {"task": {"name": task}, "method": {"name": method, **changes.pop("options", {})}}
    values = {
        "task": task,
        "method": method,
        "seed": seed,
        "settings": {},
        "plan": plan,
        "key": f"{task}{plan}{seed}",
        "fingerprint": "f",
        "groups": ["a", "b"],
        "classes": ["only"],
        "input_shape": [2],
        "train_sizes": [90, 10],
        "split_counts": {"val": counts, "test": counts},
        "stages": {},
        "warnings": [],
        "versions": {},
    }
    return RunRecord(**values | changes)


@pytest.fixture
def record() -> Callable[..., RunRecord]:
    return make_record


@pytest.fixture
def runs() -> dict[str, dict[str, list[RunRecord]]]:
    """Two methods on one task, two seeds: erm has the worst groups 50 and 70 %, umix 80 and 80 %."""
    erm = [make_record(0, [9, 5]), make_record(1, [9, 7])]
    umix = [make_record(0, [8, 8], "umix"), make_record(1, [8, 9], "umix")]
    return {"toy": {"erm": erm, "umix": umix}}
