"""``umix weights``: every training example with what finds it again in the user's own data."""

from pathlib import Path

import numpy as np
import polars
import pytest
from PIL import Image

import umix
from umix.cli import main
from umix.errors import UserError

FAST = ["--net=mlp", *(f"--set={setting}" for setting in ("epochs=2", "hidden=[4]", "length=1", "eta=3")), "--quiet"]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> polars.DataFrame:
    rng = np.random.default_rng(0)
    x, sex = rng.normal(size=120), rng.choice(["f", "m", ""], 120, p=[0.4, 0.4, 0.2])
    return polars.DataFrame(
        {
            "person": [f"p{i:03}" for i in range(120)],
            "x": x,
            "sex": [value or None for value in sex],
            "income": np.where(x > 0, "high", "low"),
        }
    )


@pytest.fixture(scope="module")
def run(people: polars.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    people.write_csv(folder / "people.csv")
    roles = ["--label=income", "--groups=sex", "--id=person"]
    assert main(["run", str(folder / "people.csv"), "umix", *roles, *FAST, f"--out={folder / 'runs'}"]) == 0
    (directory,) = (folder / "runs").glob("people-umix-*")
    return directory


def test_rows_of_the_file_have_their_weights_with_names_of_label_and_group(
    run: Path, people: polars.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["weights", str(run), "--id=person", "-o", str(tmp_path / "w.csv")]) == 0
    assert "(row, person, label, group, uncertainty, weight)" in capsys.readouterr().out
    weights = polars.read_csv(tmp_path / "w.csv")
    joined = people.with_row_index("row").join(weights.cast({"row": polars.UInt32}), on="row")
    assert len(joined) == len(weights) == umix.load_run(run).n_train
    assert joined["label"].equals(joined["income"], check_names=False)
    assert joined["person_right"].equals(joined["person"], check_names=False)
    group = joined.select(polars.concat_str("income", "sex", separator=", "))["income"]
    assert joined["group"].equals(group, check_names=False)  # null where the sex is blank
    assert 0 < joined["group"].null_count() < len(joined)


def test_the_frame_in_python_is_the_table_of_the_command(run: Path, tmp_path: Path) -> None:
    result = umix.load_result(run)
    assert main(["weights", str(run), "-o", str(tmp_path / "w.parquet")]) == 0
    assert polars.read_parquet(tmp_path / "w.parquet").equals(result.weights())
    assert result.weights(id="person").drop("person").equals(result.weights())
    assert result.weights(id="income").columns[:3] == ["row", "income", "label"]


def test_an_id_with_the_name_of_a_column_of_weights_keeps_both(tmp_path: Path) -> None:
    frame = polars.DataFrame({"weight": range(60), "x": np.arange(60) % 5, "y": np.arange(60) % 2})
    frame.write_csv(tmp_path / "t.csv")
    assert main(["run", str(tmp_path / "t.csv"), "umix", "--label=y", *FAST, f"--out={tmp_path}"]) == 0
    (run,) = tmp_path.glob("t-umix-*")
    weights = umix.load_result(run).weights(id="weight")
    assert weights.columns == ["row", "weight (id)", "label", "uncertainty", "weight"]
    assert weights["weight (id)"].to_list() == weights["row"].to_list()


def test_an_id_that_cannot_be_had_is_refused_in_words(run: Path, people: polars.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'person'"):
        umix.load_result(run).weights(id="persn")
    task = umix.task_from_table(people, label="income")
    made = umix.train(task, "umix", net={"name": "mlp", "hidden": [4]}, fit={"epochs": 1}, length=1, eta=3)
    with pytest.raises(UserError, match="id=person must be a column of the run's table, but the run was made of no"):
        made.weights(id="person")
    assert made.weights()["label"].to_list() == people["income"][made.weights()["row"]].to_list()


def test_an_id_of_a_file_that_has_changed_is_refused(people: polars.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    people.write_csv(path)
    assert main(["run", str(path), "umix", "--label=income", "--id=person", *FAST, f"--out={tmp_path}"]) == 0
    (run,) = tmp_path.glob("people-umix-*")
    people[::-1].write_csv(path)
    with pytest.raises(UserError, match=r"id=person must be .* but .*people.csv has changed since the run"):
        umix.load_result(run).weights(id="person")
    path.unlink()
    with pytest.raises(UserError, match=r"id=person must be .* but .*people.csv is not there any more"):
        umix.load_result(run).weights(id="person")
    assert "row" in umix.load_result(run).weights().columns


def test_images_are_named_by_their_files(tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        (tmp_path / "pets" / label).mkdir(parents=True)
        for i in range(12):
            Image.new("RGB", (8, 8), (20 * i, 255 * (label == "cat"), 0)).save(tmp_path / "pets" / label / f"{i}.png")
    fast = [
        "--label-from=folder",
        "--net=linear",
        "--set=epochs=1",
        "--set=length=1",
        "--set=eta=3",
        "--set=size=8",
        "--quiet",
    ]
    assert main(["run", str(tmp_path / "pets"), "umix", *fast, f"--out={tmp_path / 'runs'}"]) == 0
    (run,) = (tmp_path / "runs").glob("pets-umix-*")
    weights = umix.load_result(run).weights()
    assert weights.columns == ["file", "label", "uncertainty", "weight"]
    assert [Path(name).parent.name for name in weights["file"]] == weights["label"].to_list()
    assert all(Path(name).is_file() for name in weights["file"])
