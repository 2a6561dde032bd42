"""Records made by hand, small enough to compute every number on paper."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest
from safetensors.numpy import save_file

from umix.bench.runs.record import RunRecord
from umix.run_folder import PREDICTIONS


def make_record(
    seed: int, hits: list[int] | list[list[int]], method: str = "erm", task: str = "toy", **changes: object
) -> RunRecord:
    """A run whose test hits out of 10 per group are ``hits``, of one epoch or several; validation is like test.

    Runs with the same ``losses`` on validation are the same fit, where they have any.
    """
    rows = hits if isinstance(hits[0], list) else [hits]
    sizes = [10] * len(rows[0])
    counts = {"hits": rows, "sizes": sizes, "class_hits": [[sum(row)] for row in rows], "class_sizes": [sum(sizes)]}
    losses = {"tail_losses": changes.pop("losses", [])}
    parts = {"task": {"name": task}, "method": {"name": method, **changes.pop("options", {})}}
    plan = {**parts, "net": {"name": "mlp"}}
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
        "split_counts": {"val": counts | losses, "test": counts},
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


#: What no page may run.
SCRIPT = "<script>alert(1)</script>"
GROUPS = ["common", SCRIPT, "rare & <b>"]
EPOCHS = 6


def make_study(folder: Path, *, n: int = 400, seeds: int = 2, groups: bool = True) -> list[RunRecord]:
    """ERM and umix over seeds; umix knows its ``n`` training examples, of which the last tenth are rare and often wrong."""
    records = []
    for seed in range(seeds):
        for method, lift in (("erm", 0), ("umix", 20)):
            record = _hostile_record(method, seed, lift, n, groups=groups)
            record.save(folder / f"toy-{method}-seed{seed}")
            if method == "umix":
                _examples(record.directory, n, seed, groups=groups)
            _predictions(record.directory, seed, wrong=0.3 if method == "erm" else 0.2, groups=groups)
            records.append(record)
    return records


def _hostile_record(method: str, seed: int, lift: int, n: int, *, groups: bool) -> RunRecord:
    sizes = [100, 40, 40]
    hits = [[90, 10 + seed + lift // 2 + epoch, 12 + lift // 2 + epoch] for epoch in range(EPOCHS)]
    classes = [[sum(row) // 2, sum(row) - sum(row) // 2] for row in hits]
    counts = {
        "hits": hits if groups else [[] for _ in hits],
        "sizes": sizes if groups else [],
        "class_hits": classes,
        "class_sizes": [90, 90],
    }
    return RunRecord(
        task="toy",
        method=method,
        seed=seed,
        settings={"eta": 5.0} if method == "umix" else {},
        plan={"task": {"name": "toy"}, "method": {"name": method}, "net": {"name": "mlp"}},
        key=f"{method}{seed}",
        fingerprint="f",
        groups=GROUPS if groups else [],
        classes=["no", f"yes {SCRIPT}"],
        input_shape=[2],
        train_sizes=[n - 2 * (n // 20), n // 20, n // 20] if groups else [],
        split_counts={"val": counts, "test": counts},
        stages={},
        warnings=[f"Something about {SCRIPT}."] if method == "umix" else [],
        versions={"umix": "1", "torch": "2"},
    )


def _examples(folder: Path, n: int, seed: int, *, groups: bool) -> None:
    rng = np.random.default_rng(seed)
    small = n // 20
    group = np.repeat([0, 1, 2], [n - 2 * small, small, small]).astype(np.int32)
    wrong = rng.random((EPOCHS, n)) < np.where(group == 0, 0.1, 0.8)
    label = (np.arange(n) % 2).astype(np.int64)
    u = wrong.mean(axis=0).astype(np.float32)
    _save(folder / "examples.safetensors", "examples", uncertainty=u, weight=1 + 5 * u, label=label)
    bits = {"correct": np.packbits(~wrong, axis=1), "visited": np.packbits(np.ones_like(wrong), axis=1)}
    _save(folder / "trajectory.safetensors", "trajectory", n=str(n), fingerprint="f", **bits)
    index = np.sort(np.argsort(-u, kind="stable")[: min(n, 120)])
    features = rng.normal(size=(len(index), 8)).astype(np.float16) + 6 * (label[index, None] == 1)
    closer = {"index": index, "features": features.astype(np.float16), "correct": ~wrong[-1, index]}
    _save(folder / "closer.safetensors", "closer", **closer, x=rng.random((len(index), 3, 6, 6)).astype(np.float32))
    columns = {"label": label.astype(np.int32)} | ({"group": group} if groups else {})
    polars.DataFrame(columns).write_parquet(folder / "training.parquet")


def _predictions(folder: Path, seed: int, *, wrong: float, groups: bool) -> None:
    """Validation and test examples of the sizes in the records; a share ``wrong`` of them is."""
    group = np.tile(np.repeat([0, 1, 2], [100, 40, 40]), 2)
    label = np.arange(len(group)) % 2
    mistaken = np.random.default_rng([seed, int(100 * wrong)]).random(len(group)) < wrong
    write_predictions(
        folder,
        label=label,
        prediction=np.where(mistaken, 1 - label, label),
        split=np.repeat(["val", "test"], 180),
        classes=2,
        **({"group": group} if groups else {}),
    )


def write_predictions(
    folder: Path,
    *,
    label: np.ndarray,
    prediction: np.ndarray,
    split: np.ndarray,
    classes: int,
    confidence: np.ndarray | None = None,
    **more: np.ndarray,
) -> None:
    """``predictions.parquet`` as runs write it; ``more`` are columns such as group, row and file."""
    folder.mkdir(parents=True, exist_ok=True)
    sure = np.full(len(label), 0.9) if confidence is None else confidence
    rest = (1 - sure) / max(1, classes - 1)
    columns = {
        "split": split,
        "label": label.astype(np.int32),
        "prediction": prediction.astype(np.int32),
        "confidence": sure.astype(np.float32),
        **{f"p {k}": np.where(prediction == k, sure, rest).astype(np.float32) for k in range(classes)},
        **{name: values.astype(np.int32) if name == "group" else values for name, values in more.items()},
    }
    polars.DataFrame(columns).write_parquet(folder / PREDICTIONS)


def _save(path: Path, kind: str, **content: np.ndarray | str) -> None:
    texts = {name: value for name, value in content.items() if isinstance(value, str)}
    arrays = {name: np.ascontiguousarray(value) for name, value in content.items() if not isinstance(value, str)}
    save_file(arrays, path, metadata={"umix": json.dumps({"kind": kind, **texts})})


@pytest.fixture(scope="session")
def study() -> Callable[..., list[RunRecord]]:
    """Writes a study into a folder."""
    return make_study


@pytest.fixture(scope="session")
def predicted() -> Callable[..., None]:
    """Writes the predictions of a run into its folder."""
    return write_predictions
