"""Images are decoded once, and cached or streamed the numbers are the same."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import ExifTags, Image, ImageOps

from umix.bench.runs.execute import execute
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.data.images.decoded_cache import cached
from umix.data.images.image_files import Images, decode
from umix.data.inputs import Mapped
from umix.data.loader import batches
from umix.data.registry import load_task
from umix.errors import MachineError, UserError
from umix.models.cnn import CNN
from umix.training.context import Context
from umix.training.evaluate import correctness, outputs
from umix.training.fit_settings import FitSettings
from umix.training.history import History
from umix.training.objective import MeanRisk

TINY = {"size": 16, "channels": [2], "epochs": 2, "start": 0, "length": 1, "task.allow_subset": True}


@pytest.fixture
def task(waterbirds):
    return load_task("waterbirds", waterbirds(), allow_subset=True, size=16)


def parameters(net):
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


@pytest.mark.parametrize(
    ("mode", "suffix"), [("L", "png"), ("P", "png"), ("RGBA", "png"), ("RGB", "png"), ("L", "jpg"), ("CMYK", "jpg")]
)
def test_images_of_every_kind_become_three_channels(tmp_path, mode, suffix):
    Image.new("RGB", (9, 7), (10, 200, 30)).convert(mode).save(tmp_path / f"a.{suffix}")
    pixels = decode(tmp_path / f"a.{suffix}", height=5, width=4)
    assert (pixels.shape, pixels.dtype) == ((3, 5, 4), np.uint8)


@pytest.mark.parametrize("turned", [None, 1, 3, 6, 7])
@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tif"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_images_are_decoded_as_pillow_decodes_turns_and_scales_them(tmp_path, mode, suffix, turned):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)).convert(mode)
    exif = Image.Exif()
    if turned is not None:
        exif[ExifTags.Base.Orientation] = turned
    image.save(tmp_path / f"a.{suffix}", exif=exif)
    with Image.open(tmp_path / f"a.{suffix}") as file:
        expected = ImageOps.exif_transpose(file).convert("RGB")
    assert (expected.size == (9, 12)) == (turned in (6, 7)) or suffix == "tif"  # Pillow turns only some of these
    assert np.array_equal(decode(tmp_path / f"a.{suffix}"), np.asarray(expected).transpose(2, 0, 1))
    scaled = np.asarray(expected.resize((6, 5), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.array_equal(decode(tmp_path / f"a.{suffix}", height=5, width=6), scaled)


def test_an_unreadable_image_is_named_and_leaves_no_cache(task, tmp_path):
    victim = task.splits["val"].x.folder / task.splits["val"].x.files[3]
    victim.write_bytes(victim.read_bytes()[:300])
    with pytest.raises(UserError, match=rf"{victim.name} must be an image that can be decoded"):
        cached(task, tmp_path / "cache")
    assert [path.name.rpartition("-")[0] for path in (tmp_path / "cache").glob("*.npy")] == ["waterbirds-train"]


def test_a_cached_task_gives_the_batches_of_the_streamed_one(task, tmp_path):
    mapped = cached(task, tmp_path)
    assert mapped.fingerprint == task.fingerprint
    assert all(isinstance(split.x, Mapped) for split in mapped.splits.values())
    order = torch.tensor([3, 0, 8, 3, 5])
    for rng in (None, 0):
        streams = [None if rng is None else np.random.default_rng(rng) for _ in range(2)]
        pairs = zip(
            batches(task.splits["train"], order, batch_size=2, augment=streams[0]),
            batches(mapped.splits["train"], order, batch_size=2, augment=streams[1]),
            strict=True,
        )
        for streamed, sliced in pairs:
            assert streamed.x.shape == (len(streamed.y), 3, 16, 16)
            assert torch.equal(streamed.x, sliced.x)
            assert torch.equal(streamed.y, sliced.y)


def test_of_several_broken_images_the_first_of_the_order_is_named(task):
    split = task.splits["train"]
    for row in (5, 3):
        victim = split.x.folder / split.x.files[row]
        victim.write_bytes(victim.read_bytes()[:300])
    with pytest.raises(UserError, match=rf"{split.x.files[5]} must be an image that can be decoded"):
        list(batches(split, torch.tensor([0, 1, 5, 2, 3]), batch_size=5))


def test_rows_of_a_cached_task_are_those_of_the_streamed_one(task, tmp_path):
    first, second = task.splits["train"], cached(task, tmp_path).splits["train"]
    for index in (torch.tensor([7, 2, 2, 5]), torch.tensor([3, 0])):
        first, second = first.rows(index), second.rows(index)
        assert first.fingerprint == second.fingerprint
        assert (len(second.x), second.transform, second.augment) == (len(index), first.transform, first.augment)
        assert all(torch.equal(first.x[row], second.x[row]) for row in range(len(index)))
        assert torch.equal(second.x.take(torch.tensor([1])), second.x[1][None])


def test_nobody_can_write_through_a_cached_image(task, tmp_path):
    split = cached(task, tmp_path).splits["train"]
    before = split.x[0]
    split.x[0].zero_()
    split.x.take(torch.tensor([0])).zero_()
    assert torch.equal(split.x[0], before)


def test_a_second_load_decodes_nothing(task, tmp_path, monkeypatch):
    told, counted = [], []
    cached(task, tmp_path, announce=told.append, advance=counted.append)
    (sentence,) = told
    assert "Decoding 25 images once" in sentence
    assert sum(counted) == 25
    monkeypatch.setattr(Images, "pixels", lambda self, index: pytest.fail("decoded again"))
    again = cached(task, tmp_path, announce=told.append)
    assert len(told) == 1
    assert again.splits["train"].x[0].shape == (3, 18, 18)


def test_an_image_written_since_is_decoded_again(waterbirds, tmp_path):
    root, cache = waterbirds(), tmp_path / "cache"
    first = cached(load_task("waterbirds", root, allow_subset=True, size=16), cache)
    images = first.splits["train"]
    path = root / "waterbirds_v1.0" / load_task("waterbirds", root, allow_subset=True).splits["train"].x.files[0]
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    again = cached(load_task("waterbirds", root, allow_subset=True, size=16), cache)
    assert len(list(cache.glob("waterbirds-train-*.npy"))) == 2
    assert len(list(cache.glob("waterbirds-val-*.npy"))) == 1
    assert again.splits["train"].fingerprint == images.fingerprint  # times of files are not data


def test_a_full_disk_is_said_before_anything_is_written(task, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=5))
    with pytest.raises(
        MachineError, match=r"needs 0\.0 MB in .* cache= or decode images in every epoch with stream=True"
    ):
        cached(task, tmp_path / "deep" / "cache")
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_cache_is_made_again(task, tmp_path, damage):
    cached(task, tmp_path)
    (path,) = tmp_path.glob("waterbirds-val-*.npy")
    whole, told = path.read_bytes(), []
    path.write_bytes(path.read_bytes()[:500]) if damage == "cut" else np.save(path, np.zeros((2, 3), np.uint8))
    cached(task, tmp_path, announce=told.append)
    assert path.read_bytes() == whole
    assert told[0].startswith(f"warning: {path} is damaged (")
    assert told[0].endswith("; the images are decoded again.")
    assert told[1].startswith("Decoding ")


def test_tasks_without_images_pass_through(moons, tmp_path):
    assert cached(moons, tmp_path / "none").splits == dict(moons.splits)
    assert not (tmp_path / "none").exists()


def test_runs_give_the_same_counts_cached_and_streamed(waterbirds, tmp_path):
    root, spec = waterbirds(), RunSpec(task="waterbirds", method="umix", settings=TINY)
    first = execute(spec, paths=RunPaths(tmp_path / "a", root=root))
    second = execute(spec, paths=RunPaths(tmp_path / "b", root=root, stream=True))
    assert (tmp_path / "a" / "cache").is_dir()
    assert not (tmp_path / "b" / "cache").exists()
    for name in ("val", "test"):
        np.testing.assert_array_equal(first.counts[name].hits, second.counts[name].hits)
    assert first.fingerprint == second.fingerprint
    assert {name: stage.key for name, stage in first.stages.items()} == {n: s.key for n, s in second.stages.items()}


class StopError(Exception):
    """The process was killed."""


def test_a_killed_fit_with_augmentation_goes_on_bit_by_bit(task, tmp_path):
    mapped, fit = cached(task, tmp_path / "cache"), FitSettings(epochs=3, batch_size=4, lr=0.05)

    def context(directory: Path | None = None) -> Context:
        return Context(mapped, CNN(channels=(2,)), fit, directory=directory)

    expected = parameters(context().fit(MeanRisk()).net)
    killed = context(tmp_path / "run")
    observe = History.observe

    def stop(self, net, epoch):
        if epoch == 1:
            raise StopError
        observe(self, net, epoch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(History, "observe", stop)
        with pytest.raises(StopError):
            killed.fit(MeanRisk())
    assert torch.equal(parameters(context(tmp_path / "run").fit(MeanRisk()).net), expected)
    plain = replace(mapped, splits={**mapped.splits, "train": replace(mapped.splits["train"], augment=None)})
    assert not torch.equal(parameters(Context(plain, CNN(channels=(2,)), fit).fit(MeanRisk()).net), expected)


def test_evaluation_sees_the_transformed_images_and_draws_nothing(task, tmp_path):
    split = cached(task, tmp_path).splits["train"]
    net = CNN(channels=(2,)).build(split.example, 2)
    expected = torch.cat([net(split.transform(split.x[row][None])) for row in range(len(split))])
    torch.testing.assert_close(outputs(net, split, batch_size=4), expected.detach())
    assert torch.equal(correctness(net, split, batch_size=4), expected.argmax(1) == split.y)
    in_memory = type(split)(split.x.take(torch.arange(len(split))), split.y, split.groups, None, split.transform)
    assert torch.equal(correctness(net, in_memory, batch_size=4), expected.argmax(1) == split.y)


def test_a_format_that_pillow_hands_to_another_program_is_not_opened(tmp_path):
    path = tmp_path / "cat.png"
    Image.new("RGB", (9, 9)).save(path, "EPS")
    with pytest.raises(
        UserError, match=r"must be an image that can be decoded, but it cannot \(cannot identify image file"
    ):
        Images(tmp_path, ["cat.png"], height=8, width=8).pixels(0)
