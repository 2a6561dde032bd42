"""``umix methods``, ``umix nets`` and ``umix tasks``: a line for each, and one of them whole."""

import json

import pytest

from umix.cli import main
from umix.methods.registry import METHODS

Capsys = pytest.CaptureFixture[str]


def shown(capsys: Capsys, *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_methods_are_one_line_each_with_what_they_use_of_group_labels(capsys: Capsys) -> None:
    out = shown(capsys, "methods")
    assert all((kind.__doc__ or "").partition("\n")[0] in out for kind in METHODS.values())  # no line is cut in a pipe
    first, *lines, last = out.splitlines()
    assert first.split() == ["method", "uses", "group", "labels", "what", "it", "is"]
    assert [line.split()[0] for line in lines] == list(METHODS)
    assert last == "umix methods NAME shows one of them with all its settings."
    by_name = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert by_name["erm"] == "none Empirical risk minimisation: every example counts the same."
    assert by_name["group_dro"].startswith("to train Group")
    assert by_name["dfr"].startswith("validation groups to train Deep")
    assert by_name["reweight"].startswith("depends on by=group Reweighting")
    assert by_name["best"].startswith("as far as known The method that does best on validation")


def test_one_method_is_shown_whole(capsys: Capsys) -> None:
    out = " ".join(shown(capsys, "methods", "umix").split())
    for expected in (
        "umix Uncertainty-aware mixup",
        "NeurIPS 2022",
        "group labels: none",
        "stages before the fit: trajectory, ensemble",
        "Algorithm 2: train by ERM",
        "Differs from the paper: - the window has exactly length epochs",
        "Differs from the released code: - the last epoch is recorded too",
        "sigma probability of mixing a batch; 0 weights without mixing a number in [0, 1]; default 0.5; umix tune tries 0.5, 1.0",
        "a number in [0, inf) or auto; default 20.0; umix tune tries 2 to 100 (log)",
    ):
        assert expected in out
    assert "GroupDRO" not in out


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_can_be_shown_alone(name: str, capsys: Capsys) -> None:
    out = shown(capsys, "methods", name)
    assert "Differs from the paper" in out
    assert "threshold=off" in out
    assert all(setting in out for setting in METHODS[name].model_fields)


@pytest.mark.parametrize(
    ("words", "near"), [(("methods", "umx"), "umix"), (("nets", "mpl"), "mlp"), (("tasks", "four_moon"), "four_moons")]
)
def test_an_unknown_name_gets_the_nearest_known_one(words: tuple[str, str], near: str, capsys: Capsys) -> None:
    assert main(list(words)) == 2
    captured = capsys.readouterr()
    assert f"did you mean '{near}'?" in captured.err
    assert not captured.out


def test_tasks_are_listed_with_the_data_that_people_bring(capsys: Capsys) -> None:
    listed = [line.split("  ")[0].strip() for line in shown(capsys, "tasks").splitlines()[1:-1]]
    assert listed[-4:] == ["FILE.csv", "FILE.csv --text", "FILE.npz", "FOLDER/"]
    assert "colored_digits" in listed
    assert "[rows, ...]" in shown(capsys, "tasks", "arrays")  # brackets are not taken for markup
    assert shown(capsys, "tasks", "table") == shown(capsys, "tasks", "FILE.csv")


@pytest.mark.parametrize(
    ("words", "setting"), [("methods umix", "sigma"), ("nets hf", "pooling"), ("tasks table", "drop")]
)
def test_one_as_json_is_its_entry_in_the_whole_list(words: str, setting: str, capsys: Capsys) -> None:
    entry = json.loads(shown(capsys, *words.split(), "--json"))
    assert setting in entry["settings"]["properties"]
    name = entry.pop("name")
    assert json.loads(shown(capsys, words.split()[0], "--json"))[name] == entry


def test_what_a_method_uses_of_group_labels_is_in_its_json(capsys: Capsys) -> None:
    entry = json.loads(shown(capsys, "methods", "dfr", "--json"))
    assert entry["group_labels"] == "validation groups to train"
    assert (entry["needs_training_groups"], entry["needs_validation_groups"]) == (False, True)
