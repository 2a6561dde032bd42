"""Real digits, partitioned over the splits, in a colour that agrees with the label as often as it is told to."""

from collections import Counter

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from umix.data.benchmarks.colored_digits import ColoredDigits
from umix.errors import UserError

SPLITS = ["train", "val", "test"]


@pytest.fixture(scope="module")
def task():
    return ColoredDigits().load()


def _color(split):
    """The channel each digit is drawn in."""
    return split.x.flatten(2).sum(dim=2).argmax(dim=1)


def _once(x, name):
    """The examples of a split without the second drawing of each."""
    return x if name == "train" else x[: len(x) // 2]


def _agreement(split, label):
    of_label = split.y == label
    return int((_color(split)[of_label] == label).sum()), int(of_label.sum())


def test_the_splits_partition_the_1797_real_digits(task):
    digits = load_digits()
    real = Counter(
        (image.tobytes(), int(target >= 5))
        for image, target in zip((digits.images / 16).astype(np.float32), digits.target, strict=True)
    )
    drawn = Counter(
        (image.numpy().tobytes(), int(label))
        for name in SPLITS
        for image, label in zip(_once(task.splits[name].x, name).sum(dim=1), task.splits[name].y, strict=False)
    )
    assert drawn.total() == 1797
    assert drawn == real


@pytest.mark.parametrize("name", ["val", "test"])
def test_every_digit_of_val_and_test_is_drawn_in_both_colours(task, name):
    x = task.splits[name].x
    red, green = x[: len(x) // 2], x[len(x) // 2 :]
    assert torch.equal(red[:, 0], green[:, 1])
    assert not red[:, 1].any()
    assert not green[:, 0].any()


def test_train_has_six_tenths_and_the_rest_is_halved(task):
    assert [len(task.splits[name]) for name in SPLITS] == [1078, 2 * 359, 2 * 360]


@pytest.mark.parametrize("name", SPLITS)
def test_an_example_is_a_pair_of_8_by_8_channels_with_values_in_0_to_1(task, name):
    x = task.splits[name].x
    assert x.shape[1:] == (2, 8, 8)
    assert x.dtype == torch.float32
    assert (x.min(), x.max()) == (0, 1)


@pytest.mark.parametrize("name", SPLITS)
def test_exactly_one_colour_channel_is_not_zero(task, name):
    drawn = task.splits[name].x.flatten(2).any(dim=2)
    assert (drawn.sum(dim=1) == 1).all()


@pytest.mark.parametrize("name", SPLITS)
def test_the_four_groups_are_the_cells_of_label_and_colour(task, name):
    split = task.splits[name]
    assert torch.equal(split.group, 2 * split.y + _color(split))
    assert (split.groups.sizes > 0).all()


def test_the_groups_and_classes_have_names(task):
    assert task.classes == ("below five", "five or more")
    assert task.groups == ("below five, red", "below five, green", "five or more, red", "five or more, green")


@pytest.mark.parametrize("label", [0, 1])
def test_the_colour_agrees_with_each_label_in_exactly_its_share_of_train(task, label):
    agree, n = _agreement(task.splits["train"], label)
    assert agree == round(0.95 * n)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", ["val", "test"])
def test_the_colour_says_nothing_about_the_label_in_val_and_test(task, name, label):
    agree, n = _agreement(task.splits[name], label)
    assert agree == round(0.5 * n)


@pytest.mark.parametrize("agreement", [0.0, 0.3, 1.0])
def test_the_agreement_can_be_set_and_is_of_train_only(task, agreement):
    other = ColoredDigits(agreement=agreement).load()
    for label in (0, 1):
        agree, n = _agreement(other.splits["train"], label)
        assert agree == round(agreement * n)
        agree, n = _agreement(other.splits["val"], label)
        assert agree == round(0.5 * n)
    assert torch.equal(other.splits["train"].y, task.splits["train"].y)


def test_the_train_share_can_be_set():
    task = ColoredDigits(train_share=0.2).load()
    assert [len(task.splits[name]) for name in SPLITS] == [359, 2 * 719, 2 * 719]


def test_loading_twice_gives_the_same_task(task):
    assert ColoredDigits().load().fingerprint == task.fingerprint


def test_loading_leaves_the_global_generators_alone():
    before = np.random.get_state()[1].tolist(), torch.get_rng_state()
    ColoredDigits().load()
    assert np.random.get_state()[1].tolist() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


@pytest.mark.parametrize(
    "options",
    [{"data_seed": 1}, {"agreement": 0.9}, {"train_share": 0.5}],
    ids=["data_seed", "agreement", "train_share"],
)
def test_every_option_makes_another_task(task, options):
    assert ColoredDigits(**options).load().fingerprint != task.fingerprint


def test_another_data_seed_deals_the_digits_anew(task):
    other = ColoredDigits(data_seed=1).load()
    assert not torch.equal(other.splits["train"].x.sum(dim=1), task.splits["train"].x.sum(dim=1))


@pytest.mark.parametrize("name", SPLITS)
def test_every_input_and_label_is_in_the_fingerprint_and_groups_are_in_that_of_the_task(name):
    task = ColoredDigits().load()
    before = task.splits[name].fingerprint, task.fingerprint
    fresh = ColoredDigits().load()
    fresh.splits[name].x[17, 1, 3, 3] += 0.5
    assert fresh.splits[name].fingerprint != before[0]
    assert fresh.fingerprint != before[1]
    fresh = ColoredDigits().load()
    fresh.splits[name].y[-1] = 1 - fresh.splits[name].y[-1]
    assert fresh.splits[name].fingerprint != before[0]
    assert fresh.fingerprint != before[1]
    fresh = ColoredDigits().load()
    fresh.splits[name].member[5] = fresh.splits[name].member[5].flip(0)
    assert fresh.splits[name].fingerprint == before[0]
    assert fresh.fingerprint != before[1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"agreement": 1.5}, r"^task\.agreement must be a number in \[0, 1\], got 1\.5\.$"),
        ({"train_share": 1.0}, r"^task\.train_share must be a number in \(0, 1\), got 1\.0\.$"),
        ({"data_seed": -1}, r"^task\.data_seed must be a whole number in \[0, 4294967296\), got -1\.$"),
        ({"agrement": 0.5}, "did you mean 'agreement'"),
    ],
    ids=["agreement", "train_share", "data_seed", "typo"],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        ColoredDigits(**options)
