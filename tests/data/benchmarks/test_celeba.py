"""CelebA is read from the CSV files and from the original text files alike."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from umix.bench.spec.presets import presets_of
from umix.cli import main
from umix.data.registry import load_task
from umix.errors import UserError


@pytest.mark.parametrize("kind", ["csv", "txt"])
def test_both_kinds_of_tables_give_the_same_task(celeba, kind):
    task = load_task("celeba", celeba(kind), allow_subset=True)
    train = task.splits["train"]
    assert train.groups.names == ("not blond, female", "not blond, male", "blond, female", "blond, male")
    assert train.groups.sizes.tolist() == [3, 2, 2, 2]
    assert torch.equal(train.group, 2 * train.y + train.attribute)
    assert train.x.files[0] == "img_align_celeba/000001.jpg"
    assert task.splits["test"].groups.sizes.tolist() == [2, 2, 2, 2]


def test_a_doubled_folder_of_images_is_found(celeba):
    train = load_task("celeba", celeba(nested=True), allow_subset=True).splits["train"]
    assert train.x[0].shape == (3, 218, 178)


def test_pixels_are_stored_as_they_are_and_evaluated_on_the_central_square(celeba):
    root = celeba()
    train = load_task("celeba", root, allow_subset=True).splits["train"]
    pixels = np.asarray(Image.open(root / "celebA_v1.0" / train.x.files[0])).transpose(2, 0, 1)
    assert np.array_equal(train.x[0].numpy(), pixels)
    assert (train.transform.crop, train.transform.size) == (178, 224)
    assert train.example.shape == (3, 224, 224)


def test_small_sizes_are_stored_small(celeba):
    train = load_task("celeba", celeba(), allow_subset=True, size=64).splits["train"]
    assert (train.x[0].shape, train.example.shape) == ((3, 78, 64), (3, 64, 64))


def test_other_counts_than_published_are_refused(celeba):
    with pytest.raises(UserError, match=r"must hold 71,629 images of 'not blond, female' as published, got 3"):
        load_task("celeba", celeba())


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("list_eval_partition.csv", ",2", ",3", "list_eval_partition.csv: partition must be 0 or 1 or 2"),
        ("list_eval_partition.csv", "000002.jpg,0\r\n", "", "must be in list_eval_partition.csv, but 1 do not: 000002"),
        (
            "list_attr_celeba.csv",
            ",1,1,-1",
            ",1,0,-1",
            r"Blond_Hair must be -1 or 1 in every row, but \d+ do not: line",
        ),
        ("list_attr_celeba.csv", "Blond_Hair", "Blonde", "Unknown column .*'Blond_Hair'"),
        ("list_attr_celeba.csv", "000002.jpg", "000001.jpg", "must occur once each, but 1 do not: '000001.jpg'"),
    ],
    ids=["split", "join", "trait", "column", "duplicate"],
)
def test_a_broken_table_is_refused_in_one_sentence(celeba, file, old, new, sentence):
    root = celeba()
    path = root / "celebA_v1.0" / file
    text = path.read_bytes().decode()
    assert old in text
    path.write_bytes(text.replace(old, new).encode())
    with pytest.raises(UserError, match=sentence):
        load_task("celeba", root, allow_subset=True)


def test_a_torn_text_table_is_refused(celeba):
    root = celeba("txt")
    path = root / "celebA_v1.0" / "list_attr_celeba.txt"
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(UserError, match=r"must have 6 columns, but row 25 has"):
        load_task("celeba", root, allow_subset=True)


def test_an_absent_folder_says_what_to_get(tmp_path):
    with pytest.raises(UserError, match=r"celebA_v1\.0.*list_attr_celeba\.csv.*img_align_celeba"):
        load_task("celeba", tmp_path)


def test_the_doctor_reads_text_tables_too(celeba, capsys):
    assert main(["doctor", "celeba", "--root", str(celeba("txt")), "--allow-subset", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["images"], found["counts"]["train"]["blond, male"]) == ("look at this", 25, 2)


@pytest.mark.parametrize("preset", presets_of("celeba"))
def test_every_preset_trains(celeba, train_presets, preset):
    train_presets("celeba", celeba(), preset)
