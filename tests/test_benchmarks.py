"""The scripts that measure umix."""

import argparse
import importlib
import json
import os
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

from umix.core.statistics import wilson
from umix.data.registry import load_task
from umix.methods import METHODS

FOLDER = Path(__file__).parents[1] / "benchmarks"


def test_every_benchmark_finds_what_it_imports(start_program: Callable[..., BaseProcess], tmp_path: Path) -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert {"loop", "race", "real", "study"} <= set(names)
    program = "import importlib, sys; sys.path.insert(0, folder); [importlib.import_module(name) for name in names]"
    process = start_program(program, output=tmp_path / "said", folder=str(FOLDER), names=names)
    process.join()
    assert process.exitcode == 0, (tmp_path / "said.err").read_text()


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("real")


def rates(worst: float, average: float) -> dict[str, float]:
    return {"worst": worst, "worst ±": 0.0, "average": average}


def result(erm: float, ours: float, reference: tuple[float, float]) -> dict[str, Any]:
    erm_by_groups, robust = reference
    return {
        "reference": {"erm": rates(erm_by_groups, 0.9), "group_dro": rates(robust, 0.8)},
        "uses": {"nothing": {"erm": rates(erm, 0.9), "umix": rates(ours, 0.85)}},
    }


def test_the_share_of_the_gain_is_a_ratio_of_sums_over_sets(real: ModuleType) -> None:
    results = {
        "adult, sex": result(0.5, 0.7, (0.6, 0.8)),
        "compas, sex": result(0.4, 0.38, (0.4, 0.6)),
        "adult, race": result(0.1, 0.9, (0.1, 0.2)),  # shown, but not in the sums
    }
    found = real.gain(results, "nothing", "umix")
    assert found.share == pytest.approx((0.2 - 0.02) / (0.2 + 0.2))
    assert found.lowest_share == pytest.approx(-0.02 / 0.2)  # with the first set left out
    assert (found.lowest_set, found.sets) == ("compas, sex", 2)
    assert found.lowest == pytest.approx(-0.02)
    assert found.average == pytest.approx(-0.05)
    assert real.reference_gain(results).share == pytest.approx(1)
    assert real.gain(results, "nothing", "best") is None


def test_a_task_with_few_known_groups_blanks_those_of_other_validation_rows_only(real: ModuleType) -> None:
    task = load_task("colored_digits")
    few = real.with_known(task, 100, seed=0)
    known = few.splits["val"].groups.codes >= 0
    assert int(known.sum()) == 100
    assert torch.equal(few.splits["val"].groups.codes[known], task.splits["val"].groups.codes[known])
    assert few.splits["train"] is task.splits["train"]
    assert few.splits["test"] is task.splits["test"]
    assert few.source is None
    more = real.with_known(task, 200, seed=0).splits["val"].groups.codes >= 0
    assert bool(more[known].all())


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("methods")


def test_every_method_has_a_row_where_it_can_be_used_and_nowhere_else(methods: ModuleType) -> None:
    rows = methods.entries(METHODS.own)
    uses = {name: {row.use for row in rows if row.method == name} for name in METHODS.own}
    assert all(uses.values())
    assert uses["umix"] == uses["xrm"] == {"nothing", "validation"}
    assert uses["dfr"] == uses["ssa"] == {"validation"}
    assert uses["irm"] == uses["pde"] == {"training"}
    assert uses["best"] == uses["reweight"] == {"nothing", "validation", "training"}


def test_runs_that_no_group_touches_are_shared_by_both_uses_of_validation(methods: ModuleType) -> None:
    shared = {row.method for row in methods.entries(METHODS.own) if methods.allowed(row) != methods.ALLOWED[row.use]}
    assert {"erm", "xrm", "afr", "reweight"} <= shared
    assert not {"best", "umix", "evals", "dfr", "ssa", "group_dro"} & shared  # they may look at validation groups


def test_the_first_trial_is_the_defaults_and_all_trials_are_legal(methods: ModuleType) -> None:
    for name in METHODS.own:
        first, *drawn = methods.trials_of(name, "adult, sex", 4)
        assert first == {}
        for settings in drawn:
            METHODS[name](**{key.removeprefix(f"{name}."): value for key, value in settings.items()})
    assert methods.trials_of("umix", "four_moons", 1)[0]["umix.eta"] == 20  # not that of the task's tuned preset


def one_row(worst: float, default: float, spread: float = 0.0) -> dict[str, Any]:
    return {"worst": worst, "worst ±": spread, "average": 0.9, "default": {"worst": default, "average": 0.9}}


def test_who_beats_umix_does_so_by_a_point_and_a_standard_error(methods: ModuleType) -> None:
    rows = {
        "umix": one_row(0.7, 0.7),
        "clear": one_row(0.75, 0.75),
        "close": one_row(0.705, 0.7),
        "noisy": one_row(0.75, 0.75, spread=0.1),
        "erm": one_row(0.6, 0.74),
        "lost": one_row(0.8, 0.70),
    }
    results = {"data": {"seeds": 2, "smallest worst group": 10_000, "tables": dict.fromkeys(methods.ALLOWED, rows)}}
    assert methods.beats_umix(results, "nothing") == ["- data: lost +10.0, clear +5.0"]
    below = "\n".join(methods.below_erm(results))
    assert "lost: data -4.0. Likely: not known." in below
    assert "umix: data -4.0" in below
    assert "clear" not in below
    results["data"]["smallest worst group"] = 100
    assert "lost: data -4.0 (within chance)" in "\n".join(methods.below_erm(results))


def test_the_overview_has_means_ranks_and_paired_intervals_over_sets(methods: ModuleType) -> None:
    tables = [
        {"erm": one_row(0.5, 0.5), "umix": one_row(0.6, 0.6)},
        {"erm": one_row(0.7, 0.7), "umix": one_row(0.6, 0.6)},
        {"erm": one_row(0.5, 0.5), "umix": one_row(0.8, 0.8)},
    ]
    results = {
        name: {"seeds": 3, "tables": dict.fromkeys(methods.ALLOWED, table)}
        for name, table in zip("abc", tables, strict=True)
    }
    gains = [-10, 10, -30]
    interval = scipy.stats.ttest_1samp(gains, 0).confidence_interval()
    erm = f"| erm | 56.7 | 90.0 | 1.7 | 1 | -10.0 [{interval.low:+.1f}, {interval.high:+.1f}] |"
    lines = methods.overview(results).splitlines()
    assert lines.count(erm) == 3
    assert lines.count("| umix | 66.7 | 90.0 | 1.3 | 2 | – |") == 3


def test_every_default_that_ends_far_below_erm_is_explained(methods: ModuleType) -> None:
    results = json.loads((FOLDER / "results" / "methods.json").read_text(encoding="utf-8"))["sets"]
    assert not [line for line in methods.below_erm(results) if "not known" in line]


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("kills")


@pytest.mark.system
def test_killed_commands_end_as_if_nothing_had_happened(kills: ModuleType, tmp_path: Path) -> None:
    before = dict(os.environ)
    tally = kills.campaign(2, 0, ["digits"], tmp_path)["digits"]
    assert dict(os.environ) == before  # Ray, which other tests of this process start, reads its folder there
    assert (tally.cases, tally.identical, tally.different) == (2, 2, [])
    assert tally.kills >= 2


def test_what_a_kill_leaves_behind_or_changes_is_found(kills: ModuleType, tmp_path: Path) -> None:
    for out, weights in (("one", b"1"), ("other", b"2")):
        (tmp_path / out).mkdir()
        (tmp_path / out / "weights.safetensors").write_bytes(weights)
    (tmp_path / "one" / "predictions.parquet").touch()
    (tmp_path / "other" / "run").mkdir()
    (tmp_path / "other" / "run" / ".record.json.1.aside").touch()
    (tmp_path / "other" / "run.lock").touch()
    assert kills.differences(*(kills.results(tmp_path / out) for out in ("one", "other")), draws=False) == [
        "missing predictions.parquet",
        "left over run/.record.json.1.aside",
        "other content weights.safetensors",
    ]


def test_the_kinds_of_few_cases_are_as_many_as_can_be(kills: ModuleType) -> None:
    assert set(kills.kinds_of(10, list(kills.KINDS))) >= set(kills.KINDS) - {"ray worker"}
    hundred = list(kills.kinds_of(100, list(kills.KINDS)))
    assert [hundred.count(name) for name in kills.KINDS] == list(kills.SHARES)


@pytest.fixture
def finetune(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("finetune")


def test_the_interval_of_a_difference_is_newcombes(finetune: ModuleType) -> None:
    def rate(hits: int, size: int) -> dict[str, Any]:
        interval = wilson(hits, size)
        return {"worst": hits / size, "interval": [interval.low, interval.high]}

    found = finetune.difference(rate(56, 70), rate(48, 80))  # the first example of Newcombe (1998), method 10
    assert found == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


def test_methods_are_compared_over_the_seeds_that_both_have(finetune: ModuleType) -> None:
    two = {"seeds": 2, "worst of seeds": [0.6, 0.2], "size": 50}
    one = {"seeds": 1, "worst of seeds": [0.4], "size": 40}
    first, second = finetune.on_common_seeds(two, one)
    assert (first["worst"], second["worst"]) == (0.6, 0.4)
    interval = wilson(30, 50)
    assert first["interval"] == pytest.approx([interval.low, interval.high])


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        ((0.2, 0.05, 0.33), "holds (+20.0"),
        ((0.02, -0.1, 0.1), "cannot be told"),
        ((-0.2, -0.3, -0.1), "does not hold"),
    ],
)
def test_a_claim_holds_where_its_interval_is_above_zero_and_fails_where_it_is_below(
    finetune: ModuleType, gain: tuple[float, float, float], words: str
) -> None:
    assert finetune.verdict(gain).startswith(words)


def test_one_learning_rate_comes_first_and_further_seeds_have_the_chosen_ones(
    finetune: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finetune, "chosen_lr", lambda runs, name, protocol: 0.1 if name == "erm" else 0.2)
    arguments = argparse.Namespace(lrs=[0.1, 0.2], seeds=2)
    jobs = [(job.name, job.lr, job.seed) for job in finetune.jobs_of({}, ["erm", "umix"], arguments)]
    first = [(name, lr, 0) for lr in (0.1, 0.2) for name in ("erm", "umix")]
    assert jobs == [*first, ("erm", 0.1, 1), ("umix", 0.2, 1)]


def test_a_run_has_the_settings_of_its_part_but_a_variant_its_own(finetune: ModuleType) -> None:
    part = finetune.Part("four_moons", {"fit.epochs": 8}, "waterbirds", of_methods=finetune.OF_TEXTS)
    plain, variant = (finetune.Job(name, 0.1, 0).spec(part).settings for name in ("umix", "umix, eta=80"))
    assert (plain["umix.eta"], variant["umix.eta"]) == (3.0, 80.0)
    assert plain["fit.lr"] == plain["trajectory.lr"] == 0.1
    assert finetune.Job("erm", 0.1, 0).spec(part).settings == {"fit.epochs": 8, "fit.lr": 0.1}


def test_methods_have_mean_ranks_and_paired_intervals_against_umix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    methods = importlib.import_module("methods")
    worst = {"umix": [0.5, 0.7, 0.6], "erm": [0.4, 0.7, 0.3], "mixup": [0.6, 0.8, 0.7]}
    results = {
        f"set {number}": {"tables": {"nothing": {name: {"worst": rates[number]} for name, rates in worst.items()}}}
        for number in range(3)
    }
    results["set 0"]["tables"]["nothing"]["jtt"] = {"worst": 0.9}  # the other sets lack it, so it has no rank
    assert methods.ranks(results, "nothing") == pytest.approx({"umix": 13 / 6, "erm": 17 / 6, "mixup": 1.0})
    gains = np.array([-10.0, 0.0, -30.0])
    interval = scipy.stats.ttest_1samp(gains, 0).confidence_interval()
    assert methods.against_umix(results, "nothing", "erm") == (
        f"{gains.mean():+.1f} [{interval.low:+.1f}, {interval.high:+.1f}]"
    )
    assert methods.against_umix(results, "nothing", "umix") == "–"
