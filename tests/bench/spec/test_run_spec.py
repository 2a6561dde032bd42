"""Specs, plans and presets."""

import pickle
from pathlib import Path

import pytest

from umix.bench.spec.run_spec import RunSpec
from umix.errors import UserError


def spec(method: str = "umix", seed: int = 0, **settings: object) -> RunSpec:
    return RunSpec(task="four_moons", method=method, settings=settings, seed=seed)


def test_spelling_a_default_out_does_not_change_the_key() -> None:
    assert spec().key == spec(c=1.0).key == spec(**{"umix.c": 1, "fit.momentum": 0.9}).key


@pytest.mark.parametrize(
    "other",
    [
        spec(seed=1),
        spec(eta=3),
        spec(lr=0.3),
        spec(hidden=[8]),
        spec(noise=0.3),
        spec("erm"),
        spec(**{"trajectory.lr": 1}),
    ],
    ids=["seed", "method setting", "fit", "net", "task", "method", "stage"],
)
def test_whatever_changes_the_numbers_changes_the_key(other: RunSpec) -> None:
    assert other.key != spec().key


@pytest.mark.parametrize("method", ["cvar_dro", "group_dro", "irm", "lisa", "dfr"])
def test_weights_are_refused_in_the_plan_of_a_method_that_would_ignore_them(tmp_path: Path, method: str) -> None:
    (tmp_path / "people.csv").write_text("x,count,y\n1,2,a\n")
    settings = {"label": "y", "task.weight": "count"}
    with pytest.raises(UserError, match=f"weight= must be left out for {method}: .* erm, .* can do it"):
        RunSpec(task=str(tmp_path / "people.csv"), method=method, settings=settings)
    assert RunSpec(task=str(tmp_path / "people.csv"), method="umix", settings=settings).plan.source.weight == "count"


def test_stage_settings_of_another_method_do_not_change_the_key() -> None:
    with pytest.raises(UserError, match=r"Unknown setting of erm 'trajectory\.lr'"):
        spec("erm", **{"trajectory.lr": 1})


def test_settings_override_the_preset_and_defaults_fill_the_rest() -> None:
    plan = spec(sigma=0.25, epochs=3).plan
    assert (plan.method.sigma, plan.method.c, plan.fit.epochs, plan.net.hidden) == (0.25, 1.0, 3, (64, 64))


def test_another_net_drops_the_presets_options_of_the_old_one() -> None:
    plan = RunSpec(task="colored_digits", method="erm", settings={"net": "cnn", "channels": [4]}).plan
    assert (plan.net.name, plan.net.channels) == ("cnn", (4,))


def test_specs_survive_pickle_and_json() -> None:
    original = spec(eta=3)
    assert pickle.loads(pickle.dumps(original)).key == original.key
    assert RunSpec(**original.model_dump(mode="json")).key == original.key


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"task": "four_moon", "method": "erm"}, "Unknown task 'four_moon'; did you mean 'four_moons'?"),
        ({"task": "four_moons", "method": "ermm"}, "Unknown method 'ermm'; did you mean 'erm'?"),
        ({"task": "four_moons", "method": "erm", "settings": {"lrr": 1}}, "did you mean 'lr'?"),
        (
            {"task": "four_moons", "method": "erm", "settings": {"net": "mlpp"}},
            "Unknown net 'mlpp'; did you mean 'mlp'?",
        ),
        ({"task": "four_moons", "method": "erm", "preset": "papr"}, "Unknown preset of four_moons 'papr'"),
        ({"task": "four_moons", "method": "erm", "seed": -1}, "RunSpec.seed must be a whole number in [0, 4294967296)"),
        (
            {"task": "four_moons", "method": "umix", "settings": {"sigma": 50}},
            "umix.sigma must be a number in [0, 1], got 50",
        ),
        ({"task": "four_moons", "method": "umix", "settings": {"trajectory.lr": 0}}, "trajectory.lr must be"),
        ({"method": "erm"}, "RunSpec.task must be given."),
    ],
    ids=["task", "method", "setting", "net", "preset", "seed", "range", "stage", "missing"],
)
def test_wrong_input_gets_one_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        RunSpec(**arguments)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["x" * 251, "é" * 125, "a\nb", "a\x1b[31m"], ids=["long", "two bytes", "line", "colour"]
)
def test_every_name_of_a_file_gives_a_name_of_a_folder(tmp_path: Path, name: str) -> None:
    table = tmp_path / f"{name}.csv"
    table.write_text("x,y\n" + "\n".join(f"{k},{k % 2}" for k in range(40)))
    folder = RunSpec(task=str(table), method="erm", settings={"task.label": "y"}).directory_name
    (tmp_path / f"{folder}.lock").touch()
    assert folder.isprintable()
    assert "-erm-" in folder


def test_settings_of_one_run_do_not_stay_in_the_preset(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "\n".join(f"{k},{k % 2}" for k in range(40)))
    given = {"task.label": "y"}
    RunSpec(task=str(table), method="best", settings={**given, "net.among": ["trees"]})
    assert RunSpec(task=str(table), method="best", settings=given).plan.net.among == ("mlp", "trees")
