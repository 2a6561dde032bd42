"""Presets, studies and ``--set`` values: valid TOML with something changed, and names of code in files."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hostile_cases.case import CANARY, Case, Maker
from hostile_cases.document_mutations import any_value, damaged, mutated, one_of, toml
from umix.bench.spec.evaluation_settings import EvaluationSettings
from umix.methods.registry import METHODS
from umix.models.mlp import MLP
from umix.settings import Settings
from umix.training.fit_settings import FitSettings

#: What keeps a run that is accepted below half a second.
TINY = {"sizes": [24, 8, 8, 24], "eval_size": 8}
SHORT = {"length": 2, "layer_epochs": 2, "steps": 2, "inference_steps": 5}
#: All methods but the one that trains many candidates.
QUICK = [name for name in METHODS if name != "best"]


def defaults(kind: type[Settings]) -> dict[str, Any]:
    """Every setting of ``kind`` that has a default, as TOML can hold it."""
    values = {name: field.get_default(call_default_factory=True) for name, field in kind.model_fields.items()}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: value for name, value in plain.items() if isinstance(value, bool | int | float | str | list)}


def settings_of(method: str) -> dict[str, Any]:
    """All settings of a tiny run of ``method`` on four moons, by part."""
    stages = {stage: {"epochs": 2} for stage in METHODS[method].stages}
    return {
        "task": TINY | {"noise": 0.15, "data_seed": 0},
        "net": {"name": "mlp", **defaults(MLP), "hidden": [4]},
        "fit": {**defaults(FitSettings), "epochs": 2},
        "evaluation": defaults(EvaluationSettings) | {"min_group": 1},
        method: method_settings(method),
        **stages,
    }


def method_settings(method: str) -> dict[str, Any]:
    """All settings of ``method``, those that say how long it takes lowered."""
    usual = defaults(METHODS[method])
    return usual | {name: value for name, value in SHORT.items() if name in usual}


def study_of(methods: list[str]) -> dict[str, Any]:
    """A study of tiny runs on four moons."""
    shared = settings_of(methods[0])
    return {
        "seeds": [0],
        "preset": "default",
        "skip_impossible": True,
        "settings": {part: shared[part] for part in ("net", "fit", "evaluation")},
        "tasks": [{"name": "four_moons", "settings": shared["task"]}],
        "methods": [
            {"name": name, "label": f"{name} here", "settings": {name: method_settings(name)}} for name in methods
        ],
    }


def preset_changed(folder: Path, rng: np.random.Generator) -> Case:
    """A preset file with one or two places changed."""
    method = str(rng.choice(QUICK))
    tree, what = mutated({"default": settings_of(method)}, rng)
    if rng.integers(3) == 0:
        tree, more = mutated(tree, rng)
        what = f"{what}; {more}"
    (folder / "preset.toml").write_text(toml(tree) if isinstance(tree, dict) else "x", encoding="utf-8")
    name = one_of(rng, ("preset.toml", "preset.toml", "preset.toml:default", "preset.toml:other"))
    return Case(f"{method}, {what}", ["run", "four_moons", method, "--preset", name, "-q"])


def preset_damaged(folder: Path, rng: np.random.Generator) -> Case:
    """A preset file whose bytes are damaged."""
    text, what = damaged(toml({"default": settings_of("umix")}).encode(), rng)
    (folder / "preset.toml").write_bytes(text)
    return Case(what, ["run", "four_moons", "umix", "--preset", "preset.toml", "-q"])


def study_changed(folder: Path, rng: np.random.Generator) -> Case:
    """A study file with one or two places changed; it is planned, or executed."""
    tree, what = mutated(study_of([str(name) for name in rng.choice(QUICK, 2, replace=False)]), rng)
    if rng.integers(3) == 0 and isinstance(tree, dict):
        tree, more = mutated(tree, rng)
        what = f"{what}; {more}"
    (folder / "study.toml").write_text(toml(tree) if isinstance(tree, dict) else "x", encoding="utf-8")
    return Case(what, ["bench", "--file", "study.toml", "--plan"])


def study_damaged(folder: Path, rng: np.random.Generator) -> Case:
    """A study file whose bytes are damaged."""
    text, what = damaged(toml(study_of(["erm"])).encode(), rng)
    (folder / "study.toml").write_bytes(text)
    return Case(what, ["bench", "--file", "study.toml", "--plan", "--json"])


def set_value(folder: Path, rng: np.random.Generator) -> Case:
    """A value given with ``--set`` that is damaged, nested or of another type."""
    method = str(rng.choice(QUICK))
    parts = settings_of(method)
    part = str(rng.choice(list(parts)))
    key = f"{part}.{rng.choice([*parts[part], 'nope'])}"
    value = toml({"v": any_value(rng)}).partition(" = ")[2].strip()
    text, what = damaged(value.encode(), rng) if rng.integers(3) == 0 else (value.encode(), "")
    argument = f"{key}={text.decode('utf-8', 'surrogateescape')}".replace("\x00", "")
    tiny = ["--set", "task.sizes=[24,8,8,24]", "--set", "task.eval_size=8", "--set", "fit.epochs=2"]
    command = (
        ["run", "four_moons", method] if rng.integers(4) else ["bench", "four_moons", "--methods", method, "--plan"]
    )
    return Case(f"{argument[:60]!r} {what}", [*command, *tiny, "--set", argument, "-q"])


def _code(folder: Path, rng: np.random.Generator) -> str:
    """The name of code that lies in the folder and tells if it is run: a net, or an estimator."""
    module = f"own_{rng.integers(10**12)}"
    said = f"import os\nopen(os.environ[{CANARY!r}], 'a').write('run')\n"
    made = one_of(rng, ("def make(example, n_classes):\n    raise SystemExit(0)\n", "def make():\n    return None\n"))
    (folder / f"{module}.py").write_text(said + made)
    return f"{module}:make"


def code_in_preset(folder: Path, rng: np.random.Generator) -> Case:
    """A preset file that names code, in any table that may name a net."""
    code, method = (
        _code(folder, rng),
        str(rng.choice([name for name in QUICK if "gradients" not in METHODS[name].needs])),
    )
    tables = settings_of(method)
    net = one_of(rng, ({"name": code}, {"name": "auto", "among": [code]}, {"name": "auto", "among": ["mlp", code]}))
    where = str(rng.choice(["net", "method", "named"]))
    if where == "method":
        tables[method]["net"] = net
    else:
        tables["net"] = net
    (folder / "preset.toml").write_text(toml({"default": tables}))
    if where == "named":  # the preset is named in a study
        study = study_of([method])
        del study["settings"]["net"]
        (one_of(rng, (study, study["tasks"][0])))["preset"] = "preset.toml"
        (folder / "study.toml").write_text(toml(study))
        return Case("code in a preset of a study", ["bench", "--file", "study.toml", "-q"])
    command = one_of(
        rng,
        (
            ["run", "four_moons", method],
            ["tune", "four_moons", method, "--trials", "1", "--choices", "fit.lr=0.1"],
            ["bench", "four_moons", "--methods", method, "--plan"],
        ),
    )
    return Case(f"code in a preset, {net}", [*command, "--preset", "preset.toml", "-q"])


def code_in_study(folder: Path, rng: np.random.Generator) -> Case:
    """A study file that names code in the settings of all runs, of a task or of a method."""
    code = _code(folder, rng)
    study = study_of(["erm", "reweight"])
    owner = one_of(rng, (study, study["tasks"][0], study["methods"][0], study["methods"][1]))
    owner["settings"] = owner["settings"] | one_of(
        rng,
        (
            {"net": code},
            {"net": {"name": code}},
            {"net.name": code},
            {"net": {"name": "auto", "among": [code]}},
            {"net": "auto", "net.among": ["mlp", code]},
            {"net": "auto", "among": [code, "mlp"]},
        ),
    )
    (folder / "study.toml").write_text(toml(study))
    return Case(f"code in a study, {owner['settings']}"[:120], ["bench", "--file", "study.toml", "-q"])


@cache
def finished_run() -> dict[str, bytes]:
    """The files of a finished run on a small table, by their path."""
    import tempfile

    import polars

    from umix.api.train import train

    with tempfile.TemporaryDirectory() as made:
        table = Path(made) / "people.csv"
        rows = np.random.default_rng(0).normal(size=(60, 2))
        polars.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "y": (rows[:, 0] > 0).astype(int)}).write_csv(table)
        small = {"net": {"name": "mlp", "hidden": [4]}, "fit": {"epochs": 1}}
        run = train(table, "erm", label="y", out=Path(made) / "runs", **small).directory
        files = {f"run/{path.relative_to(run)}": path.read_bytes() for path in run.rglob("*") if path.is_file()}
        return files | {"people.csv": table.read_bytes()}


def code_in_record(folder: Path, rng: np.random.Generator) -> Case:
    """A run whose record names code as its net."""
    code = _code(folder, rng)
    for name, content in finished_run().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    record = json.loads((folder / "run/record.json").read_bytes())
    if rng.integers(2):
        record["net"] = code
    if rng.integers(2):
        record["plan"]["net"] = one_of(rng, ({"name": code}, {"name": "own", "factory": code}, {"name": "estimator"}))
        record["net"] = one_of(rng, (record["net"], "", code))
    record["settings"]["net"] = code
    (folder / "run/record.json").write_text(json.dumps(record))
    command = one_of(
        rng,
        (
            ["predict", "run", "people.csv", "-o", "new.csv"],
            ["predict", "run", "people.csv", "-o", "-"],
            ["export", "run", "-o", "model.safetensors"],
            ["export", "run", "-o", "README.md"],
            ["export", "run", "-o", "model.pt2"],
            ["weights", "run", "-o", "new.csv"],
            ["table", "."],
            ["table", ".", "--select", "all"],
        ),
    )
    return Case(f"code in a record, {command[0]}", command)


MAKERS: tuple[Maker, ...] = (
    preset_changed,
    study_changed,
    set_value,
    preset_damaged,
    study_damaged,
    code_in_preset,
    code_in_study,
    code_in_record,
)
