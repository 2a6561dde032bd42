"""SpuCoMNIST is made from MNIST's idx files: pairs of digits, on backgrounds whose colour agrees as often as it is told to."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from umix.bench.spec.presets import presets_of
from umix.cli import main
from umix.data.benchmarks.spuco_mnist import COLORS, FILES, LABELS, SpuCoMNIST
from umix.errors import UserError

PER_DIGIT = {"train": 50, "t10k": 25}
SPLITS = ("train", "val", "test")


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    """Files in MNIST's format: each digit is a bar of its own height, with a few grey values."""
    files = {}
    for part, n in PER_DIGIT.items():
        digits = np.random.default_rng(n).permutation(np.repeat(np.arange(10, dtype=np.uint8), n))
        images = np.zeros((len(digits), 28, 28), dtype=np.uint8)
        for image, digit in zip(images, digits, strict=True):
            image[8 : 10 + digit, 12:16] = 200 + digit
        files |= {f"{part}-images-idx3-ubyte": idx(images), f"{part}-labels-idx1-ubyte": idx(digits)}
    return files


@pytest.fixture
def root(tmp_path: Path, contents: dict[str, bytes]) -> Path:
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def load(root: Path, **options: object):
    return SpuCoMNIST(allow_subset=True, **options).load(root)


def corner_color(split) -> torch.Tensor:
    """The colour of each image, read from its first pixel, which no digit covers."""
    known = {(255, 0, 0): 0, (204, 255, 0): 1, (0, 255, 102): 2, (0, 102, 255): 3, (204, 0, 255): 4}
    return torch.tensor([known[tuple(pixel)] for pixel in split.x[:, :, 0, 0].tolist()])


def digits_drawn(split) -> torch.Tensor:
    return split.x[:, :, 9, 13].amax(dim=1).long() - 200


def test_the_classes_are_pairs_of_digits_and_the_groups_are_class_by_colour(root):
    task = load(root)
    assert task.classes == LABELS == ("0-1", "2-3", "4-5", "6-7", "8-9")
    assert task.groups == tuple(f"{label}, {color}" for label in LABELS for color in COLORS)
    for split in task.splits.values():
        assert torch.equal(split.y, digits_drawn(split) // 2)
        assert torch.equal(split.group, 5 * split.y + corner_color(split))


def test_train_and_val_share_the_training_images_by_digit_and_test_has_the_others(root):
    task = load(root)
    assert {name: digits_drawn(split).bincount().tolist() for name, split in task.splits.items()} == {
        "train": [40] * 10,
        "val": [10] * 10,
        "test": [25] * 10,
    }


@pytest.mark.parametrize(("strength", "own"), [(0.995, 79), (0.9, 72), (1.0, 80), (0.0, 0)])
def test_the_colour_agrees_in_its_share_of_each_training_class_and_the_rest_has_the_others_evenly(root, strength, own):
    train = load(root, strength=strength).splits["train"]
    for label in range(5):
        counts = corner_color(train)[train.y == label].bincount(minlength=5)
        assert counts[label] == own
        others = counts[torch.arange(5) != label]
        assert others.sum() == 80 - own
        assert others.max() - others.min() <= 1


@pytest.mark.parametrize(("name", "each"), [("val", 4), ("test", 10)])
def test_every_class_of_val_and_test_has_all_colours_evenly(root, name, each):
    assert load(root).splits[name].groups.sizes.tolist() == [each] * 25


def test_only_pixels_that_the_digit_leaves_empty_are_coloured(root):
    split = load(root).splits["test"]
    bar = split.x[:, :, 8:10, 12:16]
    assert torch.equal(bar, (200 + digits_drawn(split)).to(torch.uint8).view(-1, 1, 1, 1).expand_as(bar))
    assert torch.equal(split.x[:, :, :8], split.x[:, :, :1, :1].expand_as(split.x[:, :, :8]))
    assert split.example.dtype == torch.float32
    assert split.example.max() <= 1


@pytest.mark.parametrize(
    ("difficulty", "corner", "pixels"),
    [
        ("magnitude_medium", 4, 16),
        ("magnitude_small", 2, 4),
        ("variance_low", 7, 49),
        ("variance_medium", 14, 49),
        ("variance_high", 28, 49),
    ],
)
def test_the_difficulty_says_how_many_pixels_are_coloured_and_where(root, difficulty, corner, pixels):
    task = load(root, difficulty=difficulty)
    x = task.splits["test"].x
    colored = (x != x[:, :1]).any(dim=1)  # digits are grey, colours are not
    assert not colored[:, corner:].any()
    assert not colored[:, :, corner:].any()
    hidden = pixels if difficulty in ("variance_medium", "variance_high") else 0  # some may lie under the digit
    counts = colored.sum(dim=(1, 2))
    assert int(counts.max()) == pixels or (hidden and pixels // 2 < int(counts.min()) <= int(counts.max()) <= pixels)
    same = (colored == colored[:1]).all()
    assert bool(same) == (not hidden)


def test_feature_noise_erases_pixels_of_its_share_of_the_training_digits_only(root):
    plain, noisy = load(root), load(root, feature_noise=0.25)
    grey = {
        name: [(s.x[:, :, 8:19, 12:16] == s.x[:, :1, 8:19, 12:16]).all(dim=1).sum(dim=(1, 2)) for s in pair]
        for name, pair in {n: (plain.splits[n], noisy.splits[n]) for n in SPLITS}.items()
    }
    assert int((grey["train"][1] < grey["train"][0]).sum()) == 100
    assert all(torch.equal(*grey[name]) for name in ("val", "test"))


def test_label_noise_gives_its_share_of_the_training_images_another_class(root):
    noisy = load(root, label_noise=0.1)
    wrong = noisy.splits["train"].y != digits_drawn(noisy.splits["train"]) // 2
    assert int(wrong.sum()) == 40
    assert torch.equal(noisy.splits["val"].y, digits_drawn(noisy.splits["val"]) // 2)


def test_loading_twice_gives_the_same_task_and_every_option_makes_another(root):
    task = load(root)
    assert load(root).fingerprint == task.fingerprint
    options = [{"data_seed": 1}, {"strength": 0.9}, {"difficulty": "variance_high"}, {"val_share": 0.3}]
    assert len({load(root, **option).fingerprint for option in options} | {task.fingerprint}) == 5


@pytest.mark.parametrize("place", ["", "MNIST/raw", "mnist"])
def test_gzipped_files_and_the_folder_of_torchvision_give_the_same_task(root, tmp_path_factory, contents, place):
    above = tmp_path_factory.mktemp("above")
    folder = above / place
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(content))
    assert load(above).fingerprint == load(root).fingerprint


def test_other_counts_than_those_of_mnist_are_refused_with_both_numbers(root):
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte must hold 60,000 images as published, got 500; .*"):
        SpuCoMNIST().load(root)


@pytest.mark.parametrize("given", [None, "empty"])
def test_without_the_files_the_sentence_names_them_and_where_to_get_them(tmp_path, given):
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte, .* umix downloads nothing\.$"):
        load(None if given is None else tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("train-images-idx3-ubyte", lambda content: content[:-1], "says 500×28×28 bytes, but 391999 follow"),
        (
            "train-labels-idx1-ubyte",
            lambda content: b"PK" + content[2:],
            "its header is not that of an idx file with 1",
        ),
        ("t10k-labels-idx1-ubyte", lambda content: idx(np.full(250, 10, np.uint8)), "a label is 10"),
        ("t10k-labels-idx1-ubyte", lambda content: idx(np.zeros(9, np.uint8)), "250 images, 9 labels"),
        ("t10k-images-idx3-ubyte", lambda content: idx(np.zeros((250, 8, 8), np.uint8)), "8×8 pixels instead of 28×28"),
        ("t10k-images-idx3-ubyte", lambda content: b"", "its header is not"),
    ],
    ids=["cut", "other file", "digit 10", "too few labels", "small images", "empty"],
)
def test_a_broken_file_is_named_by_a_run_and_by_the_doctor(root, contents, capsys, name, change, sentence):
    (root / name).write_bytes(change(contents[name]))
    with pytest.raises(UserError, match="umix doctor spuco_mnist") as error:
        load(root)
    assert sentence in str(error.value)
    assert main(["doctor", "spuco_mnist", "--root", str(root)]) == 2
    assert sentence in " ".join(capsys.readouterr().out.split())


def test_a_broken_or_missing_gzip_is_named(root):
    for name in FILES:
        (root / name).unlink()
    (root / "train-images-idx3-ubyte.gz").write_bytes(b"no gzip")
    with pytest.raises(UserError, match="3 do not: train-labels-idx1-ubyte, t10k-images"):
        load(root)


def test_the_doctor_counts_what_a_run_trains_on(root, capsys):
    assert main(["doctor", "spuco_mnist", "--root", str(root), "--allow-subset", "--json"]) == 0
    printed = capsys.readouterr().out
    task = load(root)
    for name, split in task.splits.items():
        assert f'"{name}"' in printed
        assert split.group_sizes(LABELS) == SpuCoMNIST(allow_subset=True).check(root).counts[name]


def test_it_is_trained_with_its_own_preset(root, tmp_path, capsys):
    assert "default" in presets_of("spuco_mnist")
    command = ["run", "spuco_mnist", "erm", "--root", str(root), "--allow-subset", "--set", "fit.epochs=1", "-q"]
    assert main([*command, "--set", "net.channels=[4]", "-o", str(tmp_path / "runs")]) == 0
    assert "worst group" in capsys.readouterr().out
