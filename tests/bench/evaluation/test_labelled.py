"""Labelled data: of every kind that a run is trained on, and refused in one sentence where they cannot be evaluated."""

from pathlib import Path

import numpy as np
import polars
import pytest
from PIL import Image

from umix import RunResult, evaluate, load_task, task_from_arrays, task_from_table, train
from umix.errors import UserError


def test_of_the_file_that_was_trained_on_only_test_rows_count(result: RunResult, table: Path) -> None:
    summary = result.summary()
    for data in (table, str(table), None):
        found = evaluate(result, data)
        assert (found.average, found.worst, found.worst_group) == (summary.average, summary.worst, summary.worst_group)
        assert {name: one.hits for name, one in found.rates.items()} == {
            name: one.hits for name, one in summary.unit_rates.items() if one.size
        }
        assert "The run was trained on a part of these rows: only its 179 test rows are evaluated." in found.notes


def test_other_rules_of_selection_are_followed(result: RunResult) -> None:
    found, summary = evaluate(result, threshold="off", select="last"), result.summary("last", "off")
    assert (found.average, found.worst) == (summary.average, summary.worst)


def test_a_file_that_was_changed_since_is_refused_without_a_name(tmp_path: Path, rows) -> None:
    path = tmp_path / "t.csv"
    rows(300).write_csv(path)
    run = train(load_task(str(path), label="y", id="key"), "erm", epochs=1, out=tmp_path / "runs")
    rows(310).write_csv(path)
    with pytest.raises(
        UserError, match=r"t\.csv has changed since the run: which of its rows are test rows is not known"
    ):
        evaluate(run)
    assert evaluate(run, path).rows == 310
    path.unlink()
    with pytest.raises(UserError, match=r"^The data that the run was trained on are not there any more; name labelled"):
        evaluate(run)


BAD = {
    "no label": (lambda frame: frame.drop("y"), "Unknown label column of the new data 'y'"),
    "another class": (
        lambda frame: frame.with_columns(y=frame["y"].replace("yes", "maybe")),
        r"must be one of the classes that the run was trained with \(no, yes\), but it is another in \d+ of 600 rows, as in "
        "'maybe'",
    ),
    "missing labels": (
        lambda frame: frame.with_columns(y=frame["y"].replace("yes", None)),
        r"must be known in every row to be evaluated, but it is missing in \d+ of 600; remove those rows",
    ),
    "no rows": (lambda frame: frame.head(0), "must have rows, but it is empty"),
    "no input": (lambda frame: frame.drop("x"), "must have the columns the model was trained with, but 'x' is missing"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_evaluated_is_refused_in_one_sentence(
    result: RunResult, new: polars.DataFrame, case: str
) -> None:
    change, sentence = BAD[case]
    with pytest.raises(UserError, match=sentence) as caught:
        evaluate(result, change(new))
    assert "\n" not in str(caught.value)


def test_values_in_csv_are_read_as_in_training(tmp_path: Path, rows) -> None:
    code = [f"0{k % 5}" for k in range(900)]
    frame = rows(900).with_columns(
        code=polars.Series([*code[:-1], "x1"]), y=polars.Series([c[-1] in "13" for c in code])
    )
    run = train(task_from_table(frame, label="y", drop=["key"]), "erm", epochs=2)
    new = frame.with_columns(code=polars.Series(code))
    new.write_csv(tmp_path / "new.csv")  # where every code looks like a number
    assert evaluate(run, tmp_path / "new.csv").average == evaluate(run, new).average


def test_a_run_in_memory_is_evaluated_on_frames(rows, new: polars.DataFrame) -> None:
    run = train(task_from_table(rows(300), label="y", drop=["key"]), "erm", epochs=1)
    assert evaluate(run, new).average == (run.predict(new)["label"] == new["y"]).mean()
    with pytest.raises(UserError, match="name labelled data"):
        evaluate(run)


def test_arrays_in_memory_and_in_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, place = rng.normal(size=(300, 3)).astype(np.float32), rng.choice(["land", "water"], 300)
    y = np.where(x[:, 0] > 0, "bird", "none")
    run = train(task_from_arrays(x, y, groups={"place": place}), "erm", epochs=2)
    found = evaluate(run, {"x": x, "y": y, "place": place})
    assert found.rates["bird, land"].size == int(((y == "bird") & (place == "land")).sum())
    np.savez(tmp_path / "train.npz", x=x, y=y, place=place)
    options = {"label": "y", "groups": "place"}
    in_file = train(load_task(str(tmp_path / "train.npz"), **options), "erm", epochs=2, out=tmp_path / "runs")
    np.savez(tmp_path / "new.npz", x=x[:200], y=y[:200], place=place[:200])
    np.save(tmp_path / "new.npy", x[:200])
    polars.DataFrame({"y": y[:200], "place": place[:200]}).write_csv(tmp_path / "rows.csv")
    whole = evaluate(in_file, tmp_path / "new.npz")
    assert whole.average == (in_file.predict(tmp_path / "new.npz")["label"].to_numpy() == y[:200]).mean()
    assert evaluate(in_file, tmp_path / "new.npy", rows=tmp_path / "rows.csv").rates == whole.rates
    assert evaluate(in_file).average == in_file.summary().average
    np.savez(tmp_path / "bare.npz", x=x)
    with pytest.raises(UserError, match="Unknown label column of bare 'y'"):
        evaluate(in_file, tmp_path / "bare.npz")
    with pytest.raises(UserError, match=r"^new\.npy holds inputs only: name a table with .* rows="):
        evaluate(in_file, tmp_path / "new.npy")


def test_texts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(["good", "bad"], 200)
    texts = [f"{'fine nice' if label == 'good' else 'awful poor'} thing {k % 7}" for k, label in enumerate(y)]
    frame = polars.DataFrame({"review": texts, "stars": y, "shop": rng.choice(["a b", "c d"], 200)})
    frame.write_csv(tmp_path / "t.csv")
    frame.head(120).write_csv(tmp_path / "new.csv")
    task = load_task(str(tmp_path / "t.csv"), text="review", label="stars", groups="shop")
    run = train(task, "erm", epochs=3, out=tmp_path / "runs")
    found = evaluate(run, tmp_path / "new.csv")
    assert found.average == (run.predict(tmp_path / "new.csv")["label"] == frame["stars"].head(120)).mean()
    assert found.rates["good, a b"].test_rate is not None
    with pytest.raises(UserError, match=r"^importance= must go with a run on a table"):
        evaluate(run, tmp_path / "new.csv", importance=True)


def photos(folder: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    for kind in ("cat", "dog"):
        (folder / kind).mkdir(parents=True)
        for i in range(n):
            pixels = rng.integers(0, 120, (8, 8, 3)) + (120 if kind == "dog" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / kind / f"{i}.png")


def test_images_in_class_folders_with_a_table_of_groups(tmp_path: Path) -> None:
    photos(tmp_path / "old", 20)
    photos(tmp_path / "new", 8)
    for name, n in (("old", 20), ("new", 8)):
        rows = "".join(f"{kind}/{i}.png,{'ab'[i % 2]}\n" for kind in ("cat", "dog") for i in range(n))
        (tmp_path / f"{name}.csv").write_text("file,place\n" + rows)
    options = {"label_from": "folder", "metadata": tmp_path / "old.csv", "groups": "place", "size": 8}
    run = train(load_task(f"{tmp_path}/old/", **options), "erm", epochs=2, out=tmp_path / "runs")
    found = evaluate(run, tmp_path / "new", metadata=tmp_path / "new.csv")
    labels = run.predict(tmp_path / "new")
    right = labels["path"].str.split("/").list.first() == labels["label"]
    assert found.average == right.mean()
    assert {name: found.rates[name].size for name in run.record.groups} == dict.fromkeys(run.record.groups, 4)
    alone = evaluate(run, tmp_path / "new")  # whose folders name the classes
    assert alone.average == found.average
    assert alone.notes == [
        "Rates by place cannot be shown: the data have no such column, or it is blank; rates are by class."
    ]
    for again in (evaluate(run, tmp_path / "old", metadata=tmp_path / "old.csv"), evaluate(run)):
        assert (again.average, again.worst) == (run.summary().average, run.summary().worst)
