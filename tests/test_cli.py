"""The command line, called as people call it."""

import json
from pathlib import Path

import numpy
import polars
import pytest

from umix.cli import main
from umix.data.registry import TASKS, load_task
from umix.data.rows.table_file import read_table

FAST = [f"--set={setting}" for setting in ("epochs=2", "length=2", "sizes=[40,8,8,40]", "eval_size=10", "hidden=[8]")]
RUN = ["run", "four_moons", "umix", *FAST]


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_run_prints_a_table_and_where_the_record_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--out", str(tmp_path / "[dim]")]) == 0
    out = capsys.readouterr().out
    for expected in (
        "four_moons · 176 examples · split 55/23/23 · seed 0",
        "worst group",
        "ordinary",
        "moon 3",
        "Chosen on validation: epoch ",
        f"Saved in {tmp_path / '[dim]'}",
        "Next: umix report ",
    ):
        assert expected in out
    assert "stage " not in out
    assert "umix predict" not in out  # nobody has new data of a benchmark


def test_verbose_also_prints_every_rate_and_the_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--out", str(tmp_path), "--verbose"]) == 0
    out = capsys.readouterr().out
    for expected in ("adjusted average", "stage trajectory: 2 epochs"):
        assert expected in out


def test_the_same_command_again_trains_neither_the_run_nor_the_ordinary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run_json(capsys, *RUN, "--out", str(tmp_path))
    monkeypatch.setattr("umix.bench.runs.execute.train_run", None)
    assert run_json(capsys, *RUN, "--out", str(tmp_path)) == first
    assert {path.parent.name.split("-")[1] for path in tmp_path.glob("*/record.json")} == {"erm", "umix"}


def test_run_as_json_is_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = run_json(capsys, *RUN, "--out", str(tmp_path), "--seed", "1")
    assert record["seed"] == 1
    assert record["summary"]["select"] == "worst"
    assert set(record["summary"]["groups"]) == {"moon 0", "moon 1", "moon 2", "moon 3"}
    assert Path(record["directory"], "record.json").exists()
    erm = json.loads(Path(record["ordinary"]["directory"], "record.json").read_text())
    assert (erm["method"], erm["seed"]) == ("erm", 1)
    assert record["ordinary"]["summary"]["threshold_mode"] == "off"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_weights_are_written_for_every_training_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    directory = run_json(capsys, *RUN, "--out", str(tmp_path), "--set", "eta=6", "--set", "normalize=false")[
        "directory"
    ]
    output = tmp_path / f"weights.{suffix}"
    assert main(["weights", directory, "-o", str(output)]) == 0
    table = polars.read_csv(output) if suffix == "csv" else polars.read_parquet(output)
    assert table.columns == ["index", "label", "group", "uncertainty", "weight"]
    assert table["index"].to_list() == list(range(96))
    task = load_task("four_moons", sizes=[40, 8, 8, 40])
    train = task.splits["train"]
    assert [*map(str, table["label"])] == [task.classes[code] for code in train.y]
    assert table["group"].to_list() == [task.groups[code] for code in train.group]
    expected = (6 * table["uncertainty"] + 1).to_list()
    assert table["weight"].to_list() == pytest.approx(expected)


@pytest.mark.system
def test_demo_compares_three_methods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seeds", "1", "--out", str(tmp_path), "--quiet"]) == 0
    out = capsys.readouterr().out
    for expected in ("ERM", "UMIX, sigma=0", "differences to ERM", "five or more, red", "Records:", "Report:", "Next:"):
        assert expected in out
    assert (tmp_path / "report.html").stat().st_size > 10**6


def test_catalogues_are_whole_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json(capsys, "methods")["umix"]["settings"]["properties"]["sigma"]["maximum"] == 1
    assert run_json(capsys, "tasks")["four_moons"]["settings"]["properties"]["noise"]["default"] == 0.15


@pytest.mark.parametrize(
    "name", ["table", "arrays", "images", "text", "people.csv", "features.npz", "photos/", "waterbirds"]
)
def test_presets_are_shown_for_tasks_kinds_of_data_and_paths(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json(capsys, "presets", name)["default"]["fit"]["epochs"] > 0
    assert main(["presets", name]) == 0
    assert "default" in capsys.readouterr().out


def test_presets_without_a_name_lists_what_there_are_presets_for(capsys: pytest.CaptureFixture[str]) -> None:
    listed = run_json(capsys, "presets")
    assert list(listed) == [*TASKS, "table", "arrays", "images", "text"]
    assert listed["text"]["presets"] == ["default", "pretrained"]
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:3] == ["arrays", "default", "Arrays"] for line in lines)


def test_doctor_shows_versions_and_devices(capsys: pytest.CaptureFixture[str]) -> None:
    facts = run_json(capsys, "doctor")
    assert facts["versions"]["torch"]
    assert "cpu" in facts["devices"]
    assert main(["doctor"]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "four_moon", "umix"], "did you mean 'four_moons'?"),
        (["run", "four_moons", "umx"], "did you mean 'umix'?"),
        (["run", "four_moons", "umix", "--set", "etta=3"], "did you mean 'eta'?"),
        (["run", "four_moons", "--target", "70"], "--target must be a rate in (0, 1], got 70; 0.7 is 70 %."),
        (["run", "four_moons", "--time", "-1"], "--time must be a number of seconds above 0, got -1."),
        (["run", "four_moons", "--time", "nan"], "--time must be a number of seconds above 0, got nan."),
        (["run", "four_moons", "erm", "--use-groups", "none"], 'Choose from: "test", "val", "train".'),
        (["run", "four_moons", "erm", "--threshold", "none"], 'Choose from: "tuned", "off".'),
        (["run", "four_moons", "--trials", "0"], "--trials must be at least 1, got 0."),
        (["run", "four_moons", "erm", "--trials", "5"], "--trials must be given with METHOD best, got 'erm'"),
        (["run", "four_moons", "umix", "--time", "5"], "--time must be given with METHOD best, got 'umix'"),
        (["run", "four_moons", "umix", "--set", "sigma=50"], "umix.sigma must be a number in [0, 1], got 50."),
        (["run", "four_moons", "umix", "--set", "eta=-1"], "umix.eta must be a number in [0, inf) or auto, got -1."),
        (
            ["run", "four_moons", "umix", "--set=length=9", "--set", "trajectory.epochs=5"],
            "within the 5 epochs of stage 'trajectory'",
        ),
        (["run", "four_moons", "umix", "--set", "eta"], "--set must be given key=value, got 'eta'"),
        (["run", "four_moons", "umix", "--set", "mixing=cutmix"], "mixing=cutmix must be given images"),
        (["run", "four_moons", "umix", "--set", "net=cnn"], "must be given images"),
        (["run", "four_moons", "umix", "--select", "wurst"], "did you mean 'worst'?"),
        (
            ["run", "four_moons", "erm", "--select", "uncertainty_quintile"],
            "must be given a method with a trajectory stage, such as umix, got 'erm'",
        ),
        (
            ["run", "four_moons", "umix", "--select", "oracle_test"],
            "must not select a model: it looks at the test split",
        ),
        (["run"], "requires an argument"),
        (["run", "four_moons", "umix", "--sed", "1"], "--seed"),
        (
            ["presets", "q"],
            "Unknown task, kind of data or path 'q'. Known: arrays, camelyon17, celeba, civilcomments, colored_digits, "
            "four_moons, images, table, text, waterbirds.",
        ),
        (["presets", "txt"], "did you mean 'text'?"),
        (["weights", "nowhere"], "There is no finished run in nowhere"),
        (["demo", "--seeds", "0"], "--seeds must be at least 1, got 0."),
        (["frobnicate"], "frobnicate"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_sentence_and_exit_code_two(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rows = range(120)
    frame = polars.DataFrame(
        {
            "id": [f"p{i}" for i in rows],
            "age": [20 + (7 * i) % 61 for i in rows],
            "sex": [["f", "m"][i % 2] for i in rows],
            "income": [["low", "high"][int((7 * i) % 61 > 30)] for i in rows],
        }
    )
    (tmp_path / "data").mkdir()
    frame.write_csv(tmp_path / "data" / "people.csv")
    return tmp_path / "data" / "people.csv"


TABLE = ["umix", "--label", "income", "--id", "id", "--set=epochs=2", "--set=length=2", "--set=hidden=[8]"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_is_trained_on_and_new_rows_are_predicted(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    arguments = ["run", str(people), *TABLE, "--groups", "sex", "--out", str(tmp_path / "runs")]
    record = run_json(capsys, *arguments, "--set", "task.data_seed=1")
    assert set(record["summary"]["groups"]) == {"high, f", "high, m", "low, f", "low, m"}
    assert record["plan"]["task"]["data_seed"] == 1
    output = tmp_path / f"out.{suffix}"
    assert main(["predict", record["directory"], str(people), "-o", str(output), "--select", "last"]) == 0
    assert "120 predictions written to" in capsys.readouterr().out
    table = read_table(output)
    assert table.columns == ["id", "label", "p_high", "p_low"]
    assert table["id"][119] == "p119"
    predict = ["predict", record["directory"], str(people), "-o", str(output), "--select", "last", "--quiet"]
    assert run_json(capsys, *predict) == {
        "rows": 120,
        "output": str(output),
        "notes": [],
        "labels": {name: (table["label"] == name).sum() for name in ("high", "low")},
        "threshold": 0.5,
        "calibrated": False,
    }


def test_without_groups_classes_are_shown_and_the_worst_group_is_called_unknown(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(people), *TABLE, "--drop", "sex", "--out", str(tmp_path / "runs")]) == 0
    out = capsys.readouterr().out
    for expected in ("worst class: ", "high", "low", "unknown", "Next: umix report", "umix predict"):
        assert expected in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["run", "people.csv", "umix"],
            "needs --label with the column of the class to predict; it has id, age, sex, income",
        ),
        (["run", "people.csv", "umix", "--label", "incom"], "did you mean 'income'?"),
        (["run", "people.csv", "umix", "--label", "age"], "like a quantity"),
        (
            ["run", "people.csv", "umix", "--label", "income", "--select", "worst"],
            "--select worst must know the groups",
        ),
        (["run", "people.csv", "umix", "--label", "income", "--set", "path=x.csv"], "Unknown setting of umix 'path'"),
        (["run", "people.csv", "group_dro", "--label", "income"], "name their columns with --groups"),
        (["run", "nowhere.csv", "umix", "--label", "income"], "There is no file nowhere.csv."),
        (["run", "four_moons", "umix", "--label", "income"], "Unknown setting --label of four_moons data 'label'"),
        (["predict", "nowhere", "people.csv"], "There is no finished run in nowhere"),
        (
            ["predict", "people.csv", "people.csv"],
            "There is no finished run in people.csv: it is a file and no folder.",
        ),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_wrong_words_about_a_table_are_one_sentence_and_write_nothing(
    people: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(people.parent)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert list(people.parent.iterdir()) == [people]


def test_the_doctor_counts_the_rows_of_a_table(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["doctor", str(people), "--label", "income", "--groups", "sex"]
    found = run_json(capsys, *words)
    assert found["verdict"] == "look at this"
    assert found["rows"] == {"train": 72, "val": 24, "test": 24}
    assert sum(sizes["low"] for sizes in found["classes"].values()) == 62
    assert set(found["counts"]["test"]) == {"high, f", "high, m", "low, f", "low, m"}
    identifier, small = found["findings"][0], found["findings"][1]
    assert (identifier["severity"], identifier["subject"]) == ("look", "id")
    assert identifier["fix"] == "Make it the id with --id id."
    assert small["subject"] == "groups"
    assert found["notes"] == []
    assert main(words) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.endswith("people.csv: look at this, 3 findings")
    text = " ".join(" ".join(rest).split())
    for expected in (
        "look: The column 'id' is different in every row",
        "--id id",
        "all rows",
        "class low",
        "low, sex=f",
        "* fewer",
    ):
        assert expected in text
    assert list(people.parent.iterdir()) == [people]


def test_the_doctor_counts_arrays_and_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    y = ["no", "yes"] * 30
    numpy.savez(tmp_path / "a.npz", f=numpy.arange(120.0).reshape(60, 2), y=y)
    found = run_json(capsys, "doctor", str(tmp_path / "a.npz"), "--x", "f", "--label", "y")
    assert found["classes"]["train"] == found["counts"]["train"] == {"no": 18, "yes": 18}
    polars.DataFrame({"said": [f"a {word} word" for word in y], "y": y, "more": y}).write_csv(tmp_path / "a.csv")
    found = run_json(capsys, "doctor", str(tmp_path / "a.csv"), "--text", "said", "--label", "y")
    assert found["rows"] == {"train": 36, "val": 12, "test": 12}
    assert "Only the text is an input; not used: more." in found["notes"]


@pytest.mark.parametrize(
    "words",
    [
        ["people.csv", "--label", "incom"],
        ["people.csv", "--label", "income", "--text", "tex"],
        ["people.csv", "--label", "income", "--drop", "ag"],
        ["people.csv", "--label", "income", "--allow-subset"],
        ["people.csv", "--label", "income", "--root", "."],
        ["people.csv", "--label", "income", "--set", "task.val_share=2"],
        ["nowhere.csv", "--label", "income"],
        ["nowhere"],
    ],
    ids=" ".join,
)
def test_the_doctor_answers_wrong_words_as_run_does(
    people: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.chdir(people.parent)
    assert main(["run", words[0], "erm", *words[1:]]) == 2
    expected = capsys.readouterr().err
    assert main(["doctor", *words]) == 2
    assert capsys.readouterr().err == expected


def test_weights_of_a_run_without_weights_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    erm = [argument for argument in RUN if "length" not in argument]
    erm[2] = "erm"
    directory = run_json(capsys, *erm, "--out", str(tmp_path))["directory"]
    assert main(["weights", directory]) == 2
    assert "must keep weights or groups of its training examples" in capsys.readouterr().err


def test_warnings_of_a_run_are_shown_again_when_it_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert main([*RUN, "--set=lr=1e12", "--out", str(tmp_path)]) == 0
        assert "parameters are not finite" in " ".join(capsys.readouterr().err.split())


def test_a_window_beyond_the_epochs_leaves_nothing_behind_for_a_table_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{k % 7},{'ab'[k % 2]},{'xy'[k % 2]}" for k in range(60))
    Path("people.csv").write_text(f"age,kind,label\n{rows}\n")
    command = ["run", "people.csv", "umix", "--label", "label", "--set=length=5", "--set=trajectory.epochs=2"]
    assert main(command) == 2
    assert "within the 2 epochs of stage 'trajectory'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_run_without_a_method_tries_some_and_says_what_it_chose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = [word for word in FAST if "length" not in word]
    assert main(["run", "four_moons", "--trials", "3", *fast, "--out", str(tmp_path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Chosen of 3 candidates on validation: net mlp, " in out
    assert "ordinary + threshold " in out
    assert "(%, worst validation group" in out


def test_words_that_belong_to_no_flag_are_refused_with_how_to_write_several_names(capsys) -> None:
    assert main(["run", "people.csv", "erm", "--label", "income", "--groups", "sex", "race"]) == 2
    error = capsys.readouterr().err
    assert "The words 'race' belong to no flag" in error
    assert "(sex,race)" in error
