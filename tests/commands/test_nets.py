"""``umix nets``, and ``--net`` and ``--freeze`` of ``umix run``."""

import json
import sys

import pytest

from umix.cli import main


def test_nets_are_listed_with_their_options_and_whether_their_library_is_there(capsys, monkeypatch):
    monkeypatch.setattr("umix.models.library.find_spec", lambda name: None if name == "timm" else object())
    assert main(["nets", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    nets = {"mlp", "cnn", "linear", "hf:NAME", "monai:NAME", "torchvision:NAME", "timm:NAME", "MODULE:FACTORY"}
    assert nets | {"tabular", "auto", "trees", "lightgbm", "xgboost", "catboost", "MODULE:ESTIMATOR"} == set(listed)
    assert listed["hf:NAME"]["library"] == "transformers, installed"
    assert listed["timm:NAME"]["library"] == "timm, not installed: pip install 'umix[timm]'"
    assert "freeze" in listed["monai:NAME"]["settings"]["properties"]
    assert main(["nets"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "not installed" in lines["timm:NAME"]
    assert "built in" in lines["mlp"]
    assert main(["nets", "timm"]) == 0
    assert "not installed: pip install 'umix[timm]'" in capsys.readouterr().out
    assert main(["nets", "hf:NAME"]) == 0
    assert "pooling" in capsys.readouterr().out


def test_the_doctor_names_the_extra_to_install(capsys, monkeypatch):
    from umix.bench import doctor

    monkeypatch.setattr(doctor, "_version", lambda package: None)
    assert main(["doctor"]) == 0
    assert "pip install 'umix[hf]'" in capsys.readouterr().out.replace("\n", "")


def test_net_and_freeze_are_settings(capsys, tmp_path):
    out = ["--out", str(tmp_path), "-q", "--json"]
    assert main(["run", "four_moons", "erm", "--net", "linear", "--set", "epochs=1", *out]) == 0
    flag = json.loads(capsys.readouterr().out)
    assert main(["run", "four_moons", "erm", "--set", "net=linear", "--set", "epochs=1", *out]) == 0
    assert json.loads(capsys.readouterr().out)["key"] == flag["key"]
    assert flag["plan"]["net"] == {"name": "linear", "dropout": 0.0}


def test_what_a_module_of_ones_own_prints_is_not_in_the_json(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "noisy_net.py").write_text(
        "from torch import nn\nprint('imported')\n"
        "def make(example, n_classes):\n    print('called')\n    return nn.Linear(len(example), 4), nn.Linear(4, n_classes)\n"
    )
    assert main(["run", "four_moons", "erm", "--net", "noisy_net:make", "--set", "epochs=1", "-q", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["plan"]["net"]["factory"] == "noisy_net:make"
    assert captured.err.startswith("imported\ncalled\n")
    sys.modules.pop("noisy_net")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--freeze"], "umix: --freeze must be used with a pretrained net (--net hf:FOLDER, for example), got 'mlp'."),
        (
            ["--net", "hf:./nowhere"],
            "umix: There is no folder ./nowhere with a model (config.json, model.safetensors).",
        ),
        (["--net", "mpl"], "umix: Unknown net 'mpl'; did you mean 'mlp'?"),
        (["--net", "mlp", "--set", "net.model=x"], "umix: Unknown setting of erm 'net.model'"),
    ],
)
def test_a_wrong_net_is_one_sentence_and_writes_nothing(words, answer, capsys, tmp_path):
    assert main(["run", "four_moons", "erm", *words, "--out", str(tmp_path / "runs")]) == 2
    assert capsys.readouterr().err.startswith(answer)
    assert not (tmp_path / "runs").exists()
