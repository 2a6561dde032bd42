"""Names of classes: umix's own, and those that installed packages add."""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from umix.bench.doctor import facts
from umix.bench.search.search_space import search_space
from umix.cli import main
from umix.data.registry import TASKS, source_kind
from umix.errors import UserError
from umix.methods.registry import METHODS, method
from umix.models.registry import NETS, net_kind
from umix.registry import Registry

Install = Callable[..., None]
METHOD = """
from umix.methods.erm import MeanRisk
from umix.methods.method import Method
class Mine(Method):
    "Mine."
    name = "mine"
    paper = "none"
    def train(self, context):
        return context.fit(MeanRisk())
"""
PROVIDER = """
from typing import ClassVar
from torch import nn
from umix.models.backbone import Provider
class Zoo(Provider):
    "Nets of a zoo."
    name: ClassVar[str] = "zoo"
    library: ClassVar[str] = "no_such_zoo"
    model: str
    title = property(lambda self: f"zoo:{self.model}")
    def parts(self, example, n_classes):
        return nn.Linear(example.numel(), 3), None
"""
FAST = ["--set", "epochs=2", "--set", "size=40", "-q"]


@pytest.mark.parametrize("registry", [METHODS, TASKS, NETS], ids=lambda registry: registry.thing)
def test_every_class_of_umix_is_registered_under_its_own_name(registry: Registry) -> None:
    assert {name: kind.name for name, kind in registry.own_classes.items()} == {name: name for name in registry.own}
    assert list(registry)[: len(registry.own)] == list(registry.own)


def test_a_registry_is_a_mapping() -> None:
    assert METHODS["umix"] is METHODS.get("umix") is dict(METHODS)["umix"]
    assert "umx" not in METHODS
    assert METHODS.get("umx") is None
    assert len(METHODS) == len(list(METHODS.items()))
    with pytest.raises(KeyError):
        METHODS["umx"]
    with pytest.raises(UserError, match=r"^Unknown method 'umx'; did you mean 'umix'\?"):
        METHODS.find("umx")


def test_installed_packages_are_not_looked_at_for_names_of_umix(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(**_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("importlib.metadata.entry_points", never)
    monkeypatch.setattr(sys, "path", [*sys.path, "a folder that was not there before"])
    assert method("erm").name == "erm"
    assert source_kind("four_moons")[0].name == "four_moons"
    assert source_kind("people.csv")[0].name == "table"
    assert net_kind("hf:folder")[0].name == "hf"
    with pytest.raises(RuntimeError):
        METHODS.find("other")


def test_a_package_is_imported_when_its_name_is_asked_for_and_not_before(install: Install) -> None:
    install("mine", {"umix.methods": {"mine": "mine_module:Mine", "other": "other_module:Other"}}, mine_module=METHOD)
    assert "mine_module" not in sys.modules
    assert method("mine").name == "mine"
    assert "mine" in METHODS
    assert search_space("mine") == {}


BROKEN = {
    "raises": ("raise OSError('no disk')", "OSError: no disk"),
    "lacks": ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
    "other": ("class Mine: pass", "must be a class that implements umix.methods.method.Method, got broken_module:Mine"),
    "abstract": ("from umix.methods.method import Method as Mine", "must be a class that implements"),
    "renamed": (METHOD.replace('"mine"', '"yours"'), "must be registered under its own name, 'yours'"),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_package_is_said_in_one_sentence_and_breaks_nothing(
    text: str, reason: str, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install("broken", {"umix.methods": {"mine": "broken_module:Mine"}}, broken_module=text)
    assert main(["methods", "--json"]) == 0
    captured = capsys.readouterr()
    assert list(json.loads(captured.out)) == list(METHODS.own)
    assert captured.err.startswith("note: The method 'mine' of broken 1.0 must ")
    assert captured.err.count("\n") == 1
    assert reason in captured.err
    for words in (["run", "four_moons", "mine", "--quiet"], ["methods", "mine"]):
        assert main(words) == 2
        assert reason in capsys.readouterr().err
    assert reason in facts()["plug-ins"]["method mine (broken 1.0)"]


def test_names_of_umix_win_and_a_clash_is_said(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    own = METHOD.replace('"mine"', '"erm"')
    install("a-package", {"umix.methods": {"erm": "erm_module:Mine", "mine": "mine_module:Mine"}}, erm_module=own)
    install("b-package", {"umix.methods": {"mine": "late_module:Mine"}}, mine_module=METHOD, late_module=METHOD)
    assert main(["methods"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "note: The method 'erm' of a-package 1.0 is not used, because umix has one of that name.",
        "note: The method 'mine' of b-package 1.0 is not used, because a-package 1.0 adds one too.",
    ]
    assert METHODS["erm"].__module__ == "umix.methods.erm"
    assert METHODS["mine"].__module__ == "mine_module"
    assert "erm_module" not in sys.modules


def test_a_package_may_add_the_nets_of_a_library(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("zoo", {"umix.nets": {"zoo": "zoo_module:Zoo"}}, zoo_module=PROVIDER)
    assert main(["nets", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["zoo:NAME"]["library"] == "no_such_zoo, not installed: pip install no_such_zoo"
    words = ["run", "four_moons", "erm", "--net", "zoo:bear", "--set", "epochs=1", "-q", "--json"]
    assert main([*words, "--out", str(tmp_path / "runs")]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["net"]["model"] == "bear"
    with pytest.raises(UserError, match=r"^Unknown net 'zoo'.*zoo:NAME"):
        net_kind("zoo")


def test_the_example_package_adds_a_method_a_task_and_a_net(
    example_plugin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["methods"]) == 0
    assert "label_smoothing" in capsys.readouterr().out
    assert list(facts()["plug-ins"].items()) == [
        ("method label_smoothing (umix-example 0.1.0)", "can be used"),
        ("task two_rings (umix-example 0.1.0)", "can be used"),
        ("net fourier (umix-example 0.1.0)", "can be used"),
    ]
    words = ["two_rings", "label_smoothing", "--net", "fourier", *FAST, "--json", "--out", str(tmp_path / "runs")]
    assert main(["run", *words]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["task"]["size"], plan["method"]["smoothing"], plan["net"]["width"]) == (40, 0.1, 64)
    assert main(["presets", "two_rings"]) == 0


@pytest.mark.system
def test_worker_processes_know_installed_packages_too(
    example_plugin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "two_rings", "--methods", "erm,label_smoothing", "--seeds", "0,1", "--workers", "2", *FAST]
    assert main([*words, "--json", "--out", str(tmp_path / "runs")]) == 0, capsys.readouterr().err
    records = list((tmp_path / "runs").glob("two_rings-*/record.json"))
    assert len(records) == 4


def test_the_tests_of_the_example_package_pass(example_plugin: Path) -> None:
    for file in (example_plugin / "tests").glob("test_*.py"):
        spec = importlib.util.spec_from_file_location(f"example_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        claims = [value for name, value in vars(module).items() if name.startswith("test_")]
        assert claims
        for claim in claims:
            claim()


def test_a_run_that_names_no_plug_in_imports_none(install: Install, tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    groups = {f"umix.{things}": {"mine": "lazy_module:Mine"} for things in ("methods", "tasks", "nets")}
    install("lazy", groups, lazy_module=f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n{METHOD}")
    out = ["-q", "--out", str(tmp_path / "runs")]
    assert main(["run", "four_moons", "umix", "--set", "epochs=2", "--set", "length=1", *out]) == 0
    assert main(["bench", "four_moons", "--methods", "erm", "--seeds", "0", "--set", "epochs=1", *out]) == 0
    assert not mark.exists()
    assert main(["methods"]) == 0
    assert mark.exists()
