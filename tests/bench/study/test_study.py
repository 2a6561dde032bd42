"""Study files: parsing, validation and settings from the command line."""

import json
from pathlib import Path

import pytest

from umix.bench.study.study import Study, load_study, parse_seeds, study_schema, with_settings
from umix.bench.study.study_plan import make_grid
from umix.errors import UserError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0:3", (0, 1, 2)), ("0,2,1", (0, 2, 1)), ("7", (7,)), (" 1 : 3 , 9", (1, 2, 9))],
)
def test_seeds_are_ranges_and_lists(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "3:3", "a", "0:", "-1", "0:2:4", "1.5"])
def test_seeds_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="Seeds must be a range as 0:5"):
        parse_seeds(text)


def test_names_alone_stand_for_entries_and_seeds_are_kept_once() -> None:
    study = Study(tasks=["four_moons"], methods=["erm", {"name": "umix", "label": "UMIX"}], seeds="0:2,1")
    assert [entry.title for entry in study.methods] == ["erm", "UMIX"]
    assert study.seeds == (0, 1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tasks = [,]", r"The study .*study\.toml must be TOML, but it cannot be read: .*line 1"),
        ('task = ["four_moons"]', r"study\.toml: Unknown key of a study 'task'; did you mean 'tasks'\?"),
        ('tasks = ["four_moons"]', r"study\.toml: Study\.methods must be given"),
        ('tasks = ["a"]\nmethods = [{name = "erm"}, {nam = "umix"}]', r"study\.toml: methods\[2\]: .*nam"),
        ('tasks = ["a", 3]\nmethods = ["erm"]', r"study\.toml: tasks\[2\] must be a name or a table of options, got 3"),
        ('tasks = ["a"]\nmethods = []', r"study\.toml: Study\.methods must be .* at least 1"),
        ('tasks = ["a"]\nmethods = ["erm"]\nseeds = [-1]', r"study\.toml: Study\.seeds must be .*, got -1"),
        ('tasks = "a"\nmethods = ["erm"]', r"study\.toml: Study\.tasks must be a list of names or tables"),
        ('tasks = ["a"]\nmethods = ["erm"]\nseeds = [1, true]', r"Study\.seeds must be .*, got True"),
        ('tasks = ["a"]\nmethods = ["erm"]\nskip_impossible = "yes"', r"skip_impossible must be true or false"),
        ('tasks = ["a"]\nmethods = ["erm", "erm"]', r"study\.toml: Every method .* 'erm' twice; give each a label"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_sentence_with_its_place(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=sentence) as caught:
        load_study(path)
    assert "\n" not in str(caught.value)


def test_settings_may_be_written_as_toml_nests_them() -> None:
    study = Study(
        tasks=["four_moons"], methods=["erm"], settings={"fit": {"epochs": 2, "lr": 0.1}, "task.sizes": [4, 4, 4, 4]}
    )
    assert study.settings == {"fit.epochs": 2, "fit.lr": 0.1, "task.sizes": [4, 4, 4, 4]}


def test_settings_of_a_method_or_task_go_to_its_runs_alone() -> None:
    study = Study(tasks=["four_moons", "data/people.csv"], methods=["erm", "umix"])
    given = {"umix.eta": 3, "umix.fit.lr": 0.1, "umix.net": "linear", "people.data_seed": 4, "fit.epochs": 2}
    given |= {"batch_size": 8}
    made = with_settings(study, given)
    assert made.settings == {"fit.epochs": 2, "batch_size": 8}
    assert [entry.settings for entry in made.methods] == [{}, {"umix.eta": 3, "fit.lr": 0.1, "net": "linear"}]
    assert [entry.settings for entry in made.tasks] == [{}, {"data_seed": 4}]


def test_the_committed_schema_is_up_to_date() -> None:
    committed = json.loads((ROOT / "docs" / "reference" / "study.schema.json").read_text(encoding="utf-8"))
    assert committed == study_schema(), "run `umix bench --schema > docs/reference/study.schema.json` and commit it"


def test_the_schema_takes_what_a_study_takes() -> None:
    schema = study_schema()
    assert schema["required"] == ["tasks", "methods"]
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(Study.model_fields)
    assert [kind.get("type", "object") for kind in schema["properties"]["tasks"]["items"]["anyOf"]] == [
        "string",
        "object",
    ]
    assert {kind["type"] for kind in schema["properties"]["seeds"]["anyOf"]} == {"array", "string"}


def test_the_study_of_the_page_is_a_study(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "studies.md").read_text(encoding="utf-8")
    path = tmp_path / "study.toml"
    path.write_text(page.split("```toml\n")[1].split("```")[0])
    assert len(make_grid(load_study(path)).runs) == 2 * 4 * 5
