"""What is refused by its size, before anything is allocated, started or looped over."""

import re
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

import umix
from umix import limits
from umix.bench.executors.processes import Processes
from umix.bench.study.study import Study, parse_seeds
from umix.cli import main
from umix.data.registry import OWN, TASKS
from umix.errors import Setting, UserError
from umix.methods.registry import METHODS
from umix.nets.registry import NETS
from umix.settings import Settings
from umix.training.engine import engine_for
from umix.training.fit_settings import FitSettings


class Sized(Settings):
    steps: int = Field(1, ge=0)
    rate: float = 0.5
    widths: tuple[Annotated[int, Field(ge=1)], ...] = ()
    window: int | str = "auto"
    seed: int = Field(0, lt=2**32)
    shares: tuple[Annotated[float, Field(le=1e15)], ...] = ()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"steps": 10**12}, "Sized.steps must be at most 1,000,000, got 1000000000000."),
        ({"steps": 10**300}, "Sized.steps must be at most 1,000,000, got"),
        ({"widths": (4, 10**9)}, "Sized.widths must be at most 1,000,000, got 1000000000."),
        ({"window": 10**9}, "Sized.window must be at most 1,000,000, got 1000000000."),
        ({"rate": -1e300}, r"Sized.rate must be at most 1,000,000,000,000, got -1e\+300."),
        ({"rate": 1e-300}, "Sized.rate must be 0 or at least 1e-12, got 1e-300."),
    ],
)
def test_a_number_that_no_run_can_use_is_refused(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Sized(**values)


def test_a_field_may_have_a_larger_bound_of_its_own() -> None:
    assert Sized(seed=2**32 - 1, shares=(1e14,)).seed == 2**32 - 1
    assert FitSettings(batch_size=10**9).batch_size == 10**9
    assert Sized(steps=10**6, rate=0.0, widths=(10**6,)).steps == 10**6


@pytest.mark.parametrize("value", [10**13, 1e300], ids=["whole", "any"])
def test_every_number_of_a_run_has_a_bound(value: float) -> None:
    kinds = [FitSettings, *NETS.own_classes.values(), *TASKS.own_classes.values(), *OWN.values()]
    for kind in [*kinds, *METHODS.own_classes.values()]:
        needed = {name: "x" for name, field in kind.model_fields.items() if field.is_required()}
        for name, field in kind.model_fields.items():
            if name not in needed and type(field.default) in (int, float):
                with pytest.raises(UserError, match=rf"{name} must be"):
                    kind(**needed, **{name: value})


@pytest.mark.parametrize("seeds", ["0:1000000000000", "0:9999999999999999999999999", "0:6000,10000:16000"])
def test_more_seeds_than_anybody_runs_are_refused_before_they_are_listed(seeds: str) -> None:
    with pytest.raises(UserError, match="Seeds must be at most 10,000"):
        parse_seeds(seeds)


def test_a_study_has_at_most_ten_thousand_runs() -> None:
    assert Study(tasks=["four_moons"], methods=["erm"], seeds="0:10000")
    with pytest.raises(UserError, match="A study must have at most 10,000 runs, got 20,000"):
        Study(tasks=["four_moons"], methods=["erm", "umix"], seeds="0:10000")
    with pytest.raises(UserError, match="A study must have at most 10,000 runs, got 10,001"):
        umix.run_study(tasks=["four_moons"], methods=["erm"], seeds=range(10**15))


def test_as_many_processes_are_started_as_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "memory", lambda: 2**33)
    assert Processes(64).workers == 64
    for start, name in ((lambda: Processes(10**6), "workers"), (lambda: engine_for(devices=10**6), "devices")):
        with pytest.raises(UserError, match=f"{name}= must be at most 64, for which this machine has the memory"):
            start()
    monkeypatch.setattr(limits, "memory", lambda: None)  # not known
    with pytest.raises(UserError, match="must be at most"):
        Processes(10**6)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "four_moons", "erm", "--set", "fit.epochs=1000000000000"], "fit.epochs must be at most 1,000,000"),
        (
            ["run", "four_moons", "erm", "--set", "net.hidden=[1000000, 1000000]"],
            "Training the net mlp .* GB of memory",
        ),
        (["run", "four_moons", "erm", "--set", "net.hidden=[1000000000000]"], "net.hidden must be at most"),
        (["run", "four_moons", "best", "--trials", "1000000000"], "--trials must be at most 100,000"),
        (["run", "four_moons", "erm", "--devices", "1000000"], "--devices must be at most"),
        (["bench", "four_moons", "--methods", "erm", "--workers", "1000000"], "--workers must be at most"),
        (["bench", "four_moons", "--methods", "erm", "--workers", "1", "--threads", "1000000"], "--threads must be at"),
        (["bench", "four_moons", "--methods", "erm", "--seeds", "0:1000000000000"], "Seeds must be at most 10,000"),
        (["demo", "--seeds", "1000000000000"], "--seeds must be at most 10,000"),
        (["theory", "--seeds", "1000000000000"], r"Design.seeds must be a whole number in \[2, 10000\]"),
    ],
)
def test_commands_refuse_what_does_not_fit_on_a_machine_or_into_a_lifetime(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert re.match(f"umix: {sentence}", " ".join(capsys.readouterr().err.split()))


def test_memory_is_that_of_the_machine_or_less(monkeypatch: pytest.MonkeyPatch) -> None:
    known = limits.memory()
    assert known is None or known > 2**28
    monkeypatch.setattr(limits, "memory", lambda: 10**9)
    limits.require_memory(10**9, "It takes", "make it smaller")
    with pytest.raises(UserError, match=r"It takes 2\.0 GB of memory, but there are 1\.0 GB; give less with eta=\."):
        limits.require_memory(2 * 10**9, "It takes", "give less with ", Setting("eta"))
