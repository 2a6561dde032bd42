"""Waterbirds is read as its archive lies on disk, and nothing else passes for it."""

import json
from pathlib import Path

import pytest
import torch

from umix.bench.spec.presets import presets_of
from umix.cli import main
from umix.data.benchmarks.waterbirds import Waterbirds
from umix.data.registry import load_task
from umix.errors import UserError


@pytest.mark.parametrize("name", ["waterbirds_v1.0", "waterbird_complete95_forest2water2"])
@pytest.mark.parametrize("above", [True, False], ids=["parent", "folder"])
def test_the_folder_or_its_parent_is_read_under_both_names(waterbirds, name, above):
    parent = waterbirds(name)
    task = load_task("waterbirds", parent if above else parent / name, allow_subset=True)
    assert {split: s.groups.sizes.tolist() for split, s in task.splits.items()} == {
        "train": [3, 2, 2, 2],
        "val": [2, 2, 2, 2],
        "test": [2, 2, 2, 2],
    }


def test_groups_are_in_the_order_of_two_y_plus_place_and_named_so(waterbirds):
    train = load_task("waterbirds", waterbirds(), allow_subset=True).splits["train"]
    assert train.groups.names == ("landbird, land", "landbird, water", "waterbird, land", "waterbird, water")
    assert torch.equal(train.group, 2 * train.y + train.attribute)


def test_the_net_sees_the_published_size_and_only_training_is_augmented(waterbirds):
    task = load_task("waterbirds", waterbirds(), allow_subset=True)
    assert task.splits["train"].x[0].shape == (3, 256, 256)
    assert task.splits["train"].x[0].dtype == torch.uint8
    assert task.splits["train"].example.shape == (3, 224, 224)
    assert [split.augment is None for split in task.splits.values()] == [False, True, True]
    plain = load_task("waterbirds", waterbirds(), allow_subset=True, augment=False)
    assert plain.splits["train"].augment is None


def test_what_training_does_to_images_is_in_the_fingerprint(waterbirds):
    root = waterbirds()
    tasks = [load_task("waterbirds", root, allow_subset=True, **o) for o in ({}, {"augment": False}, {"size": 32})]
    assert len({task.splits["train"].fingerprint for task in tasks}) == 3
    assert tasks[0].splits["val"].fingerprint == tasks[1].splits["val"].fingerprint


def test_other_counts_than_published_are_refused_with_both_numbers(waterbirds):
    with pytest.raises(
        UserError, match=r"train split .* must hold 3,498 .*'landbird, land'.* got 3 \(12 counts"
    ) as error:
        load_task("waterbirds", waterbirds())
    assert "allow_subset=True" in str(error.value)


def test_published_counts_pass(waterbirds, monkeypatch):
    counts = {"train": (3, 2, 2, 2), "val": (2, 2, 2, 2), "test": (2, 2, 2, 2)}
    monkeypatch.setattr(Waterbirds, "published", counts)
    assert len(load_task("waterbirds", waterbirds()).splits["train"]) == 9


@pytest.mark.parametrize("root", [None, "nowhere"])
def test_an_absent_folder_says_what_to_get_and_that_nothing_is_downloaded(root, tmp_path):
    with pytest.raises(UserError, match=r"waterbirds_v1\.0 or waterbird_complete95.*metadata\.csv.*downloads nothing"):
        load_task("waterbirds", None if root is None else tmp_path / root)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ((",0,2,0,", ",0,7,0,"), r"metadata\.csv: split must be 0 or 1 or 2 in every row, but 2 do not: line \d+: '7'"),
        ((",0,2,0,", ",0,,0,"), r"split must be .* line \d+: ''"),
        (("\r\n2,", "\r\n1,"), r"values of img_id must occur once each, but 1 do not: '1' \(2 times\)"),
        (("y,split,place", "y,splt,place"), r"Unknown column .*'split'; did you mean 'splt'"),
        (("000.Some, Bird/Bird_0000.jpg", "gone.jpg"), r"but 1 are missing \(first: gone\.jpg\)"),
    ],
    ids=["code", "empty", "duplicate", "column", "missing"],
)
def test_a_broken_table_is_refused_in_one_sentence(waterbirds, change, sentence):
    with pytest.raises(UserError, match=sentence):
        load_task("waterbirds", waterbirds(change=change), allow_subset=True)


def test_the_doctor_finds_everything_at_once(waterbirds, capsys):
    root = waterbirds(code=(",1,2,1,", ",1,9,1,"), twice=("\r\n2,", "\r\n1,"))
    folder = root / "waterbirds_v1.0"
    images = sorted(folder.rglob("*.jpg"))
    images[0].write_bytes(images[0].read_bytes()[:200])
    images[1].unlink()
    images[2].write_text("no image", encoding="utf-8")
    assert main(["doctor", "waterbirds", "--root", str(root), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "broken"
    assert [(problem["count"], problem["rule"].split(" must")[0]) for problem in found["problems"]] == [
        (1, "metadata.csv: values of img_id"),
        (2, "metadata.csv: split"),
        (1, "listed images"),
        (2, "images"),
    ]
    assert found["problems"][2]["examples"] == ["001.Some, Bird/Bird_0001.jpg"]
    assert "Bird_0000.jpg (" in found["problems"][3]["examples"][0]
    assert len(found["mismatches"]) == 12
    assert main(["doctor", "waterbirds", "--root", str(root)]) == 2
    out = capsys.readouterr().out
    first, *rest = out.splitlines()
    assert ": broken, " in first
    assert "broken: images must be decodable, but 2 do not" in " ".join(" ".join(rest).split())


def test_the_doctor_lists_the_first_ten_and_the_number(waterbirds, capsys):
    root = waterbirds()
    for image in sorted(root.rglob("*.jpg"))[:12]:
        image.unlink()
    assert main(["doctor", "waterbirds", "--root", str(root), "--json"]) == 2
    (missing,) = json.loads(capsys.readouterr().out)["problems"]
    assert (missing["count"], len(missing["examples"])) == (12, 10)


def test_a_whole_folder_can_be_trained_on_and_a_subset_only_if_allowed(waterbirds, capsys):
    root = str(waterbirds())
    assert main(["doctor", "waterbirds", "--root", root]) == 2
    assert main(["doctor", "waterbirds", "--root", root, "--allow-subset"]) == 0
    assert "look at this, 1 finding, 25 images opened" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["doctor", "four_moons"], ["doctor", "waterbird"], ["doctor", "waterbirds"]])
def test_the_doctor_needs_a_task_with_a_folder(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_presets_are_shown(capsys):
    assert main(["presets", "waterbirds"]) == 0
    assert "umix.trajectory" in capsys.readouterr().out
    assert main(["presets", "waterbirds", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["paper"]["umix"]["eta"] == 80
    assert main(["presets", "waterbord"]) == 2


@pytest.mark.parametrize("preset", presets_of("waterbirds"))
def test_every_preset_trains(waterbirds, train_presets, preset):
    train_presets("waterbirds", waterbirds(), preset)


def test_the_command_line_runs_it(waterbirds, tmp_path: Path, capsys):
    tiny = ["size=16", "channels=[2]", "epochs=1", "start=0", "length=1"]
    command = ["run", "waterbirds", "umix", "--root", str(waterbirds()), "--json"]
    command += [f"--set={setting}" for setting in tiny]
    assert main([*command, "--out", str(tmp_path / "runs")]) == 2
    assert "--allow-subset" in capsys.readouterr().err
    cached = ["--allow-subset", "--cache", str(tmp_path / "pixels"), "--out", str(tmp_path / "runs")]
    assert main([*command, *cached]) == 0
    captured = capsys.readouterr()
    assert "Decoding 25 images once" in captured.err
    assert "MB" in captured.err
    assert len(list((tmp_path / "pixels").glob("waterbirds-*.npy"))) == 3
    first = json.loads(captured.out)["summary"]
    assert main([*command, "--set=task.allow_subset=true", "--no-cache", "--out", str(tmp_path / "streamed")]) == 0
    captured = capsys.readouterr()
    assert "Decoding" not in captured.err
    assert json.loads(captured.out)["summary"] == first
