"""Four moons: two common, two rare, and the side as the spurious attribute."""

import numpy as np
import pytest
import torch

from umix.data.benchmarks.four_moons import FourMoons
from umix.errors import UserError

SPLITS = ["train", "val", "test"]


@pytest.fixture(scope="module")
def task():
    return FourMoons().load()


@pytest.fixture(scope="module")
def exact():
    """The moons without noise."""
    return FourMoons(noise=0.0).load()


def test_the_sizes_are_those_asked_for(task):
    assert task.splits["train"].groups.sizes.tolist() == [800, 40, 40, 800]
    other = FourMoons(sizes=(5, 0, 2, 1), eval_size=3).load()
    assert other.splits["train"].groups.sizes.tolist() == [5, 0, 2, 1]
    assert [other.splits[name].groups.sizes.tolist() for name in ("val", "test")] == [[3] * 4] * 2


@pytest.mark.parametrize("name", SPLITS)
def test_groups_0_and_2_share_a_label_and_1_and_3_the_other(task, name):
    split = task.splits[name]
    assert split.y.tolist() == [{0: 0, 1: 1, 2: 0, 3: 1}[group] for group in split.group.tolist()]
    assert split.y.dtype == torch.int64


def test_examples_are_points_of_the_plane_in_float32(task):
    assert all(task.splits[name].x.dtype == torch.float32 for name in SPLITS)
    assert [tuple(task.splits[name].x.shape) for name in SPLITS] == [(1680, 2), (800, 2), (800, 2)]


@pytest.mark.parametrize(
    ("group", "centre", "upper"),
    [(0, (-2.0, 0.0), True), (1, (-1.0, 0.5), False), (2, (1.0, 0.0), True), (3, (2.0, 0.5), False)],
)
def test_without_noise_every_moon_is_a_half_circle_of_radius_one(exact, group, centre, upper):
    split = exact.splits["train"]
    offset = split.x[split.group == group].double() - torch.tensor(centre).double()
    torch.testing.assert_close(offset.norm(dim=1), torch.ones(len(offset)).double(), atol=1e-6, rtol=0)
    assert ((offset[:, 1] if upper else -offset[:, 1]) >= -1e-6).all()


def test_reading_the_side_is_mostly_right_and_always_wrong_on_the_rare_moons(exact):
    split = exact.splits["train"]
    right = (split.x[:, 0] > 0).long() == split.y
    assert [float(right[split.group == group].double().mean()) for group in range(4)] == [1.0, 0.0, 0.0, 1.0]


def test_noise_is_the_standard_deviation_around_the_moon(exact, task):
    distance = task.splits["train"].x - exact.splits["train"].x
    assert float(distance.std()) == pytest.approx(0.15, rel=0.05)
    assert float(distance.mean()) == pytest.approx(0, abs=0.02)


def test_the_splits_have_different_points(task):
    points = [tuple(point) for name in SPLITS for point in task.splits[name].x.tolist()]
    assert len(set(points)) == len(points)


def test_loading_twice_gives_the_same_task(task):
    assert FourMoons().load().fingerprint == task.fingerprint


@pytest.mark.parametrize(
    "options",
    [{"data_seed": 1}, {"noise": 0.1}, {"eval_size": 199}, {"sizes": (40, 800, 40, 800)}],
    ids=lambda options: next(iter(options)),
)
def test_every_option_makes_another_task(task, options):
    assert FourMoons(**options).load().fingerprint != task.fingerprint


def test_the_size_of_train_does_not_change_val_and_test(task):
    other = FourMoons(sizes=(1, 1, 1, 1)).load()
    assert all(torch.equal(other.splits[name].x, task.splits[name].x) for name in ("val", "test"))


def test_loading_leaves_the_global_generators_alone():
    before = np.random.get_state()[1].tolist(), torch.get_rng_state()
    FourMoons().load()
    assert np.random.get_state()[1].tolist() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"sizes": (1, 2, 3)},
            r"^task\.sizes must be a list of 4 whole numbers in \[0, inf\), got \(1, 2, 3\)\.$",
        ),
        ({"sizes": (1, -2, 3, 4)}, r"^task\.sizes must be a list of 4 whole numbers in \[0, inf\), got -2\.$"),
        ({"eval_size": 0}, r"^task\.eval_size must be a whole number in \[1, inf\), got 0\.$"),
        ({"noise": -1.0}, r"^task\.noise must be a number in \[0, inf\), got -1\.0\.$"),
    ],
    ids=["three sizes", "negative size", "eval_size", "noise"],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        FourMoons(**options)
