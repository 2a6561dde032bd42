"""Arrays of one's own: from a file or memory to a task, and back from a saved run."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch

from umix import limits, task_from_arrays
from umix.data import arrays as own_arrays
from umix.data.arrays import ArrayPreprocessing, ArraySource, read_array
from umix.data.inputs import Inputs
from umix.data.loader import batches
from umix.data.registry import load_task
from umix.data.task import Task
from umix.errors import UserError

N = 60


def birds(**changed: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.normal(3, 2, size=(N, 4)).astype(np.float32),
        "y": np.arange(N) % 2,
        "place": np.array(["land", "land", "water"] * 20),
        "split": np.array([0, 0, 0, 0, 1, 2] * 10),
    }
    return {**arrays, **changed}


def npz(folder: Path, **changed: Any) -> Path:
    arrays = {name: array for name, array in birds(**changed).items() if array is not None}
    np.savez(folder / "birds.npz", **arrays)
    return folder / "birds.npz"


def load(folder: Path, changed: dict[str, Any] | None = None, **options: Any) -> Task:
    options = {"label": "y", "groups": "place", "split": "split", **options}
    return load_task(str(npz(folder, **(changed or {}))), **options)


def test_an_npz_file_a_table_beside_an_npy_file_and_arrays_in_memory_are_the_same_task(tmp_path: Path) -> None:
    arrays = birds()
    np.save(tmp_path / "birds.npy", arrays["x"])
    polars.DataFrame({name: arrays[name] for name in ("y", "place", "split")}).write_csv(tmp_path / "rows.csv")
    from_npz = load(tmp_path)
    beside = load_task(
        str(tmp_path / "birds.npy"), rows=tmp_path / "rows.csv", label="y", groups="place", split="split"
    )
    x, y, split = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"]), arrays["split"].tolist()
    in_memory = task_from_arrays(x, y, groups={"place": arrays["place"]}, split=split)
    assert from_npz.groups == ("y=0, land", "y=0, water", "y=1, land", "y=1, water")
    assert from_npz.fingerprint == beside.fingerprint == in_memory.fingerprint


def test_inputs_are_standardised_by_the_training_rows_alone(tmp_path: Path) -> None:
    x, split = birds()["x"].astype(np.float64), birds()["split"]
    train = x[split == 0]
    expected = (x - train.mean(axis=0)) / train.std(axis=0)
    task = load(tmp_path)
    for code, name in enumerate(("train", "val", "test")):
        assert task.splits[name].x.numpy() == pytest.approx(expected[split == code], abs=1e-5)
    as_given = load(tmp_path, standardize=False).splits["val"].x.numpy()
    assert np.array_equal(as_given, birds()["x"][split == 1])


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", ">f4", "bool"])
def test_every_number_type_becomes_float32(tmp_path: Path, dtype: str) -> None:
    x = birds()["x"].astype(dtype)
    task = load(tmp_path, {"x": x}, standardize=False)
    assert task.splits["test"].x.dtype == torch.float32
    assert np.array_equal(task.splits["test"].x.numpy(), x[birds()["split"] == 2].astype(np.float32))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pixels_come_channels_first_and_are_standardised_by_channel(tmp_path: Path, dtype: type) -> None:
    images = np.random.default_rng(0).integers(0, 256, (N, 5, 6, 3)).astype(dtype)
    last, first = load(tmp_path, {"x": images}), load(tmp_path, {"x": np.moveaxis(images, -1, 1).copy()})
    x = last.splits["train"].x
    assert x.shape[1:] == (3, 5, 6)
    assert torch.equal(x, first.splits["train"].x)
    assert x.mean(dim=(0, 2, 3)).tolist() == pytest.approx([0, 0, 0], abs=1e-5)
    assert x.std(dim=(0, 2, 3), correction=0).tolist() == pytest.approx([1, 1, 1], abs=1e-5)


def test_a_constant_input_is_zero_and_far_values_are_cut(tmp_path: Path) -> None:
    x = birds()["x"]
    x[:, 1] = 7.0
    x[birds()["split"] == 2, 0] = 1e6
    test = load(tmp_path, {"x": x}).splits["test"].x
    assert test[:, 1].tolist() == [0] * 10
    assert test[:, 0].tolist() == [10] * 10


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_an_array_too_large_for_memory_stays_in_its_file_and_gives_the_same_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    shape = (N, 4, 4, 3) if dtype == "uint8" else (N, 7)
    np.save(tmp_path / "birds.npy", np.random.default_rng(0).uniform(0, 255, shape).astype(dtype))
    polars.DataFrame({"y": birds()["y"]}).write_csv(tmp_path / "rows.csv")
    options = {"rows": tmp_path / "rows.csv", "label": "y"}
    whole = load_task(str(tmp_path / "birds.npy"), **options)
    monkeypatch.setattr(own_arrays, "_IN_MEMORY", 100)
    mapped = load_task(str(tmp_path / "birds.npy"), **options)
    for name in ("train", "test"):
        assert isinstance(mapped.splits[name].x, Inputs)
        order = torch.arange(len(whole.splits[name])).flip(0)
        for ours, theirs in zip(
            batches(mapped.splits[name], order, batch_size=5),
            batches(whole.splits[name], order, batch_size=5),
            strict=True,
        ):
            assert torch.equal(ours.x, theirs.x)
    again = load_task(str(tmp_path / "birds.npy"), **options)
    other = load_task(str(tmp_path / "birds.npy"), **options, standardize=False)
    assert mapped.fingerprint == again.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([True, False] * 30), ("false", "true")),
        (np.array([b"no", b"yes"] * 30), ("no", "yes")),
        (np.array([[2.0], [10.0]] * 30), ("2", "10")),
        (np.array([1, 2] * 30, dtype=">i4"), ("1", "2")),
    ],
    ids=["bool", "bytes", "a column of floats", "big-endian"],
)
def test_labels_are_numbers_texts_or_truth_values(tmp_path: Path, labels: np.ndarray, classes: tuple[str, ...]) -> None:
    assert load(tmp_path, {"y": labels}).classes == classes


def test_without_a_split_the_rows_are_divided_with_every_groups_share(tmp_path: Path) -> None:
    task = load(tmp_path, {"split": None}, split=None)
    assert [len(task.splits[name]) for name in ("train", "val", "test")] == [36, 12, 12]
    assert task.splits["test"].groups.sizes.tolist() == [4, 2, 4, 2]
    assert load(tmp_path, {"split": None}, split=None, data_seed=1).fingerprint != task.fingerprint


def test_what_was_learned_survives_the_way_to_disk(tmp_path: Path) -> None:
    arrays = birds(name=np.array([f"bird {i}" for i in range(N)]))
    task = load(tmp_path, {"name": arrays["name"]}, id="name")
    task.preprocessing.save(tmp_path)
    reader = ArrayPreprocessing.load(tmp_path)
    new = reader.inputs(tmp_path / "birds.npz")
    assert torch.equal(new.x[torch.from_numpy(arrays["split"] == 1)], task.splits["val"].x)
    assert new.ids["name"].to_list() == arrays["name"].tolist()
    assert torch.equal(reader.inputs(arrays["x"]).x, new.x)
    np.save(tmp_path / "new.npy", arrays["x"].astype(np.float64))
    beside = reader.inputs(tmp_path / "new.npy")
    assert torch.equal(beside.x, new.x)
    assert beside.notes == ("new.npy has no array 'name': predictions are in the order of its rows.",)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ({"x": np.zeros((3, 5))}, r"rows of the shape \[4\] that the model was trained with, got \[5\]"),
        ({"z": np.zeros((3, 4))}, r"Unknown array of new.npz 'x'. Known: z"),
        ({"x": np.full((3, 4), np.nan)}, r"3 of 3 rows hold NaN"),
        ({"x": np.zeros((0, 4))}, r"must have rows"),
    ],
    ids=["shape", "name", "nan", "empty"],
)
def test_new_arrays_unlike_those_of_training_are_refused(tmp_path: Path, new: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "new.npz", **new)
    with pytest.raises(UserError, match=message):
        load(tmp_path).preprocessing.inputs(tmp_path / "new.npz")
    with pytest.raises(UserError, match=r"must end in .npz or .npy"):
        load(tmp_path).preprocessing.inputs("new.csv")


def holes() -> np.ndarray:
    x = birds()["x"]
    x[[7, 20], 2], x[31, 0] = np.nan, -np.inf
    return x


REFUSED = {
    "no such input": (
        {},
        {"x": "xs"},
        r"^Unknown array of birds.npz 'xs'; did you mean 'x'\? Known: place, split, x, y",
    ),
    "no such label": ({}, {"label": "label"}, r"^Unknown label column of birds.npz 'label'.* Known: place, split, y"),
    "holes": ({"x": holes()}, {}, r"3 of 60 rows hold NaN or infinity, the first is row 7 "),
    "too large for float32": ({"x": np.full((N, 2), 1e300)}, {}, "60 of 60 rows hold NaN or infinity"),
    "objects": ({"x": np.array([[{}]] * N)}, {}, r"'x' of birds.npz must hold plain numbers .* never read"),
    "objects as labels": ({"y": np.array([{}] * N)}, {}, r"'y' of birds.npz must hold plain numbers or texts"),
    "texts": ({"x": np.array([["a"]] * N)}, {}, "The inputs 'x' must be numbers, got <U1"),
    "complex": ({"x": np.ones((N, 2), complex)}, {}, "must be numbers, got complex128"),
    "one number per row": ({"x": np.arange(60.0)}, {}, r"got \[60\]; reshape them to \[n, 1\]"),
    "no numbers": ({"x": np.ones((N, 0))}, {}, r"at least one number per row, got \[60, 0\]"),
    "no rows": ({"x": np.ones((0, 3))}, {}, "must have rows, but there are none"),
    "other lengths": ({"place": np.arange(59)}, {}, r"'place' must have a value for each of the 60 rows .* got 59"),
    "one-hot labels": ({"y": np.eye(N)}, {}, r"'y' must hold one value per row, \[60\], got \[60, 60\]"),
    "dates": ({"place": np.array(["2020-01-01"] * N, "datetime64[D]")}, {}, r"must hold numbers, texts, .*datetime64"),
    "bad bytes": ({"place": np.array([b"\xff"] * N)}, {}, r"texts of the array 'place' must be UTF-8"),
    "one class": ({"y": np.ones(N)}, {}, "at least two classes, but every row says '1'"),
    "a quantity": ({"y": np.linspace(0, 1, N)}, {}, "60 distinct values in 60 rows, like a quantity"),
    "unknown split": (
        {"split": np.arange(N) % 4},
        {},
        "must say train, val or test .* 15 of 60 do not; the first says 3",
    ),
    "two roles": ({}, {"split": "y"}, "'y' must have one role"),
    "missing labels": ({"y": np.where(np.arange(N) < 3, np.nan, np.arange(N) % 2)}, {}, "missing in 3 of 60"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arrays_that_cannot_be_a_task_are_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    changed, options, message = REFUSED[case]
    with pytest.raises(UserError, match=message):
        load(tmp_path, changed, **options)


def test_files_that_cannot_be_read_are_refused_in_one_sentence(tmp_path: Path) -> None:
    whole, single = npz(tmp_path).read_bytes(), io.BytesIO()
    np.save(single, np.ones(3))
    cases = {
        "absent.npz": (None, "There is no file"),
        "empty.npz": (b"", "must be a whole npz file"),
        "text.npz": (b"x,y\n1,2\n", "text.npz must be a whole npz file, but it is none"),
        "cut.npz": (whole[: len(whole) // 2], "must be a whole npz file"),
        "flipped.npz": (whole[:400] + b"\xff\xff\xff" + whole[403:], "must be a whole npz file"),
        "single.npz": (single.getvalue(), "rename it to .npy"),
        "alone.npy": (b"", "name a table with the label of each of its rows, in order, with rows="),
    }
    for name, (content, message) in cases.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=message):
            load_task(str(tmp_path / name), label="y")


def test_an_npy_file_is_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[{}]]), allow_pickle=True)
    polars.DataFrame({"y": [1]}).write_csv(tmp_path / "rows.csv")
    with pytest.raises(UserError, match=r"x.npy must hold plain numbers or texts, but it holds Python objects"):
        load_task(str(tmp_path / "x.npy"), rows=tmp_path / "rows.csv", label="y")


def test_a_missing_label_and_rows_of_another_number_are_told_with_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"needs label= with the array .* there are x, y, place, split"):
        ArraySource(path=npz(tmp_path)).check_files()
    np.save(tmp_path / "x.npy", birds()["x"])
    rows = tmp_path / "rows.csv"
    polars.DataFrame({"y": birds()["y"][:50]}).write_csv(rows)
    with pytest.raises(UserError, match=r"needs label= with the column .* there are y"):
        ArraySource(path=tmp_path / "x.npy", rows=rows).check_files()
    with pytest.raises(UserError, match=r"rows.csv must have a row for each of the 60 rows of x.npy, got 50"):
        ArraySource(path=tmp_path / "x.npy", rows=rows, label="y").load()


def test_the_contents_decide_the_source_and_their_folder_does_not(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = ArraySource(path=npz(tmp_path / "a"), label="y"), ArraySource(path=npz(tmp_path / "b"), label="y")
    assert first.as_json() == second.as_json()
    assert first.title == "birds"
    other = ArraySource(path=npz(tmp_path / "b", x=np.ones((N, 2))), label="y")
    assert other.content != first.content


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_pipe_called_as_an_array_is_refused_without_waiting_for_a_writer(tmp_path, suffix):
    os.mkfifo(tmp_path / f"x{suffix}")
    with pytest.raises(UserError, match=r"^There is no file .*/x\.np"):
        read_array(tmp_path / f"x{suffix}", "x")


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_file_that_ends_early_is_refused(tmp_path, suffix):
    (np.save if suffix == ".npy" else np.savez)(tmp_path / f"x{suffix}", np.zeros((400, 2)))
    content = (tmp_path / f"x{suffix}").read_bytes()
    (tmp_path / f"x{suffix}").write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=rf"x\{suffix} must be a whole {suffix[1:]} file, but it "):
        read_array(tmp_path / f"x{suffix}", "arr_0")


def test_an_archive_larger_than_memory_is_refused_by_its_size(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "rows.npz", x=np.zeros((1000, 1000), dtype=np.float32))
    assert read_array(tmp_path / "rows.npz", "x").shape == (1000, 1000)
    monkeypatch.setattr(limits, "memory", lambda: 10**6)
    with pytest.raises(UserError, match=r"The array 'x' of rows\.npz takes 0\.0 GB of memory, .* save it as \.npy"):
        read_array(tmp_path / "rows.npz", "x")


def test_new_inputs_that_are_one_number_are_refused(tmp_path):
    reader = ArrayPreprocessing.fit(np.eye(4, 3), np.arange(4), x="x", standardize=True, id="id")
    np.savez(tmp_path / "new.npz", x=np.float32(1), id=np.arange(4))
    with pytest.raises(
        UserError, match=r"^The inputs 'x' must be \[rows, \.\.\.\] with at least one number per row, got \[\]"
    ):
        reader.inputs(tmp_path / "new.npz")
